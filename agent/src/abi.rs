// SPDX-License-Identifier: Apache-2.0
//! What the kernel's probe gives, taken from its bytes: `kernel/drivers/probe_abi.h`, field by field in its order.
//!
//! A record of a type that is not known here ends where its size says. Nothing is copied but numbers, and nothing is
//! allocated: hundreds of thousands of records are read in a run.

/// `PROBE_LAYER_COUNT`.
pub const LAYERS: usize = 19;
/// `PROBE_HOLD_COUNT`.
pub const HOLDS: usize = 6;
/// `sizeof(struct probe_head)` and `sizeof(struct probe_visit)`.
const HEAD: usize = 8;
const VISIT: usize = 8 + 8 * LAYERS;
const TCP_INFO: usize = 320;
const CA_INFO: usize = 24;

pub enum Record<'a> {
    Packet(Packet<'a>),
    Layers(Layers),
    Tcp(Tcp<'a>),
    Queue(Queue<'a>),
    Drop(Drop<'a>),
    Frame(Frame<'a>),
    Balance(Balance),
    /// Of a type that is not known here.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Flow,
    Probe,
    Neither,
}

#[derive(Clone, Copy)]
pub struct Stream {
    pub id: u16,
    pub kind: Kind,
    /// Towards the server.
    pub up: bool,
}

pub struct Packet<'a> {
    pub t_ns: i64,
    pub end_ns: i64,
    pub stream: Stream,
    pub number: u32,
    pub bytes: u32,
    pub data: bool,
    pub visits: Visits<'a>,
}

pub struct Layers {
    pub t_ns: i64,
    pub stream: Stream,
    pub node: u16,
    pub data: bool,
    pub packets: u64,
    pub layer_ns: [u64; LAYERS],
}

pub struct Tcp<'a> {
    pub t_ns: i64,
    pub stream: Stream,
    /// As long as this kernel's structure is.
    pub info: &'a [u8],
    pub memory: &'a [u8],
    pub ca_attribute: u32,
    pub ca_info: &'a [u8],
    pub sending: Sending,
}

/// TCP Small Queues at its last check, and the time in which unsent data waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    pub limit: u64,
    pub truesize: u32,
    pub term: u32,
    pub rate: u64,
    pub shift: u32,
    pub throttled: u32,
    pub hold: u32,
    pub gso_bytes: u32,
    pub hold_ns: [u64; HOLDS],
}

pub struct Queue<'a> {
    pub t_ns: i64,
    pub node: u16,
    pub device: &'a str,
    /// `qdisc_packets, qdisc_bytes, ring_skbs, ring_bytes, bql_limit, bql_inflight, txq_packets, txq_bytes`.
    pub sizes: [u32; 8],
}

pub struct Drop<'a> {
    pub t_ns: i64,
    pub stream: Stream,
    pub node: u16,
    pub place: u16,
    pub packets: u32,
    pub bytes: u32,
    pub device: &'a str,
    pub reason: &'a str,
}

pub struct Frame<'a> {
    pub t_ns: i64,
    pub node: u16,
    pub received: bool,
    pub length: u32,
    pub device: &'a str,
    pub stream: Stream,
    pub number: u32,
    pub visits: Visits<'a>,
    pub data: &'a [u8],
}

pub struct Balance {
    pub t_ns: i64,
    pub stream: Stream,
    /// `sent, duplicated, delivered, dropped, in_flight, unmatched`.
    pub counts: [u64; 6],
}

/// The nodes a packet passed, from the sender on, each with the time spent in its layers.
#[derive(Clone, Copy)]
pub struct Visits<'a>(&'a [u8]);

impl Visits<'_> {
    pub fn iter(&self) -> impl Iterator<Item = (u16, [i64; LAYERS])> + '_ {
        self.0.chunks_exact(VISIT).map(|bytes| {
            let mut fields = Fields(bytes);
            let node = fields.u16().zip(fields.skip(6)).map(|(node, ())| node);
            node.zip(fields.i64s()).expect("is as long as a visit")
        })
    }
}

/// The records in the bytes of a read. `None` in place of a record: it is cut off, and the rest with it.
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Option<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record =
            split(self.0).and_then(|(kind, body, rest)| Some((parse(kind, &mut Fields(body))?, rest)));
        self.0 = record.as_ref().map_or(&[], |(_, rest)| rest);
        Some(record.map(|(record, _)| record))
    }
}

/// Type and body of the first record, and what follows it.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let mut head = Fields(bytes);
    let (size, kind) = (head.size()?, head.u16()?);
    let (record, rest) = bytes.split_at_checked(size)?;
    Some((kind, record.get(HEAD..)?, rest))
}

/// None: cut off.
fn parse<'a>(kind: u16, fields: &mut Fields<'a>) -> Option<Record<'a>> {
    match kind {
        1 => fields.packet().map(Record::Packet),
        2 => fields.layers().map(Record::Layers),
        3 => fields.tcp().map(Record::Tcp),
        4 => fields.queue().map(Record::Queue),
        5 => fields.drop().map(Record::Drop),
        6 => fields.frame().map(Record::Frame),
        7 => fields.balance().map(Record::Balance),
        _ => Some(Record::Unknown),
    }
}

/// What is left of a body; each call takes the next field.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes(count).map(drop)
    }

    fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_ne_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.chunk().map(i64::from_ne_bytes)
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    fn u64s<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.u64()?;
        }
        Some(numbers)
    }

    fn i64s<const N: usize>(&mut self) -> Option<[i64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.i64()?;
        }
        Some(numbers)
    }

    /// A C string in a field of `size` bytes.
    fn text(&mut self, size: usize) -> Option<&'a str> {
        let bytes = self.bytes(size)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
        std::str::from_utf8(&bytes[..end]).ok()
    }

    fn stream(&mut self) -> Option<Stream> {
        let (id, [kind, way]) = (self.u16()?, self.chunk()?);
        let kind = match kind {
            0 => Kind::Flow,
            1 => Kind::Probe,
            _ => Kind::Neither,
        };
        Some(Stream { id, kind, up: way == 0 })
    }

    fn visits(&mut self, count: u16) -> Option<Visits<'a>> {
        self.bytes(usize::from(count) * VISIT).map(Visits)
    }

    fn packet(&mut self) -> Option<Packet<'a>> {
        let (t_ns, end_ns, stream) = (self.i64()?, self.i64()?, self.stream()?);
        let (number, bytes, data, count) = (self.u32()?, self.u32()?, self.u16()?, self.u16()?);
        Some(Packet { t_ns, end_ns, stream, number, bytes, data: data != 0, visits: self.visits(count)? })
    }

    fn layers(&mut self) -> Option<Layers> {
        let (t_ns, stream, node, data) = (self.i64()?, self.stream()?, self.u16()?, self.u16()?);
        Some(Layers { t_ns, stream, node, data: data != 0, packets: self.u64()?, layer_ns: self.u64s()? })
    }

    fn tcp(&mut self) -> Option<Tcp<'a>> {
        let (t_ns, stream, length) = (self.i64()?, self.stream()?, self.size()?);
        let info = self.bytes(TCP_INFO)?;
        Some(Tcp {
            t_ns,
            stream,
            info: &info[..length.min(TCP_INFO)],
            memory: self.bytes(9 * 4)?,
            ca_attribute: self.u32()?,
            ca_info: self.bytes(CA_INFO)?,
            sending: Sending {
                limit: self.u64()?,
                truesize: self.u32()?,
                term: self.u32()?,
                rate: self.u64()?,
                shift: self.u32()?,
                throttled: self.u32()?,
                hold: self.u32()?,
                gso_bytes: self.u32()?,
                hold_ns: self.u64s()?,
            },
        })
    }

    fn queue(&mut self) -> Option<Queue<'a>> {
        let (t_ns, node) = (self.i64()?, self.u16()?);
        self.skip(6)?;
        let device = self.text(16)?;
        let mut sizes = [0; 8];
        for size in &mut sizes {
            *size = self.u32()?;
        }
        Some(Queue { t_ns, node, device, sizes })
    }

    fn drop(&mut self) -> Option<Drop<'a>> {
        Some(Drop {
            t_ns: self.i64()?,
            stream: self.stream()?,
            node: self.u16()?,
            place: self.u16()?,
            packets: self.u32()?,
            bytes: self.u32()?,
            device: self.text(16)?,
            reason: self.text(40)?,
        })
    }

    fn frame(&mut self) -> Option<Frame<'a>> {
        let (t_ns, node, received) = (self.i64()?, self.u16()?, self.u16()?);
        let (length, captured, visits) = (self.u32()?, self.size()?, self.u16()?);
        self.skip(2)?;
        let (device, stream, number) = (self.text(16)?, self.stream()?, self.u32()?);
        self.skip(8)?; // begin_ns: t_ns less the visits' times
        let (visits, data) = (self.visits(visits)?, self.bytes(captured)?);
        Some(Frame { t_ns, node, received: received != 0, length, device, stream, number, visits, data })
    }

    fn balance(&mut self) -> Option<Balance> {
        let (t_ns, stream) = (self.i64()?, self.stream()?);
        self.skip(4)?;
        Some(Balance { t_ns, stream, counts: self.u64s()? })
    }
}

/// Records as the kernel writes them.
#[cfg(test)]
pub mod bytes {
    /// With head and padding.
    pub fn record(kind: u16, body: &[u8]) -> Vec<u8> {
        let size = (super::HEAD + body.len()).next_multiple_of(8);
        let mut bytes = u32::try_from(size).expect("small").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(body);
        bytes.resize(size, 0);
        bytes
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

    pub fn stream(id: u16, kind: u8, way: u8) -> Vec<u8> {
        fields![id, kind, way]
    }

    /// Layer N of a visit takes `first + N`, or nothing if `first` is 0.
    pub fn visit(node: u16, first: i64) -> Vec<u8> {
        let mut bytes = fields![node, 0u16, 0u16, 0u16];
        let layers = (0..).take(super::LAYERS).map(|layer| if first == 0 { 0 } else { first + layer });
        bytes.extend(layers.flat_map(i64::to_ne_bytes));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::bytes::{record, visit};
    use super::*;

    /// `sizeof` of each body without what varies, by type: 1 to 7.
    const SIZES: [usize; 7] = [32, 176, 488, 64, 80, 56, 64];

    #[test]
    fn every_type_takes_exactly_its_structure() {
        for (kind, size) in (1..).zip(SIZES) {
            let zeros = vec![0; size];
            let mut fields = Fields(&zeros);
            assert!(parse(kind, &mut fields).is_some(), "type {kind}");
            assert!(fields.0.is_empty(), "type {kind} leaves {} bytes", fields.0.len());
        }
    }

    #[test]
    fn a_record_that_is_cut_off_is_told() {
        for (kind, size) in (1..).zip(SIZES) {
            let bytes = record(kind, &vec![0; size - 8]);
            assert!(matches!(Records(&bytes).next(), Some(None)), "type {kind}");
        }
        let whole = record(4, &[0; 64]);
        for cut in [1, 7, 8, 68] {
            let mut records = Records(&whole[..cut]);
            assert!(matches!(records.next(), Some(None)), "after {cut} bytes");
            assert!(records.next().is_none(), "and no endless loop");
        }
        assert!(matches!(Records(&[0; 16]).next(), Some(None)), "a size of 0");
    }

    #[test]
    fn types_of_the_future_are_skipped() {
        let bytes = [record(99, &[7; 21]), record(7, &[0; 64]), record(0, &[])].concat();
        let mut records = Records(&bytes);
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
        assert!(matches!(Records(&record(1, &body)).next(), Some(None)), "the second is missing");
        body.extend(visit(4, 0));
        let bytes = record(1, &body);
        let Some(Some(Record::Packet(packet))) = Records(&bytes).next() else { panic!("a packet") };
        let visits: Vec<_> = packet.visits.iter().map(|(node, layers)| (node, layers[18])).collect();
        assert_eq!(visits, [(3, 28), (4, 0)]);
    }
}
