// SPDX-License-Identifier: Apache-2.0
//! The records in a read of the kernel's probe: its bytes as the structures of `abi`, without copies and allocations. A
//! run reads hundreds of thousands of records.
//!
//! Records are whole words and are read as words, so each structure is aligned. A record of an unknown type ends where
//! its size says.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::abi::{
    self, Balance, Cc, Codepoints, Drop, Frame, Head, Layers, Mark, Namespace, Packet, Queue, Socket, Tcp,
    Visit,
};

const WORD: usize = size_of::<u64>();

pub enum Record<'a> {
    Packet(&'a Packet, &'a [Visit]),
    Layers(&'a Layers),
    Tcp(&'a Tcp),
    Queue(&'a Queue),
    Drop(&'a Drop),
    /// A frame with its visits and its bytes.
    Frame(&'a Frame, &'a [Visit], &'a [u8]),
    Balance(&'a Balance),
    Socket(&'a Socket),
    Cc(&'a Cc),
    Mark(&'a Mark),
    Codepoints(&'a Codepoints),
    Namespace(&'a Namespace),
    /// A record of an unknown type.
    Unknown,
}

/// Iterates over the records in a buffer. `None` instead of a record means that the buffer ends within it.
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

/// Splits off the first record: its type, its body, and the words after it.
fn split(buffer: &[u64]) -> Option<(u16, &[u8], &[u64])> {
    let (head, _) = Head::ref_from_prefix(buffer.as_bytes()).ok()?;
    let (record, rest) = buffer.split_at_checked(usize::try_from(head.size).ok()? / WORD)?;
    Some((head.kind, record.get(size_of::<Head>() / WORD..)?.as_bytes(), rest))
}

/// Parses a record; None if it is truncated.
fn parse(kind: u16, body: &[u8]) -> Option<Record<'_>> {
    Some(match kind {
        abi::PACKET => {
            let (packet, rest) = prefix::<Packet>(body)?;
            Record::Packet(packet, visits(rest, packet.visits)?.0)
        }
        abi::LAYERS => Record::Layers(prefix(body)?.0),
        abi::TCP => Record::Tcp(prefix(body)?.0),
        abi::QUEUE => Record::Queue(prefix(body)?.0),
        abi::DROP => Record::Drop(prefix(body)?.0),
        abi::FRAME => {
            let (frame, rest) = prefix::<Frame>(body)?;
            let (visits, rest) = visits(rest, frame.visits)?;
            Record::Frame(frame, visits, rest.get(..usize::try_from(frame.captured).ok()?)?)
        }
        abi::BALANCE => Record::Balance(prefix(body)?.0),
        abi::SOCKET => Record::Socket(prefix(body)?.0),
        abi::CC => Record::Cc(prefix(body)?.0),
        abi::MARK => Record::Mark(prefix(body)?.0),
        abi::CODEPOINTS => Record::Codepoints(prefix(body)?.0),
        abi::NAMESPACE => Record::Namespace(prefix(body)?.0),
        _ => Record::Unknown,
    })
}

fn prefix<T: FromBytes + Immutable + KnownLayout>(bytes: &[u8]) -> Option<(&T, &[u8])> {
    T::ref_from_prefix(bytes).ok()
}

fn visits(bytes: &[u8], count: u16) -> Option<(&[Visit], &[u8])> {
    <[Visit]>::ref_from_prefix_with_elems(bytes, count.into()).ok()
}

/// Returns the text in a field of the kernel, which ends with a zero if it is shorter than the field.
pub fn text(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(&field[..end]).ok()
}

/// Records as the kernel writes them.
#[cfg(test)]
pub mod fixtures {
    use crate::abi;

    /// Returns a record with head and padding.
    pub fn record(kind: u16, body: &[u8]) -> Vec<u64> {
        let size = (size_of::<abi::Head>() + body.len()).next_multiple_of(8);
        let mut bytes = u32::try_from(size).expect("small").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(body);
        bytes.resize(size, 0);
        let buffer = bytes.chunks_exact(super::WORD);
        buffer.map(|word| u64::from_ne_bytes(word.try_into().expect("is as long"))).collect()
    }

    /// Concatenates fields, each in the machine's byte order.
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

    pub fn stream(id: u16, direction: u8) -> Vec<u8> {
        fields![id, direction, 0u8]
    }

    /// Returns a visit whose layer N takes `first + N`, or no time if `first` is 0.
    pub fn visit(node: u16, first: i64) -> Vec<u8> {
        let mut bytes = fields![node, 0u16, 0u16, 0u16];
        let layers = (0..).take(abi::LAYER.len()).map(|layer| if first == 0 { 0 } else { first + layer });
        bytes.extend(layers.flat_map(i64::to_ne_bytes));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{record, visit};
    use super::*;

    /// Every type of record with the size of its structure.
    const SIZES: [(u16, usize); 12] = [
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
        (abi::NAMESPACE, size_of::<Namespace>()),
    ];

    #[test]
    fn every_type_is_parsed_and_its_truncation_detected() {
        assert_eq!(SIZES.len(), abi::RECORD.len());
        for (kind, size) in SIZES {
            let complete = record(kind, &vec![0; size]);
            assert!(!matches!(Records(&complete).next(), Some(None | Some(Record::Unknown))), "type {kind}");
            let cut = record(kind, &vec![0; size - 8]);
            assert!(matches!(Records(&cut).next(), Some(None)), "type {kind}");
        }
    }

    #[test]
    fn a_truncated_record_ends_the_iteration() {
        let complete = record(abi::QUEUE, &[0; 64]);
        for cut in [1, 8] {
            let mut records = Records(&complete[..cut]);
            assert!(matches!(records.next(), Some(None)), "after {cut} words");
            assert!(records.next().is_none(), "and no endless loop");
        }
        assert!(matches!(Records(&[0; 2]).next(), Some(None)), "a size of 0");
    }

    #[test]
    fn unknown_types_are_skipped() {
        let buffer = [record(99, &[7; 21]), record(abi::BALANCE, &[0; 64]), record(0, &[])].concat();
        let mut records = Records(&buffer);
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
        let buffer = record(abi::PACKET, &body);
        let Some(Some(Record::Packet(_, visits))) = Records(&buffer).next() else { panic!("a packet") };
        let visits: Vec<_> = visits.iter().map(|visit| (visit.node, visit.layer_ns[18])).collect();
        assert_eq!(visits, [(3, 28), (4, 0)]);
    }
}
