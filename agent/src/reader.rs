// SPDX-License-Identifier: Apache-2.0
//! The records in what a read of the kernel's probe gave: its bytes as the structures of `abi`, nothing copied and
//! nothing allocated. Hundreds of thousands of records are read in a run.
//!
//! Records are whole words, so what is read is words: a structure in it lies as it has to. A record of a type that is not
//! known here ends where its size says.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::abi::{
    self, Balance, Cc, Codepoints, Drop, Frame, Head, Layers, Mark, Packet, Queue, Socket, Tcp, Visit,
};

const WORD: usize = size_of::<u64>();

pub enum Record<'a> {
    Packet(&'a Packet, &'a [Visit]),
    Layers(&'a Layers),
    Tcp(&'a Tcp),
    Queue(&'a Queue),
    Drop(&'a Drop),
    /// With the bytes of the frame.
    Frame(&'a Frame, &'a [Visit], &'a [u8]),
    Balance(&'a Balance),
    Socket(&'a Socket),
    Cc(&'a Cc),
    Mark(&'a Mark),
    Codepoints(&'a Codepoints),
    /// Of a type that is not known here.
    Unknown,
}

/// The records in words. `None` in place of a record: it is cut off, and the rest with it.
pub struct Records<'a>(pub &'a [u64]);

impl<'a> Iterator for Records<'a> {
    type Item = Option<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record = split(self.0).and_then(|(kind, body, rest)| Some((parse(kind, body)?, rest)));
        self.0 = record.as_ref().map_or(&[], |(_, rest)| rest);
        Some(record.map(|(record, _)| record))
    }
}

/// Type and body of the first record, and what follows it.
fn split(words: &[u64]) -> Option<(u16, &[u8], &[u64])> {
    let (head, _) = Head::ref_from_prefix(words.as_bytes()).ok()?;
    let (record, rest) = words.split_at_checked(usize::try_from(head.size).ok()? / WORD)?;
    Some((head.kind, record.get(size_of::<Head>() / WORD..)?.as_bytes(), rest))
}

/// None: cut off.
fn parse(kind: u16, body: &[u8]) -> Option<Record<'_>> {
    Some(match kind {
        abi::PACKET => {
            let (packet, rest) = first::<Packet>(body)?;
            Record::Packet(packet, visits(rest, packet.visits)?.0)
        }
        abi::LAYERS => Record::Layers(first(body)?.0),
        abi::TCP => Record::Tcp(first(body)?.0),
        abi::QUEUE => Record::Queue(first(body)?.0),
        abi::DROP => Record::Drop(first(body)?.0),
        abi::FRAME => {
            let (frame, rest) = first::<Frame>(body)?;
            let (visits, rest) = visits(rest, frame.visits)?;
            Record::Frame(frame, visits, rest.get(..usize::try_from(frame.captured).ok()?)?)
        }
        abi::BALANCE => Record::Balance(first(body)?.0),
        abi::SOCKET => Record::Socket(first(body)?.0),
        abi::CC => Record::Cc(first(body)?.0),
        abi::MARK => Record::Mark(first(body)?.0),
        abi::CODEPOINTS => Record::Codepoints(first(body)?.0),
        _ => Record::Unknown,
    })
}

fn first<T: FromBytes + Immutable + KnownLayout>(bytes: &[u8]) -> Option<(&T, &[u8])> {
    T::ref_from_prefix(bytes).ok()
}

fn visits(bytes: &[u8], count: u16) -> Option<(&[Visit], &[u8])> {
    <[Visit]>::ref_from_prefix_with_elems(bytes, count.into()).ok()
}

/// The text in a field of the kernel's, which ends it with a zero if there is room.
pub fn text(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(&field[..end]).ok()
}

/// Records as the kernel writes them.
#[cfg(test)]
pub mod written {
    use crate::abi;

    /// With head and padding.
    pub fn record(kind: u16, body: &[u8]) -> Vec<u64> {
        let size = (size_of::<abi::Head>() + body.len()).next_multiple_of(8);
        let mut bytes = u32::try_from(size).expect("small").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(body);
        bytes.resize(size, 0);
        let words = bytes.chunks_exact(super::WORD);
        words.map(|word| u64::from_ne_bytes(word.try_into().expect("is as long"))).collect()
    }

    /// The concatenation of fields, each in the machine's byte order.
    macro_rules! fields {
        ($($value:expr),* $(,)?) => {{
            let mut bytes: Vec<u8> = Vec::new();
            $(bytes.extend($value.to_ne_bytes());)*
            bytes
        }};
    }
    pub(crate) use fields;

    pub fn text(text: &str, size: usize) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size, 0);
        bytes
    }

    pub fn stream(id: u16, way: u8) -> Vec<u8> {
        fields![id, way, 0u8]
    }

    /// Layer N of a visit takes `first + N`, or nothing if `first` is 0.
    pub fn visit(node: u16, first: i64) -> Vec<u8> {
        let mut bytes = fields![node, 0u16, 0u16, 0u16];
        let layers = (0..).take(abi::LAYER.len()).map(|layer| if first == 0 { 0 } else { first + layer });
        bytes.extend(layers.flat_map(i64::to_ne_bytes));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::written::{record, visit};
    use super::*;

    /// Every type of record with the size of its structure.
    const SIZES: [(u16, usize); 11] = [
        (abi::PACKET, size_of::<Packet>()),
        (abi::LAYERS, size_of::<Layers>()),
        (abi::TCP, size_of::<Tcp>()),
        (abi::QUEUE, size_of::<Queue>()),
        (abi::DROP, size_of::<Drop>()),
        (abi::FRAME, size_of::<Frame>()),
        (abi::BALANCE, size_of::<Balance>()),
        (abi::SOCKET, size_of::<Socket>()),
        (abi::CC, size_of::<Cc>()),
        (abi::MARK, size_of::<Mark>()),
        (abi::CODEPOINTS, size_of::<Codepoints>()),
    ];

    #[test]
    fn every_type_is_read_when_whole_and_told_when_cut_off() {
        assert_eq!(SIZES.len(), abi::RECORD.len());
        for (kind, size) in SIZES {
            let whole = record(kind, &vec![0; size]);
            assert!(!matches!(Records(&whole).next(), Some(None | Some(Record::Unknown))), "type {kind}");
            let cut = record(kind, &vec![0; size - 8]);
            assert!(matches!(Records(&cut).next(), Some(None)), "type {kind}");
        }
    }

    #[test]
    fn the_rest_of_a_record_that_is_cut_off_is_not_read() {
        let whole = record(abi::QUEUE, &[0; 64]);
        for cut in [1, 8] {
            let mut records = Records(&whole[..cut]);
            assert!(matches!(records.next(), Some(None)), "after {cut} words");
            assert!(records.next().is_none(), "and no endless loop");
        }
        assert!(matches!(Records(&[0; 2]).next(), Some(None)), "a size of 0");
    }

    #[test]
    fn types_of_the_future_are_skipped() {
        let words = [record(99, &[7; 21]), record(abi::BALANCE, &[0; 64]), record(0, &[])].concat();
        let mut records = Records(&words);
        assert!(matches!(records.next(), Some(Some(Record::Unknown))));
        assert!(matches!(records.next(), Some(Some(Record::Balance(_)))));
        assert!(matches!(records.next(), Some(Some(Record::Unknown))));
        assert!(records.next().is_none());
    }

    #[test]
    fn visits_are_bounded_by_the_record() {
        let mut body = vec![0; 32];
        body[30..32].copy_from_slice(&2u16.to_ne_bytes());
        body.extend(visit(3, 10));
        assert!(matches!(Records(&record(abi::PACKET, &body)).next(), Some(None)), "the second is missing");
        body.extend(visit(4, 0));
        let words = record(abi::PACKET, &body);
        let Some(Some(Record::Packet(_, visits))) = Records(&words).next() else { panic!("a packet") };
        let visits: Vec<_> = visits.iter().map(|visit| (visit.node, visit.layer_ns[18])).collect();
        assert_eq!(visits, [(3, 28), (4, 0)]);
    }
}
