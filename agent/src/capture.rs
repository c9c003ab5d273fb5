// SPDX-License-Identifier: Apache-2.0
//! Captures: frames of the kernel's probe as pcapng files for Wireshark, one for each device. An Ethernet device has
//! Ethernet frames; a radio has 802.11 frames after the kernel's radiotap header.
//!
//! Timestamps are ns of test time, as if it began in 1970. A packet that the probe follows has a comment with its
//! stream and with the time that it has spent in each layer. Frames before test time 0 are left out.
//!
//! Frames are ordered by time. The probe reports a sent frame when it enters the ring, ahead of its time, and a
//! received frame when the NIC hands it over, after its time. A frame is therefore held until the probe reports that no
//! frame with an earlier time will follow.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::{DataLink, PcapError};

use crate::abi::{self, Frame, Visit};
use crate::plan;
use crate::report::{Failure, Result};
use crate::sys;

/// The number of bytes that are collected before a write, since a system call is expensive.
const BUFFER: usize = 256 << 10;

/// A frame from the kernel's probe, with its bytes and the nodes that its packet passed.
pub struct RawFrame<'a> {
    pub frame: &'a Frame,
    pub visits: &'a [Visit],
    pub data: &'a [u8],
}

struct Capture {
    plan: plan::Capture,
    file: PcapNgWriter<BufWriter<File>>,
    /// The frames by time, and at equal times by arrival.
    pending: BTreeMap<(u64, u64), PendingFrame>,
    count: u64,
}

/// A frame that is not written yet.
struct PendingFrame {
    received: bool,
    length: u32,
    data: Vec<u8>,
    comment: String,
}

pub struct Captures {
    captures: Vec<Capture>,
}

impl Captures {
    /// Creates the files in `folder`.
    pub fn create(plans: &[plan::Capture], radios: &[plan::Radio], folder: &Path) -> Result<Self> {
        let captures = plans.iter().map(|plan| {
            let on_air = radios.iter().any(|radio| radio.node == plan.node && radio.device == plan.device);
            Capture::create(
                plan,
                folder,
                if on_air { DataLink::IEEE802_11_RADIOTAP } else { DataLink::ETHERNET },
            )
        });
        Ok(Self { captures: captures.collect::<Result<_>>()? })
    }

    /// Takes a frame of `device`; `title` names its packet's stream. Test time 0 is at `zero_ns` of the probe's clock.
    pub fn take(
        &mut self,
        zero_ns: i64,
        device: &str,
        probed: &RawFrame,
        nodes: &[String],
        title: &str,
    ) -> Result<()> {
        let node = &nodes[usize::from(probed.frame.node)];
        let mut captures = self.captures.iter_mut();
        let matching = captures.find(|capture| capture.plan.node == *node && capture.plan.device == device);
        let Some(capture) = matching else { return Ok(()) };
        if let Ok(t_ns) = u64::try_from(probed.frame.t_ns - zero_ns) {
            let mut text = String::new();
            comment(&mut text, title, probed, nodes);
            capture.add_pending(t_ns, probed, text);
        }
        capture.write(u64::try_from(probed.frame.settled_ns - zero_ns).unwrap_or(0))
    }

    /// Writes everything to the files, and this kernel's page cache to disk.
    pub fn finish(self) -> Result<()> {
        for mut capture in self.captures {
            capture.write(u64::MAX)?;
            let blame = |error| Failure::system(&capture.plan.file, error);
            let file = capture.file.into_inner().into_inner().map_err(|error| blame(error.into_error()))?;
            sys::write_back(&file).map_err(blame)?;
        }
        Ok(())
    }
}

impl Capture {
    fn create(plan: &plan::Capture, folder: &Path, link: DataLink) -> Result<Self> {
        let path = folder.join(&plan.file);
        let file = File::create(&path).map_err(|error| Failure::system(path.display(), error))?;
        let interface = InterfaceDescriptionBlock {
            linktype: link,
            snaplen: match (plan.snaplen, link) {
                (1.., DataLink::IEEE802_11_RADIOTAP) => plan.snaplen + u32::from(abi::RADIOTAP),
                (snaplen, _) => snaplen,
            },
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(&plan.device)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(&plan.node)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        PcapNgWriter::new(BufWriter::with_capacity(BUFFER, file))
            .and_then(|mut file| {
                file.write_pcapng_block(interface)?;
                Ok(Self { plan: plan.clone(), file, pending: BTreeMap::new(), count: 0 })
            })
            .map_err(|error| failure(&plan.file, error))
    }

    fn add_pending(&mut self, t_ns: u64, probed: &RawFrame, comment: String) {
        let pending = PendingFrame {
            received: probed.frame.received != 0,
            length: probed.frame.length,
            data: probed.data.to_vec(),
            comment,
        };
        self.pending.insert((t_ns, self.count), pending);
        self.count += 1;
    }

    /// Writes all frames up to `settled_ns`.
    fn write(&mut self, settled_ns: u64) -> Result<()> {
        while let Some(first) = self.pending.first_entry().filter(|first| first.key().0 <= settled_ns) {
            let (t_ns, frame) = (first.key().0, first.remove());
            let written = self.file.write_pcapng_block(frame.block(t_ns));
            written.map_err(|error| failure(&self.plan.file, error))?;
        }
        Ok(())
    }
}

fn failure(file: &str, error: PcapError) -> Failure {
    match error {
        PcapError::IoError(error) => Failure::system(file, error),
        error => Failure::data(file, error),
    }
}

impl PendingFrame {
    fn block(&self, t_ns: u64) -> EnhancedPacketBlock<'_> {
        const INBOUND: u32 = 1;
        const OUTBOUND: u32 = 2;
        let mut options = vec![EnhancedPacketOption::Flags(if self.received { INBOUND } else { OUTBOUND })];
        if !self.comment.is_empty() {
            options.insert(0, EnhancedPacketOption::Comment(Cow::Borrowed(&self.comment)));
        }
        EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(t_ns),
            original_len: self.length,
            data: Cow::Borrowed(&self.data),
            options,
        }
    }
}

/// Writes the layers that took time: `upload::1 packet 7: client tsq 812.3 us, ring 12.1 us | router rx 20 us`. Writes
/// nothing for a frame that is not followed.
fn comment(text: &mut String, title: &str, probed: &RawFrame, nodes: &[String]) {
    let mut separator = ": ";
    for visit in probed.visits {
        if separator == ": " {
            let _ = write!(text, "{title} packet {}", probed.frame.number);
        }
        let node = nodes.get(usize::from(visit.node)).map_or("?", String::as_str);
        let _ = write!(text, "{separator}{node}");
        separator = " | ";
        let mut comma = "";
        for (layer, ns) in abi::LAYER.iter().zip(visit.layer_ns).filter(|(_, ns)| *ns != 0) {
            let _ = write!(text, "{comma} {layer} ");
            microseconds(text, ns);
            comma = ",";
        }
    }
}

/// Writes ns as microseconds, without trailing zeros.
fn microseconds(text: &mut String, ns: i64) {
    let _ = write!(text, "{}", ns / 1000);
    if ns % 1000 != 0 {
        let _ = write!(text, ".{:03}", (ns % 1000).abs());
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push_str(" us");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_records::fixtures::{fields, record, stream, text, visit};
    use crate::probe_records::{Record, Records};
    use pcap_file::pcapng::{Block, PcapNgReader};

    fn frame(t_ns: i64, settled_ns: i64, device: &str, visits: u16) -> Vec<u64> {
        let mut body = fields![t_ns, 0u16, 1u16, 1514u32, 5u32, visits, 0u16];
        body.extend(text(device, 16));
        body.extend(stream(0, 0));
        body.extend(fields![7u32, 0i64, settled_ns]);
        body.extend((0..visits).flat_map(|node| visit(node, 0)));
        body.extend(b"abcde");
        record(abi::FRAME, &body)
    }

    fn plan(device: &str) -> plan::Capture {
        plan::Capture { node: "client".into(), device: device.into(), file: "c.pcapng".into(), snaplen: 128 }
    }

    #[test]
    fn a_file_of_a_radio_declares_radiotap_headers() {
        let folder = std::env::temp_dir().join(format!("hourglass-radiotap-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let radio = |device: &str| plan::Radio {
            phy: "c0s0".into(),
            node: "client".into(),
            device: device.into(),
            address: "02:00:00:00:00:01".into(),
        };
        let radios = [radio("wlan1"), radio("wlan0")];
        Captures::create(&[plan("wlan0")], &radios, &folder).expect("a file").finish().expect("finished");
        let file = File::open(folder.join("c.pcapng")).expect("the file");
        let mut reader = PcapNgReader::new(file).expect("pcapng");
        let Some(Ok(Block::InterfaceDescription(block))) = reader.next_block() else {
            panic!("an interface")
        };
        assert_eq!(
            (block.linktype, block.snaplen),
            (DataLink::IEEE802_11_RADIOTAP, 128 + u32::from(abi::RADIOTAP))
        );
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    fn parsed(words: &[u64]) -> RawFrame<'_> {
        let Some(Some(Record::Frame(frame, visits, data))) = Records(words).next() else { panic!("a frame") };
        RawFrame { frame, visits, data }
    }

    #[test]
    fn a_file_has_names_times_directions_and_comments() {
        let folder = std::env::temp_dir().join(format!("hourglass-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let nodes = ["client".to_owned(), "router".to_owned()];
        let mut captures = Captures::create(&[plan("eth0")], &[], &folder).expect("a file");
        for (t_ns, device, visits) in
            [(-1, "eth0", 0), (5, "eth0", 0), (6, "eth1", 0), (3_000_000_001, "eth0", 2)]
        {
            let bytes = frame(t_ns + 100, t_ns + 100, device, visits);
            captures.take(100, device, &parsed(&bytes), &nodes, "up").expect("taken");
        }
        captures.finish().expect("finished");
        let file = File::open(folder.join("c.pcapng")).expect("the file");
        let mut reader = PcapNgReader::new(file).expect("pcapng");
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.expect("whole").into_owned() {
                Block::InterfaceDescription(block) => {
                    assert_eq!((block.linktype, block.snaplen), (DataLink::ETHERNET, 128));
                    assert!(block.options.contains(&InterfaceDescriptionOption::IfName("eth0".into())));
                    assert!(block
                        .options
                        .contains(&InterfaceDescriptionOption::IfDescription("client".into())));
                    assert!(block.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                }
                Block::EnhancedPacket(block) => packets.push(block),
                _ => panic!("another block"),
            }
        }
        std::fs::remove_dir_all(&folder).expect("removed");
        let times: Vec<_> = packets.iter().map(|packet| packet.timestamp.as_nanos()).collect();
        assert_eq!(times, [5, 3_000_000_001], "neither before the test nor of another device");
        assert_eq!((&packets[0].data[..], packets[0].original_len), (&b"abcde"[..], 1514));
        assert_eq!(packets[0].options, [EnhancedPacketOption::Flags(1)]);
        let expected = EnhancedPacketOption::Comment("up packet 7: client | router".into());
        assert_eq!(packets[1].options[0], expected);
    }

    #[test]
    fn frames_are_written_in_order_of_time_when_no_earlier_frame_can_follow() {
        let folder = std::env::temp_dir().join(format!("hourglass-order-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut captures = Captures::create(&[plan("eth0")], &[], &folder).expect("a file");
        // two future departures, two earlier arrivals; the last frame leaves when the others are settled
        let frames = [(30, 5), (50, 6), (10, 20), (20, 45), (60, 70)];
        let pending_counts = frames.map(|(t_ns, settled_ns)| {
            let bytes = frame(t_ns, settled_ns, "eth0", 0);
            captures.take(0, "eth0", &parsed(&bytes), &[String::from("client")], "").expect("taken");
            captures.captures[0].pending.len()
        });
        assert_eq!(pending_counts, [1, 2, 2, 1, 0]);
        captures.finish().expect("finished");
        let mut reader =
            PcapNgReader::new(File::open(folder.join("c.pcapng")).expect("the file")).expect("pcapng");
        let mut times = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(block) = block.expect("whole") {
                times.push(block.timestamp.as_nanos());
            }
        }
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(times, [10, 20, 30, 50, 60]);
    }

    #[test]
    fn a_comment_names_the_layers_that_took_time() {
        let mut body = fields![0i64, 0u16, 1u16, 0u32, 0u32, 2u16, 0u16];
        body.extend(text("eth0", 16));
        body.extend(stream(0, 0));
        body.extend(fields![7u32, 0i64, 0i64]);
        let (mut client, mut router) = (visit(0, 0), visit(1, 0));
        client[8 + 7 * 8..8 + 8 * 8].copy_from_slice(&812_300i64.to_ne_bytes());
        client[8 + 13 * 8..8 + 14 * 8].copy_from_slice(&1i64.to_ne_bytes());
        router[8..16].copy_from_slice(&20_000i64.to_ne_bytes());
        body.extend(client.into_iter().chain(router));
        let bytes = record(abi::FRAME, &body);
        let mut text = String::new();
        let nodes = ["client".to_owned(), "router".to_owned()];
        comment(&mut text, "upload::1", &parsed(&bytes), &nodes);
        assert_eq!(text, "upload::1 packet 7: client tsq 812.3 us, ring 0.001 us | router rx 20 us");
    }
}
