// SPDX-License-Identifier: Apache-2.0
//! A snapshot of a device of the machine: read before a run changes it, restored after, and compared.
//!
//! The snapshot contains:
//!
//! * name and number, up or down, MTU, queue length, hardware address and group
//! * addresses (their lifetimes continue), routes, permanent neighbours
//! * qdiscs, classes and filters
//! * offloads, moderation, rings, channels and pause
//! * the device's sysctls (`net.ipv4.conf.NAME.…` and the like) and the settings of its queues
//!
//! If a device would lose other state (a bridge's port, a program at XDP …), this is an `obstacle`: the run does not
//! change such a device.

use std::collections::BTreeMap;
use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use serde::{Deserialize, Serialize};

use crate::device_rows::{has_multipath_route, is_default, same_rows, Net, Row, Table};
use crate::netlink::{self, content_of, push, u16_at, u32_at, Attributes, IFINFOMSG};
use crate::{clock, ethtool, sys};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NEW_IFINDEX: u16 = 49;
const UP: u32 = 1;
/// UP, NOARP, PROMISC, ALLMULTI, MULTICAST
const FLAGS: u32 = 0x1 | 0x80 | 0x100 | 0x200 | 0x1000;
/// Attributes: address, MTU, queue length, group, GSO segments, GSO size, GRO size, and both sizes for IPv4.
const SETTINGS: [u16; 8] = [1, 4, 13, 27, 41, 58, 63, 64];
/// Settings that ethtool reads and writes as one structure: name, the two commands, size in bytes.
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

/// The timeout for changes that the kernel makes by itself: duplicate address detection of IPv6, a carrier.
const SETTLE_TIMEOUT_NS: i64 = 4_000_000_000;
const RETRY_INTERVAL_NS: i64 = 100_000_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeviceSnapshot {
    name: String,
    link: Link,
    read_ns: i64,
    addresses: Vec<Row>,
    routes: Vec<Row>,
    neighbours: Vec<Row>,
    qdiscs: Vec<Row>,
    classes: Vec<Row>,
    filters: Vec<Row>,
    /// The structures of ethtool by their index in `STRUCTURES`.
    structures: BTreeMap<usize, Vec<u8>>,
    /// The requested offloads, one bit each.
    features: Vec<u32>,
    files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Link {
    pub name: String,
    index: u32,
    flags: u32,
    settings: BTreeMap<u16, Vec<u8>>,
    has_xdp: bool,
    loopback: bool,
}

impl DeviceSnapshot {
    /// Reads a device of the thread's namespace, whose /sys and /proc must be visible.
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
                .filter_map(|index| Some((index, structure(control, name, index)?)))
                .collect(),
            features: features(control, name).into_iter().map(|feature| feature.requested).collect(),
            files: files(&Files::open()?, name),
            link,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the reason why the device cannot be taken and restored, if one exists.
    pub fn obstacle(&self) -> Result<Option<String>> {
        let files = Files::open()?;
        let folder = format!("/sys/class/net/{}", self.name);
        let upper =
            files.names(&folder).into_iter().find_map(|name| Some(name.strip_prefix("upper_")?.to_owned()));
        Ok(match upper {
            _ if self.link.loopback => Some("is the loopback device".to_owned()),
            Some(upper) => Some(format!("carries or belongs to {upper}, which would not follow it")),
            None if self.link.has_xdp => Some("runs an XDP program, which it would lose".to_owned()),
            None if files.path(&format!("{folder}/phy80211")).exists() => {
                Some("is a radio, which needs its network".to_owned())
            }
            None if has_multipath_route(&mut Net::open()?, self.link.index)? => {
                Some("is part of a multipath route or of a nexthop object, which would be lost".to_owned())
            }
            None => None,
        })
    }

    /// Moves the device from the thread's namespace into another, under a new name.
    pub fn move_to(&self, to: BorrowedFd, name: &str) -> Result<()> {
        let mut net = Net::open()?;
        change(&mut net, self.link.index, (0, UP), &[])?;
        relocate(&mut net, self.link.index, to, name, None)
    }

    /// Moves the device `name_there` of the thread's namespace back to `home`. Returns false if no such device exists.
    pub fn take_back(&self, name_there: &str, home: BorrowedFd) -> Result<bool> {
        let mut net = Net::open()?;
        let Some(link) = find(&mut net, |link| link.name == name_there)? else { return Ok(false) };
        change(&mut net, link.index, (0, UP), &[])?;
        let number = Some(self.link.index);
        relocate(&mut net, link.index, home, &self.name, number)
            .or_else(|_| relocate(&mut net, link.index, home, &self.name, None))?;
        Ok(true)
    }

    /// Returns whether the device is in the thread's namespace, by its number or, if another device has the number, by
    /// its name.
    pub fn is_present(&self) -> Result<bool> {
        Ok(self.current_link(&mut Net::open()?)?.is_some())
    }

    fn current_link(&self, net: &mut Net) -> Result<Option<Link>> {
        let number = find(net, |link| link.index == self.link.index && link.name == self.name)?;
        if number.is_some() {
            Ok(number)
        } else {
            find(net, |link| link.name == self.name)
        }
    }

    /// Restores the device, which is in the thread's namespace. Returns the differences that remain: none if everything
    /// is as before.
    pub fn restore(&self) -> Vec<String> {
        let deadline = clock::monotonic() + SETTLE_TIMEOUT_NS;
        loop {
            let result = self.attempt();
            let differences = match Self::read(&self.name) {
                Ok(current) => self.differences(&current),
                Err(error) => vec![error.to_string()],
            };
            if differences.is_empty() || clock::monotonic() > deadline {
                let mut differences: Vec<String> =
                    differences.iter().map(|difference| format!("{}: {difference}", self.name)).collect();
                if let (Err(error), false) = (result, differences.is_empty()) {
                    differences.push(format!("{}: {error}", self.name));
                }
                return differences;
            }
            clock::sleep(RETRY_INTERVAL_NS);
        }
    }

    fn attempt(&self) -> Result<()> {
        let mut net = Net::open()?;
        let link = self.current_link(&mut net)?.ok_or(Errno::ENODEV)?;
        let age_s = u32::try_from((clock::monotonic() - self.read_ns) / 1_000_000_000).unwrap_or(u32::MAX);
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let control = control.as_fd();
        let mut first_error = Ok(());
        let mut note =
            |result: Result<()>| first_error = std::mem::replace(&mut first_error, Ok(())).and(result);
        for (index, saved) in &self.structures {
            if structure(control, &self.name, *index).as_ref() != Some(saved) {
                note(set_structure(control, &self.name, *index, saved));
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
        // the kernel adds its default qdiscs only to a device that is up; they remain when it goes down
        if self.qdiscs.iter().any(is_default) {
            note(net.restore_traffic(link.index, traffic));
        }
        if self.link.flags != link.flags {
            note(change(&mut net, link.index, (self.link.flags, self.link.flags ^ link.flags), &[]));
            files.write(&self.files); // the kernel sets some of them when a device comes up
        }
        note(net.restore(Table::Address, link.index, &self.addresses, age_s));
        note(net.restore(Table::Route, link.index, &self.routes, age_s));
        note(net.restore(Table::Neighbour, link.index, &self.neighbours, age_s));
        note(net.restore_traffic(link.index, traffic));
        first_error
    }

    /// Returns the differences between the snapshot and the current state.
    pub fn differences(&self, current: &Self) -> Vec<String> {
        let mut differences: Vec<String> = Vec::new();
        let mut check = |same: bool, subject: &str| {
            if !same {
                differences.push(format!("its {subject} could not be restored"));
            }
        };
        check(self.link.flags == current.link.flags, "flags");
        check(self.link.settings == current.link.settings, "MTU, queue length, hardware address or group");
        for (table, saved, current, subject) in [
            (Table::Address, &self.addresses, &current.addresses, "addresses"),
            (Table::Route, &self.routes, &current.routes, "routes"),
            (Table::Neighbour, &self.neighbours, &current.neighbours, "neighbours"),
            (Table::Qdisc, &self.qdiscs, &current.qdiscs, "qdiscs"),
            (Table::Class, &self.classes, &current.classes, "classes"),
            (Table::Filter, &self.filters, &current.filters, "filters"),
        ] {
            check(same_rows(table, saved, current), subject);
        }
        check(self.features == current.features, "offloads");
        for (index, (subject, ..)) in STRUCTURES.iter().enumerate() {
            check(self.structures.get(&index) == current.structures.get(&index), subject);
        }
        for (path, value) in &self.files {
            if current.files.get(path) != Some(value) {
                differences.push(format!("{} could not be restored to {}", path, value.trim()));
            }
        }
        differences
    }
}

/// Returns the first matching device of the thread's namespace.
pub fn find(net: &mut Net, predicate: impl Fn(&Link) -> bool) -> Result<Option<Link>> {
    let mut matching = None;
    net.0.dump(RTM_GETLINK, &[0; IFINFOMSG], |body| {
        if matching.is_none() {
            matching = Link::of(body).filter(|link| predicate(link));
        }
    })?;
    Ok(matching)
}

impl Link {
    fn of(body: &[u8]) -> Option<Self> {
        const ARPHRD_LOOPBACK: u16 = 772;
        const XDP: u16 = 43;
        const ATTACHED: u16 = 2;
        let name = content_of(body, IFINFOMSG, IFLA_IFNAME)?;
        let xdp = content_of(body, IFINFOMSG, XDP).and_then(|xdp| content_of(xdp, 0, ATTACHED));
        Some(Self {
            name: String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned(),
            index: u32_at(body, 4)?,
            flags: u32_at(body, 8)? & FLAGS,
            settings: Attributes::after(body, IFINFOMSG)
                .filter(|(kind, _)| SETTINGS.contains(kind))
                .map(|(kind, content)| (kind, content.to_vec()))
                .collect(),
            has_xdp: xdp.is_some_and(|attached| attached.first() != Some(&0)),
            loopback: u16_at(body, 2) == Some(ARPHRD_LOOPBACK),
        })
    }

    /// Deletes the device, which is in the thread's namespace.
    pub fn delete(&self, net: &mut Net) -> Result<()> {
        net.0.change(RTM_NEWLINK + 1, 0, &message(self.index, (0, 0), &[]))
    }
}

/// Returns `struct ifinfomsg` and attributes. `flags`: their values, and the mask of those that change.
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

/// Moves a device to another namespace, with a new name and, if the kernel supports this, a given number.
fn relocate(net: &mut Net, index: u32, to: BorrowedFd, name: &str, number: Option<u32>) -> Result<()> {
    let (fd, name) = (to.as_raw_fd().to_ne_bytes(), [name.as_bytes(), &[0]].concat());
    let number = number.map(u32::to_ne_bytes);
    let mut attributes: Vec<(u16, &[u8])> = vec![(IFLA_NET_NS_FD, &fd), (IFLA_IFNAME, &name)];
    attributes.extend(number.iter().map(|number| (IFLA_NEW_IFINDEX, number.as_slice())));
    change(net, index, (0, 0), &attributes)
}

fn structure(control: BorrowedFd, name: &str, index: usize) -> Option<Vec<u8>> {
    let (_, get, _, size) = STRUCTURES[index];
    let answer = ethtool::request(control, name, &[get], size).ok()?;
    Some(answer[4..size].to_vec())
}

fn set_structure(control: BorrowedFd, name: &str, index: usize, saved: &[u8]) -> Result<()> {
    let (_, _, set, size) = STRUCTURES[index];
    let values = saved.chunks_exact(4).map(|word| u32::from_ne_bytes(*word.first_chunk().expect("is 4")));
    let command: Vec<u32> = std::iter::once(set).chain(values).collect();
    ethtool::request(control, name, &command, size).map(drop)
}

/// A block of 32 offloads: bitmaps of those that can be set and those that are requested.
struct Features {
    settable: u32,
    requested: u32,
}

/// Reads `struct ethtool_gfeatures`: command, number of blocks, then available, requested, active and fixed bits of
/// each.
fn features(control: BorrowedFd, name: &str) -> Vec<Features> {
    let blocks = ethtool::features(control, name).unwrap_or_default().div_ceil(32);
    let count = u32::try_from(blocks).expect("is small");
    let Ok(answer) = ethtool::request(control, name, &[ETHTOOL_GFEATURES, count], 8 + 16 * blocks) else {
        return Vec::new();
    };
    let word = |block: usize, index: usize| u32_at(&answer, 8 + 16 * block + 4 * index).unwrap_or_default();
    let block = |block| Features { settable: word(block, 0) & !word(block, 3), requested: word(block, 1) };
    (0..blocks).map(block).collect()
}

fn set_features(control: BorrowedFd, name: &str, saved: &[u32]) -> Result<()> {
    let current = features(control, name);
    if current.iter().zip(saved).all(|(current, saved)| current.requested == *saved) {
        return Ok(());
    }
    let blocks = u32::try_from(current.len()).expect("is small");
    let mut command = vec![ETHTOOL_SFEATURES, blocks];
    command.extend(
        current.iter().zip(saved).flat_map(|(current, saved)| [current.settable, *saved & current.settable]),
    );
    ethtool::request(control, name, &command, 8 + 8 * current.len()).map(drop)
}

/// /proc and /sys of the thread's namespace, independent of mounts.
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

    /// Writes files whose content differs. The comparison reports a file that cannot be written.
    fn write(&self, saved: &BTreeMap<String, String>) {
        for (name, value) in saved {
            let path = self.path(name);
            if fs::read_to_string(&path).is_ok_and(|current| current != *value) {
                let _ = fs::write(path, value);
            }
        }
    }
}

/// Reads the device's files that hold a setting.
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
