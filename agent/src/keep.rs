// SPDX-License-Identifier: Apache-2.0
//! A device of the machine as it was: read before a run changes it, given back after, and compared.
//!
//! Kept are name and number, up or down, MTU, queue length, hardware address and group; addresses (their lifetimes go on),
//! routes, permanent neighbours; qdiscs, classes and filters; offloads, moderation, rings, channels and pause; its
//! sysctls (`net.ipv4.conf.NAME.…` and the like) and the settings of its queues. What the kernel does not let a
//! device take along (a bridge's port, a program at XDP …) is an `obstacle`: such a device is not touched.

use std::collections::BTreeMap;
use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use serde::{Deserialize, Serialize};

use crate::keep_net::{all_same, attribute, intricate, is_own, Net, Row, Table};
use crate::netlink::{self, push, u16_at, u32_at, Attributes, IFINFOMSG};
use crate::{clock, ethtool, sys};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NEW_IFINDEX: u16 = 49;
const UP: u32 = 1;
/// UP, NOARP, PROMISC, ALLMULTI, MULTICAST
const FLAGS: u32 = 0x1 | 0x80 | 0x100 | 0x200 | 0x1000;
/// Address, MTU, queue length, group, GSO segments, GSO size, GRO size, the same for IPv4.
const SETTINGS: [u16; 8] = [1, 4, 13, 27, 41, 58, 63, 64];
/// Settings that ethtool reads and writes as one structure: what they are called, the two commands, its size in bytes.
const STRUCTURES: [(&str, u32, u32, usize); 4] = [
    ("channels", 0x3c, 0x3d, 36),
    ("rings", 0x10, 0x11, 36),
    ("interrupt moderation", 0x0e, 0x0f, 92),
    ("pause", 0x12, 0x13, 16),
];
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const SYSCTLS: [&str; 4] = ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"];
const ATTRIBUTES: [&str; 3] = ["gro_flush_timeout", "napi_defer_hard_irqs", "threaded"];
const QUEUES: [&str; 8] = [
    "rps_cpus",
    "rps_flow_cnt",
    "xps_cpus",
    "xps_rxqs",
    "tx_maxrate",
    "byte_queue_limits/limit_max",
    "byte_queue_limits/limit_min",
    "byte_queue_limits/hold_time",
];

/// How long what the kernel does by itself may take: trying out IPv6 addresses, a carrier.
const SETTLING: i64 = 4_000_000_000;
const STEP: i64 = 100_000_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    name: String,
    link: Link,
    read_ns: i64,
    addresses: Vec<Row>,
    routes: Vec<Row>,
    neighbours: Vec<Row>,
    qdiscs: Vec<Row>,
    classes: Vec<Row>,
    filters: Vec<Row>,
    /// What ethtool says, by the place in `STRUCTURES`.
    structures: BTreeMap<usize, Vec<u8>>,
    /// Which offloads are asked for, a bit each.
    features: Vec<u32>,
    files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Link {
    pub name: String,
    index: u32,
    flags: u32,
    settings: BTreeMap<u16, Vec<u8>>,
    program: bool,
    loopback: bool,
}

impl Kept {
    /// A device of the namespace that the thread is in, whose /sys and /proc are to be seen.
    pub fn read(name: &str) -> Result<Self> {
        let mut net = Net::open()?;
        let link = find(&mut net, |link| link.name == name)?.ok_or(Errno::ENODEV)?;
        let index = link.index;
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let control = control.as_fd();
        let mut rows = |table| net.rows(table, index);
        Ok(Self {
            name: name.to_owned(),
            read_ns: clock::monotonic(),
            addresses: rows(Table::Address)?,
            routes: rows(Table::Route)?,
            neighbours: rows(Table::Neighbour)?,
            qdiscs: rows(Table::Qdisc)?,
            classes: rows(Table::Class)?,
            filters: rows(Table::Filter)?,
            structures: (0..STRUCTURES.len())
                .filter_map(|place| Some((place, structure(control, name, place)?)))
                .collect(),
            features: features(control, name).into_iter().map(|feature| feature.asked).collect(),
            files: files(&Files::open()?, name),
            link,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why the device cannot be taken and given back, if so.
    pub fn obstacle(&self) -> Result<Option<String>> {
        let files = Files::open()?;
        let folder = format!("/sys/class/net/{}", self.name);
        let upper =
            files.names(&folder).into_iter().find_map(|name| Some(name.strip_prefix("upper_")?.to_owned()));
        Ok(match upper {
            _ if self.link.loopback => Some("is the loopback device".to_owned()),
            Some(other) => Some(format!("carries or belongs to {other}, which would not follow it")),
            None if self.link.program => Some("runs an XDP program, which it would lose".to_owned()),
            None if files.path(&format!("{folder}/phy80211")).exists() => {
                Some("is a radio, which needs its network".to_owned())
            }
            None if intricate(&mut Net::open()?, self.link.index)? => {
                Some("is a way of a multipath route or of a nexthop object, which would be lost".to_owned())
            }
            None => None,
        })
    }

    /// Moves the device from the thread's namespace into another, where it gets a name.
    pub fn hand_over(&self, to: BorrowedFd, name: &str) -> Result<()> {
        let mut net = Net::open()?;
        change(&mut net, self.link.index, (0, UP), &[])?;
        relocate(&mut net, self.link.index, to, name, None)
    }

    /// Takes the device back from another namespace, if it is there under that name or its own: the thread is in that
    /// namespace. Gives whether it was there.
    pub fn fetch(&self, within: &str, home: BorrowedFd) -> Result<bool> {
        let mut net = Net::open()?;
        let Some(link) = find(&mut net, |link| link.name == within)? else { return Ok(false) };
        change(&mut net, link.index, (0, UP), &[])?;
        let number = Some(self.link.index);
        relocate(&mut net, link.index, home, &self.name, number)
            .or_else(|_| relocate(&mut net, link.index, home, &self.name, None))?;
        Ok(true)
    }

    /// Whether the device is in the thread's namespace, by its number or, if that is another's now, its name.
    pub fn is_here(&self) -> Result<bool> {
        Ok(self.link_here(&mut Net::open()?)?.is_some())
    }

    fn link_here(&self, net: &mut Net) -> Result<Option<Link>> {
        let number = find(net, |link| link.index == self.link.index && link.name == self.name)?;
        if number.is_some() {
            Ok(number)
        } else {
            find(net, |link| link.name == self.name)
        }
    }

    /// Makes the device, which is in the thread's namespace, what it was. Gives what could not be restored: nothing if
    /// all is as before.
    pub fn restore(&self) -> Vec<String> {
        let deadline = clock::monotonic() + SETTLING;
        loop {
            let tried = self.attempt();
            let left = match Self::read(&self.name) {
                Ok(now) => self.differences(&now),
                Err(error) => vec![error.to_string()],
            };
            if left.is_empty() || clock::monotonic() > deadline {
                let mut said: Vec<String> =
                    left.iter().map(|what| format!("{}: {what}", self.name)).collect();
                if let (Err(error), false) = (tried, left.is_empty()) {
                    said.push(format!("{}: {error}", self.name));
                }
                return said;
            }
            clock::sleep(STEP);
        }
    }

    fn attempt(&self) -> Result<()> {
        let mut net = Net::open()?;
        let link = self.link_here(&mut net)?.ok_or(Errno::ENODEV)?;
        let age_s = u32::try_from((clock::monotonic() - self.read_ns) / 1_000_000_000).unwrap_or(u32::MAX);
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let control = control.as_fd();
        let mut first = Ok(());
        let mut note = |result: Result<()>| first = std::mem::replace(&mut first, Ok(())).and(result);
        for (place, wanted) in &self.structures {
            if structure(control, &self.name, *place).as_ref() != Some(wanted) {
                note(set_structure(control, &self.name, *place, wanted));
            }
        }
        note(set_features(control, &self.name, &self.features));
        let settings: Vec<(u16, &[u8])> = self
            .link
            .settings
            .iter()
            .filter(|(kind, value)| link.settings.get(kind) != Some(value))
            .map(|(kind, value)| (*kind, value.as_slice()))
            .collect();
        for setting in settings {
            note(change(&mut net, link.index, (0, 0), &[setting]));
        }
        let files = Files::open()?;
        files.write(&self.files);
        let traffic = [&self.qdiscs[..], &self.classes, &self.filters];
        // the kernel's own qdiscs come only to a device that is up, and stay when it goes down
        if self.qdiscs.iter().any(is_own) {
            note(net.restore_traffic(link.index, traffic));
        }
        if self.link.flags != link.flags {
            note(change(&mut net, link.index, (self.link.flags, self.link.flags ^ link.flags), &[]));
            files.write(&self.files); // some the kernel sets when a device comes up
        }
        note(net.restore(Table::Address, link.index, &self.addresses, age_s));
        note(net.restore(Table::Route, link.index, &self.routes, age_s));
        note(net.restore(Table::Neighbour, link.index, &self.neighbours, age_s));
        note(net.restore_traffic(link.index, traffic));
        first
    }

    /// What of the device is not now as it was then.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut hold = |same: bool, what: &str| {
            if !same {
                found.push(format!("its {what} could not be restored"));
            }
        };
        hold(self.link.flags == now.link.flags, "flags");
        hold(self.link.settings == now.link.settings, "MTU, queue length, hardware address or group");
        for (table, then, now, what) in [
            (Table::Address, &self.addresses, &now.addresses, "addresses"),
            (Table::Route, &self.routes, &now.routes, "routes"),
            (Table::Neighbour, &self.neighbours, &now.neighbours, "neighbours"),
            (Table::Qdisc, &self.qdiscs, &now.qdiscs, "qdiscs"),
            (Table::Class, &self.classes, &now.classes, "classes"),
            (Table::Filter, &self.filters, &now.filters, "filters"),
        ] {
            hold(all_same(table, then, now), what);
        }
        hold(self.features == now.features, "offloads");
        for (place, (what, ..)) in STRUCTURES.iter().enumerate() {
            hold(self.structures.get(&place) == now.structures.get(&place), what);
        }
        for (path, value) in &self.files {
            if now.files.get(path) != Some(value) {
                found.push(format!("{} could not be restored to {}", path, value.trim()));
            }
        }
        found
    }
}

/// The first device of the thread's namespace that is meant.
pub fn find(net: &mut Net, meant: impl Fn(&Link) -> bool) -> Result<Option<Link>> {
    let mut found = None;
    net.0.dump(RTM_GETLINK, &[0; IFINFOMSG], |body| {
        if found.is_none() {
            found = Link::of(body).filter(|link| meant(link));
        }
    })?;
    Ok(found)
}

impl Link {
    fn of(body: &[u8]) -> Option<Self> {
        const ARPHRD_LOOPBACK: u16 = 772;
        const XDP: u16 = 43;
        const ATTACHED: u16 = 2;
        let name = attribute(body, IFINFOMSG, IFLA_IFNAME)?;
        let xdp = attribute(body, IFINFOMSG, XDP).and_then(|xdp| attribute(xdp, 0, ATTACHED));
        Some(Self {
            name: String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned(),
            index: u32_at(body, 4)?,
            flags: u32_at(body, 8)? & FLAGS,
            settings: Attributes::after(body, IFINFOMSG)
                .filter(|(kind, _)| SETTINGS.contains(kind))
                .map(|(kind, content)| (kind, content.to_vec()))
                .collect(),
            program: xdp.is_some_and(|attached| attached.first() != Some(&0)),
            loopback: u16_at(body, 2) == Some(ARPHRD_LOOPBACK),
        })
    }

    /// Deletes the device, which is in the thread's namespace.
    pub fn delete(&self, net: &mut Net) -> Result<()> {
        net.0.change(RTM_NEWLINK + 1, 0, &message(self.index, (0, 0), &[]))
    }
}

/// `struct ifinfomsg` and attributes; flags: their values, and which of them are meant.
fn message(index: u32, flags: (u32, u32), attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = netlink::link(index, flags.0, flags.1).to_vec();
    for (kind, content) in attributes {
        push(&mut body, *kind, content);
    }
    body
}

fn change(net: &mut Net, index: u32, flags: (u32, u32), attributes: &[(u16, &[u8])]) -> Result<()> {
    net.0.change(RTM_NEWLINK, 0, &message(index, flags, attributes))
}

/// To another namespace, with a name and, if the kernel can, a number there.
fn relocate(net: &mut Net, index: u32, to: BorrowedFd, name: &str, number: Option<u32>) -> Result<()> {
    let (fd, name) = (to.as_raw_fd().to_ne_bytes(), [name.as_bytes(), &[0]].concat());
    let number = number.map(u32::to_ne_bytes);
    let mut attributes: Vec<(u16, &[u8])> = vec![(IFLA_NET_NS_FD, &fd), (IFLA_IFNAME, &name)];
    attributes.extend(number.iter().map(|number| (IFLA_NEW_IFINDEX, number.as_slice())));
    change(net, index, (0, 0), &attributes)
}

fn structure(control: BorrowedFd, name: &str, place: usize) -> Option<Vec<u8>> {
    let (_, get, _, size) = STRUCTURES[place];
    let answer = ethtool::ask(control, name, &[get], size).ok()?;
    Some(answer[4..size].to_vec())
}

fn set_structure(control: BorrowedFd, name: &str, place: usize, wanted: &[u8]) -> Result<()> {
    let (_, _, set, size) = STRUCTURES[place];
    let words = wanted.chunks_exact(4).map(|word| u32::from_ne_bytes(*word.first_chunk().expect("is 4")));
    let command: Vec<u32> = std::iter::once(set).chain(words).collect();
    ethtool::ask(control, name, &command, size).map(drop)
}

/// 32 offloads: which can be set, and which are asked for.
struct Features {
    settable: u32,
    asked: u32,
}

/// `struct ethtool_gfeatures`: command, how many blocks; of each what is there, asked for, active and fixed.
fn features(control: BorrowedFd, name: &str) -> Vec<Features> {
    let blocks = ethtool::features(control, name).unwrap_or_default().div_ceil(32);
    let count = u32::try_from(blocks).expect("is small");
    let Ok(answer) = ethtool::ask(control, name, &[ETHTOOL_GFEATURES, count], 8 + 16 * blocks) else {
        return Vec::new();
    };
    let word = |block: usize, place: usize| u32_at(&answer, 8 + 16 * block + 4 * place).unwrap_or_default();
    let block = |block| Features { settable: word(block, 0) & !word(block, 3), asked: word(block, 1) };
    (0..blocks).map(block).collect()
}

fn set_features(control: BorrowedFd, name: &str, wanted: &[u32]) -> Result<()> {
    let now = features(control, name);
    if now.iter().zip(wanted).all(|(now, wanted)| now.asked == *wanted) {
        return Ok(());
    }
    let blocks = u32::try_from(now.len()).expect("is small");
    let mut command = vec![ETHTOOL_SFEATURES, blocks];
    command.extend(now.iter().zip(wanted).flat_map(|(now, wanted)| [now.settable, *wanted & now.settable]));
    ethtool::ask(control, name, &command, 8 + 8 * now.len()).map(drop)
}

/// /proc and /sys as the thread's namespace has them, whatever is mounted.
struct Files(OwnedFd);

impl Files {
    fn open() -> Result<Self> {
        sys::mount_detached_sysfs().map(Self)
    }

    fn path(&self, name: &str) -> PathBuf {
        match name.strip_prefix("/sys/") {
            Some(rest) => format!("/proc/self/fd/{}/{rest}", self.0.as_raw_fd()).into(),
            None => name.into(),
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }

    /// Those that hold something else; what cannot be written shows in the comparison.
    fn write(&self, wanted: &BTreeMap<String, String>) {
        for (name, value) in wanted {
            let path = self.path(name);
            if fs::read_to_string(&path).is_ok_and(|now| now != *value) {
                let _ = fs::write(path, value);
            }
        }
    }
}

/// The device's files that hold a setting, with what they hold.
fn files(files: &Files, device: &str) -> BTreeMap<String, String> {
    let folder = format!("/sys/class/net/{device}");
    let mut names: Vec<String> = ATTRIBUTES.iter().map(|file| format!("{folder}/{file}")).collect();
    for queue in files.names(&format!("{folder}/queues")) {
        names.extend(QUEUES.iter().map(|file| format!("{folder}/queues/{queue}/{file}")));
    }
    for table in SYSCTLS {
        let folder = format!("/proc/sys/net/{table}/{device}");
        names.extend(files.names(&folder).into_iter().map(|file| format!("{folder}/{file}")));
    }
    let read = |name: String| Some((name.clone(), fs::read_to_string(files.path(&name)).ok()?));
    names.into_iter().filter_map(read).collect()
}
