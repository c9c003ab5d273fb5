// SPDX-License-Identifier: Apache-2.0
//! Counters of devices and qdiscs, from route netlink (`if_link.h`, `gen_stats.h` and `rtnetlink.h` of
//! include/uapi/linux).
//!
//! Every device except `lo` is read, with all of its qdiscs. The kernel's default qdiscs are included, since they queue
//! packets too.

use std::collections::{BTreeMap, HashMap};
use std::io::Result;

use nix::sys::socket::SockProtocol;

use crate::column::Cell;
use crate::netlink::{traffic, u32_at, u64_at, Attributes, Socket, IFINFOMSG, TCMSG};
use crate::records::Records;
use crate::report::{self, Failure};
use crate::tables::Table;
use crate::{qdisc_options, qdisc_stat};

const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const RTM_GETTCLASS: u16 = 42;
const IFF_LOOPBACK: u32 = 0x8;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS64: u16 = 23;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_DUMP_INVISIBLE: u8 = 10;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;

/// The devices of one node.
pub struct Devices {
    node: String,
    socket: Socket,
    /// Set-up's qdiscs and later changes by device, handle and parent; None: changes are not recorded.
    recorded: Option<Recorded>,
}

type Recorded = HashMap<(u32, u32, u32), Options>;

/// A qdisc's kind, and its options as the kernel has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Options {
    kind: String,
    content: Vec<u8>,
    stab: Vec<u8>,
}

impl Options {
    fn words(&self) -> String {
        qdisc_options::words(&self.kind, &self.content, &self.stab)
    }
}

struct Link {
    name: String,
    /// The counters in the order of `struct rtnl_link_stats64`: packets, bytes, errors, drops, each received and sent.
    counters: [u64; 8],
}

#[derive(Debug, PartialEq, Eq)]
struct Qdisc {
    device: u32,
    number: u32,
    parent_number: u32,
    handle: String,
    parent: String,
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    requeues: u64,
    qlen: u64,
    backlog: u64,
    /// The qdisc's special counters, in the kernel's layout.
    app: Vec<u8>,
    options: Options,
}

impl Devices {
    /// Opens a socket in the namespace of the calling thread.
    pub fn open(node: &str) -> Result<Self> {
        Ok(Self { node: node.to_owned(), socket: Socket::open(SockProtocol::NetlinkRoute)?, recorded: None })
    }

    /// Stores the current qdiscs as those of the set-up. From now on, samples record changes.
    pub fn with_baseline(mut self) -> Result<Self> {
        let qdiscs = self.qdiscs()?;
        self.recorded = Some(qdiscs.into_iter().map(|qdisc| (qdisc.key(), qdisc.options)).collect());
        Ok(self)
    }

    fn links(&mut self) -> Result<BTreeMap<u32, Link>> {
        let mut links = BTreeMap::new();
        self.socket.dump(RTM_GETLINK, &[0; IFINFOMSG], |body| links.extend(Link::parse(body)))?;
        Ok(links)
    }

    fn qdiscs(&mut self) -> Result<Vec<Qdisc>> {
        let mut question = [0; TCMSG + 4];
        question[TCMSG] = 4; // an attribute without content
        question[TCMSG + 2] = TCA_DUMP_INVISIBLE;
        let mut qdiscs = Vec::new();
        self.socket.dump(RTM_GETQDISC, &question, |body| qdiscs.extend(Qdisc::parse(body)))?;
        for index in 0..qdiscs.len() {
            if qdisc_stat::CLASSFUL.contains(&qdiscs[index].options.kind.as_str()) {
                let (device, handle) = (qdiscs[index].device, qdiscs[index].number);
                self.socket.dump(RTM_GETTCLASS, &traffic(device, 0, handle), |body| {
                    qdiscs.extend(Qdisc::parse(body).map(Qdisc::into_class));
                })?;
            }
        }
        Ok(qdiscs)
    }

    pub fn names(&mut self) -> report::Result<Vec<String>> {
        let links = self.links().map_err(|error| Failure::system("listing devices", error))?;
        Ok(links.into_values().map(|link| link.name).collect())
    }

    pub fn sample(&mut self, t_ns: i64, records: &mut Records) -> report::Result<()> {
        let counters = self.links().and_then(|links| Ok((links, self.qdiscs()?)));
        let (links, qdiscs) = counters.map_err(|error| Failure::system("reading device counters", error))?;
        for link in links.values() {
            let head = [Cell::I64(t_ns), Cell::Text(&self.node), Cell::Text(&link.name)];
            let [rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped] =
                link.counters.map(Cell::U64);
            let tail =
                [rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors];
            records.push(Table::Device, head.into_iter().chain(tail))?;
        }
        for qdisc in &qdiscs {
            let Some(link) = links.get(&qdisc.device) else { continue };
            let head = [Cell::I64(t_ns), Cell::Text(&self.node), Cell::Text(&link.name)];
            records.push(Table::Qdisc, head.into_iter().chain(qdisc.cells()))?;
            let mut result = Ok(());
            qdisc_stat::read(&qdisc.options.kind, &qdisc.app, &qdisc.options.content, |name, value| {
                let texts = [&qdisc.handle, &qdisc.options.kind, name].map(Cell::Text);
                let row = head.into_iter().chain(texts).chain([Cell::I64(value)]);
                if result.is_ok() {
                    result = records.push(Table::QdiscStat, row);
                }
            });
            result?;
            if let Some(words) = self.recorded.as_mut().and_then(|recorded| qdisc.change(recorded)) {
                let texts = [&qdisc.handle, &qdisc.parent, &words].map(|text| Cell::Text(text));
                records.push(Table::QdiscChange, head.into_iter().chain(texts))?;
            }
        }
        Ok(())
    }
}

fn text(content: &[u8]) -> String {
    let end = content.iter().position(|byte| *byte == 0).unwrap_or(content.len());
    String::from_utf8_lossy(&content[..end]).into_owned()
}

impl Link {
    /// Parses a device; None for the loopback device.
    fn parse(body: &[u8]) -> Option<(u32, Self)> {
        let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
        let mut link = Self { name: String::new(), counters: [0; 8] };
        for (kind, content) in Attributes::after(body, IFINFOMSG) {
            match kind {
                IFLA_IFNAME => link.name = text(content),
                IFLA_STATS64 => {
                    for (counter, at) in link.counters.iter_mut().zip((0..).step_by(8)) {
                        *counter = u64_at(content, at)?;
                    }
                }
                _ => {}
            }
        }
        (flags & IFF_LOOPBACK == 0).then_some((index, link))
    }
}

impl Qdisc {
    fn parse(body: &[u8]) -> Option<Self> {
        let mut qdisc = Self {
            device: u32_at(body, 4)?,
            number: u32_at(body, 8)?,
            parent_number: u32_at(body, 12)?,
            handle: handle(u32_at(body, 8)?),
            parent: parent(u32_at(body, 12)?),
            bytes: 0,
            packets: 0,
            drops: 0,
            overlimits: 0,
            requeues: 0,
            qlen: 0,
            backlog: 0,
            app: Vec::new(),
            options: Options::default(),
        };
        for (kind, content) in Attributes::after(body, TCMSG) {
            match kind {
                TCA_KIND => qdisc.options.kind = text(content),
                TCA_OPTIONS => content.clone_into(&mut qdisc.options.content),
                TCA_STAB => content.clone_into(&mut qdisc.options.stab),
                TCA_STATS2 => qdisc.read_stats(content)?,
                _ => {}
            }
        }
        Some(qdisc)
    }

    /// Converts a parsed qdisc to a class: a class has the same message, with its number instead of the handle.
    fn into_class(self) -> Self {
        let kind = format!("{} class", self.options.kind);
        Self { options: Options { kind, ..self.options }, handle: parent(self.number), ..self }
    }

    fn key(&self) -> (u32, u32, u32) {
        (self.device, self.number, self.parent_number)
    }

    /// Returns the options as words if they have changed since the last sample.
    fn change(&self, recorded: &mut Recorded) -> Option<String> {
        if recorded.get(&self.key()) == Some(&self.options) {
            return None;
        }
        let words = self.options.words();
        let last = recorded.insert(self.key(), self.options.clone());
        last.is_none_or(|last| last.words() != words).then_some(words)
    }

    fn read_stats(&mut self, stats: &[u8]) -> Option<()> {
        for (kind, content) in Attributes::after(stats, 0) {
            let word = |at| u32_at(content, at).map(u64::from);
            match kind {
                TCA_STATS_BASIC => (self.bytes, self.packets) = (u64_at(content, 0)?, word(8)?),
                TCA_STATS_PKT64 => self.packets = u64_at(content, 0)?,
                TCA_STATS_QUEUE => {
                    (self.qlen, self.backlog, self.drops) = (word(0)?, word(4)?, word(8)?);
                    (self.requeues, self.overlimits) = (word(12)?, word(16)?);
                }
                TCA_STATS_APP => content.clone_into(&mut self.app),
                _ => {}
            }
        }
        Some(())
    }

    fn cells(&self) -> [Cell<'_>; 10] {
        [
            Cell::Text(&self.options.kind),
            Cell::Text(&self.handle),
            Cell::Text(&self.parent),
            Cell::U64(self.bytes),
            Cell::U64(self.packets),
            Cell::U64(self.drops),
            Cell::U64(self.overlimits),
            Cell::U64(self.requeues),
            Cell::U64(self.qlen),
            Cell::U64(self.backlog),
        ]
    }
}

/// Formats a handle like `tc`: `1:`.
fn handle(handle: u32) -> String {
    format!("{:x}:", handle >> 16)
}

/// Formats a qdisc's parent like `tc`: a class such as `1:10`, or `root`, `ingress` and the like.
fn parent(class: u32) -> String {
    match class {
        TC_H_ROOT => "root".to_owned(),
        TC_H_INGRESS => "ingress".to_owned(),
        _ => match class & 0xffff {
            0 => handle(class),
            minor => format!("{:x}:{minor:x}", class >> 16),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_written_like_tc_writes_them() {
        assert_eq!(handle(0x0001_0000), "1:");
        assert_eq!(handle(0x8003_0000), "8003:");
        assert_eq!(parent(0x0001_0010), "1:10");
        assert_eq!(parent(0x0001_0000), "1:");
        assert_eq!(parent(TC_H_ROOT), "root");
        assert_eq!(parent(TC_H_INGRESS), "ingress");
    }

    #[test]
    fn a_qdisc_is_read_with_its_nested_statistics() {
        let to_bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let mut body = to_bytes(&[0, 4, 0x0001_0000, TC_H_ROOT, 0]);
        body.extend(b"\x08\x00\x01\x00htb\0");
        body.extend(b"\x30\x00\x07\x00");
        body.extend(b"\x14\x00\x01\x00");
        body.extend(to_bytes(&[1_000, 0, 10, 0]));
        body.extend(b"\x18\x00\x03\x00");
        body.extend(to_bytes(&[1, 2, 3, 4, 5]));
        let qdisc = Qdisc::parse(&body).expect("a qdisc");
        assert_eq!((qdisc.device, qdisc.options.kind.as_str(), qdisc.parent.as_str()), (4, "htb", "root"));
        assert_eq!((qdisc.bytes, qdisc.packets, qdisc.qlen, qdisc.backlog), (1_000, 10, 1, 2));
        assert_eq!((qdisc.drops, qdisc.requeues, qdisc.overlimits), (3, 4, 5));
    }

    #[test]
    fn the_loopback_device_is_left_out() {
        let mut body = [0; IFINFOMSG];
        assert!(Link::parse(&body).is_some());
        body[8] = 0x08; // IFF_LOOPBACK
        assert!(Link::parse(&body).is_none());
    }
}
