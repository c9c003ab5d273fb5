// SPDX-License-Identifier: Apache-2.0
//! The state of a device in route netlink, stored as the kernel's messages, which it accepts again (as `ip addr
//! restore` does).
//!
//! Two messages are the same if they differ only in counters, times and the device's number.

use std::io::{Error, Result};

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use serde::{Deserialize, Serialize};

use crate::netlink::{content_of, push, traffic, u16_at, u32_at, Attributes, Socket, CREATE, EXCL, TCMSG};

const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// The parents of the filters of a clsact.
const CLSACT: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STAB: u16 = 8;
const TCA_CHAIN: u16 = 11;

/// Qdiscs whose classes must be created; other qdiscs create their own.
const USER_CLASSES: [&[u8]; 6] = [b"htb\0", b"hfsc\0", b"drr\0", b"qfq\0", b"cbq\0", b"ets\0"];
/// Classifiers, and the attribute of their options that mixes requested flags with the state of hardware offload.
const FLAGS: [(&[u8], u16); 4] = [(b"u32\0", 11), (b"flower\0", 22), (b"matchall\0", 3), (b"bpf\0", 8)];
/// The flags that can be requested: not in hardware, not in software, verbose.
const REQUESTABLE: u32 = 0x13;

/// The kernel's tables with rows of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Address,
    Route,
    Neighbour,
    Qdisc,
    Class,
    Filter,
}

use Table::{Address, Class, Filter, Neighbour, Qdisc, Route};

impl Table {
    /// Returns the number of the first message (`RTM_NEW…`). The messages that delete and request rows follow it.
    fn new_message_type(self) -> u16 {
        match self {
            Address => 20,
            Route => 24,
            Neighbour => 28,
            Qdisc => 36,
            Class => 40,
            Filter => 44,
        }
    }

    fn header(self) -> usize {
        match self {
            Address => 8,
            Route | Neighbour => 12,
            Qdisc | Class | Filter => TCMSG,
        }
    }
}

/// One row: a message without its first header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row(Vec<u8>);

/// Route netlink of the namespace in which it was opened.
pub struct Net(pub Socket);

impl Net {
    pub fn open() -> Result<Self> {
        Ok(Self(Socket::open(SockProtocol::NetlinkRoute)?))
    }

    /// Returns the device's rows in the kernel's order, without those that the kernel creates by itself.
    pub fn rows(&mut self, table: Table, index: u32) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut collect = |body: &[u8]| {
            if is_restorable(table, body, index) {
                rows.push(Row(body.to_vec()));
            }
        };
        match table {
            Address | Neighbour => {
                self.0.dump(table.new_message_type() + 2, &vec![0; table.header()], &mut collect)?;
            }
            Route => {
                for family in [libc::AF_INET, libc::AF_INET6] {
                    let mut body = vec![0; table.header()];
                    body[0] = u8::try_from(family).expect("is small");
                    match self.0.dump(table.new_message_type() + 2, &body, &mut collect) {
                        Err(error) if family == libc::AF_INET6 && unsupported(&error) => {}
                        result => result?,
                    }
                }
            }
            Qdisc | Class => {
                self.0.dump(table.new_message_type() + 2, &traffic(index, 0, 0), &mut collect)?;
            }
            Filter => return self.filters(index),
        }
        Ok(rows)
    }

    /// Returns the filters, which the kernel lists by the qdisc or class to which they are attached.
    fn filters(&mut self, index: u32) -> Result<Vec<Row>> {
        let mut parents = Vec::new();
        for table in [Qdisc, Class] {
            let rows = self.rows(table, index)?;
            parents.extend(rows.iter().filter_map(|row| u32_at(&row.0, 8)).filter(|handle| *handle != 0));
        }
        parents.extend(CLSACT);
        let mut filters: Vec<Row> = Vec::new();
        for parent in parents {
            let collect = |body: &[u8]| {
                let is_filter =
                    u32_at(body, 8).is_some_and(|handle| handle != 0 && !is_root_table(body, handle));
                let is_duplicate = filters
                    .iter()
                    .any(|row| without_counters(Filter, &row.0) == without_counters(Filter, body));
                if is_filter && !is_duplicate && is_restorable(Filter, body, index) {
                    filters.push(Row(body.to_vec()));
                }
            };
            match self.0.dump(Filter.new_message_type() + 2, &traffic(index, 0, parent), collect) {
                Err(error) if unsupported(&error) => {} // filters cannot be attached here
                result => result?,
            }
        }
        Ok(filters)
    }

    /// Changes the device's rows to the saved ones, under its current number. `age_s`: seconds since they were read.
    pub fn restore(&mut self, table: Table, index: u32, saved: &[Row], age_s: u32) -> Result<()> {
        for row in self.rows(table, index)? {
            if !saved.iter().any(|other| same_row(table, other, &row)) {
                self.0.change(table.new_message_type() + 1, 0, &row.0).or_else(accept_existing)?;
            }
        }
        let existing = self.rows(table, index)?;
        let missing = saved.iter().filter(|other| !existing.iter().any(|row| same_row(table, other, row)));
        self.create_all(missing.map(|row| (table, make_request(table, &row.0, index, age_s))).collect())
    }

    /// Recreates qdiscs, classes and filters if they differ. Their dependencies are resolved by retrying.
    pub fn restore_traffic(&mut self, index: u32, saved: [&[Row]; 3]) -> Result<()> {
        let tables = [Qdisc, Class, Filter];
        let mut unchanged = true;
        for (table, rows) in tables.into_iter().zip(saved) {
            unchanged = unchanged && same_rows(table, rows, &self.rows(table, index)?);
        }
        if unchanged {
            return Ok(());
        }
        for parent in [ROOT, INGRESS] {
            let _ = self.0.change(Qdisc.new_message_type() + 1, 0, &traffic(index, 0, parent));
            // the device may have no qdisc
        }
        let [qdiscs, classes, filters] = saved;
        let explicit = qdiscs.iter().filter(|row| !is_default(row)).map(|row| (Qdisc, row));
        let tree = explicit.chain(classes.iter().map(|row| (Class, row)));
        self.create_all(tree.map(|(table, row)| (table, make_request(table, &row.0, index, 0))).collect())?;
        self.create_all(filters.iter().map(|row| (Filter, make_request(Filter, &row.0, index, 0))).collect())
    }

    /// Creates rows. Some of them need others first.
    fn create_all(&mut self, mut rows: Vec<(Table, Vec<u8>)>) -> Result<()> {
        while !rows.is_empty() {
            let count = rows.len();
            let mut first_error = None;
            let classes = rows.iter().filter(|(table, _)| *table == Class);
            // HTB treats a class with a missing parent like a class without a parent
            let pending: Vec<u32> = classes.filter_map(|(_, body)| u32_at(body, 8)).collect();
            rows.retain(|(table, body)| {
                if *table == Class && u32_at(body, 12).is_some_and(|parent| pending.contains(&parent)) {
                    return true;
                }
                let result =
                    self.0.change(table.new_message_type(), CREATE | EXCL, body).or_else(accept_existing);
                let failed = result.is_err();
                first_error = first_error.take().or(result.err());
                failed
            });
            if rows.len() == count {
                return first_error.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }
}

/// Returns whether this is a default qdisc of the kernel: it has no handle.
pub fn is_default(qdisc: &Row) -> bool {
    u32_at(&qdisc.0, 8) == Some(0)
}

/// Returns whether the filter is the hash table that every u32 classifier has.
fn is_root_table(body: &[u8], handle: u32) -> bool {
    const ROOT_TABLE: u32 = 0x8000_0000;
    content_of(body, Filter.header(), TCA_KIND) == Some(b"u32\0") && handle == ROOT_TABLE
}

/// Ignores errors for a state that is already as requested.
fn accept_existing(error: Error) -> Result<()> {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EEXIST | Errno::ESRCH | Errno::EADDRNOTAVAIL) => Ok(()),
        _ => Err(error),
    }
}

fn unsupported(error: &Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw),
        Some(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOENT | Errno::EAFNOSUPPORT)
    )
}

fn is_restorable(table: Table, body: &[u8], index: u32) -> bool {
    const PERMANENT: u16 = 0x80;
    const RTPROT_KERNEL: u8 = 2;
    const CLONED: u32 = 0x200;
    match table {
        Route => {
            let automatic =
                body.get(5) == Some(&RTPROT_KERNEL) || u32_at(body, 8).is_some_and(|f| f & CLONED != 0);
            !automatic
                && content_of(body, table.header(), 4).and_then(|index| u32_at(index, 0)) == Some(index)
        }
        Neighbour => {
            u32_at(body, 4) == Some(index) && u16_at(body, 8).is_some_and(|state| state & PERMANENT != 0)
        }
        Class => {
            let kind = content_of(body, table.header(), TCA_KIND).unwrap_or_default();
            u32_at(body, 4) == Some(index) && USER_CLASSES.contains(&kind)
        }
        _ => u32_at(body, 4) == Some(index),
    }
}

/// Returns whether a route through the device cannot be restored: a hop of a multipath route, or a nexthop object.
pub fn has_multipath_route(net: &mut Net, index: u32) -> Result<bool> {
    const MULTIPATH: u16 = 9;
    const NH_ID: u16 = 30;
    let mut multipath = false;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut body = vec![0; Route.header()];
        body[0] = u8::try_from(family).expect("is small");
        let result = net.0.dump(Route.new_message_type() + 2, &body, |body| {
            let value_of = |kind| content_of(body, Route.header(), kind);
            // `struct rtnexthop`: length, flags, hops, the device's number
            let mut hops = value_of(MULTIPATH).unwrap_or_default();
            while let (Some(length), Some(hop)) = (u16_at(hops, 0), u32_at(hops, 4)) {
                multipath = multipath || hop == index;
                hops = hops.get(usize::from(length).next_multiple_of(4).max(8)..).unwrap_or_default();
            }
            multipath = multipath
                || (value_of(NH_ID).is_some() && value_of(4).and_then(|oif| u32_at(oif, 0)) == Some(index));
        });
        match result {
            Err(error) if unsupported(&error) => {}
            result => result?,
        }
    }
    Ok(multipath)
}

pub fn same_row(table: Table, first: &Row, second: &Row) -> bool {
    without_counters(table, &first.0) == without_counters(table, &second.0)
}

/// Returns whether the rows are the same, in any order.
pub fn same_rows(table: Table, first: &[Row], second: &[Row]) -> bool {
    let sorted = |rows: &[Row]| {
        let mut stripped_rows: Vec<_> = rows.iter().map(|row| without_counters(table, &row.0)).collect();
        stripped_rows.sort();
        stripped_rows
    };
    sorted(first) == sorted(second)
}

/// Returns a row without the parts that change by themselves.
fn without_counters(table: Table, body: &[u8]) -> Vec<(u16, Vec<u8>)> {
    /// Flags of an IPv6 address during duplicate address detection.
    const TENTATIVE: u8 = 0x44;
    const ONLINK: u8 = 4;
    let mut head = body.get(..table.header()).unwrap_or_default().to_vec();
    match table {
        Address => {
            head[4..8].fill(0);
            head[2] &= !TENTATIVE;
        }
        Route => {
            head[8] &= ONLINK;
            head[9..12].fill(0);
        }
        Qdisc => {
            head[4..8].fill(0);
            head[16..20].fill(0); // the number of references
        }
        Neighbour | Class | Filter => head[4..8].fill(0),
    }
    let kind = content_of(body, table.header(), TCA_KIND).unwrap_or_default().to_vec();
    let mut attributes: Vec<(u16, Vec<u8>)> = Attributes::after(body, table.header())
        .filter(|(attribute, _)| match table {
            Address => *attribute != 6,
            Route => !matches!(attribute, 4 | 12 | 23),
            Neighbour => !matches!(attribute, 3 | 4),
            Qdisc | Class => matches!(*attribute, TCA_KIND | TCA_OPTIONS | TCA_STAB),
            Filter => matches!(*attribute, TCA_KIND | TCA_CHAIN), // its options are compared
        })
        .map(|(attribute, content)| {
            let mut content = content.to_vec();
            match (table, attribute) {
                (Address, 8) if !content.is_empty() => content[0] &= !TENTATIVE,
                (Qdisc, TCA_OPTIONS) => content = without_option_counters(&kind, content),
                _ => {}
            }
            (attribute, content)
        })
        .collect();
    attributes.insert(0, (0, head));
    attributes
}

/// Returns a qdisc's options without the counters that some options contain.
fn without_option_counters(kind: &[u8], mut options: Vec<u8>) -> Vec<u8> {
    match kind {
        // TCA_HTB_INIT, `struct tc_htb_glob`: the last word counts packets that no class took
        b"htb\0" if options.len() >= 24 && u16_at(&options, 2) == Some(2) => options[20..24].fill(0),
        b"sfq\0" => options.truncate(48), // its marks and drops follow
        _ => {}
    }
    options
}

/// Returns a request that creates the row at the device with number `index`.
fn make_request(table: Table, body: &[u8], index: u32, age_s: u32) -> Vec<u8> {
    let mut request = body.get(..table.header()).unwrap_or_default().to_vec();
    match table {
        Route => request[8..12].fill(0),
        _ => request[4..8].copy_from_slice(&index.to_ne_bytes()),
    }
    if matches!(table, Qdisc | Class) {
        request[16..20].fill(0);
    }
    for (kind, content) in Attributes::after(body, table.header()) {
        let mut content = content.to_vec();
        match (table, kind) {
            (Route, 4) => content = index.to_ne_bytes().to_vec(),
            (Route, 12 | 23) | (Neighbour, 3 | 4) => continue,
            (Filter, TCA_OPTIONS) => {
                let kind = content_of(body, table.header(), TCA_KIND).unwrap_or_default();
                content = requestable_options(kind, &content);
            }
            (Qdisc, TCA_OPTIONS) => {
                set_major_version(
                    content_of(body, table.header(), TCA_KIND).unwrap_or_default(),
                    &mut content,
                );
            }
            (Address, 6) => shorten_lifetimes(&mut content, age_s),
            (Qdisc | Class, kind) if ![TCA_KIND, TCA_OPTIONS, TCA_STAB].contains(&kind) => continue,
            (Filter, kind) if ![TCA_KIND, TCA_OPTIONS, TCA_CHAIN].contains(&kind) => continue,
            _ => {}
        }
        push(&mut request, kind, &content);
    }
    request
}

/// Sets HTB's version to the major number: HTB reports major and minor, and accepts only the major one.
fn set_major_version(kind: &[u8], options: &mut [u8]) {
    const INIT: u16 = 2;
    if let (b"htb\0", Some(INIT), Some(version)) = (kind, u16_at(options, 2), u32_at(options, 4)) {
        let major = if version > u32::from(u16::MAX) { version >> 16 } else { version };
        options[4..8].copy_from_slice(&major.to_ne_bytes());
    }
}

/// Returns a filter's options with only the flags that a request may have.
fn requestable_options(kind: &[u8], options: &[u8]) -> Vec<u8> {
    let flags_attribute =
        FLAGS.iter().find(|(name, _)| *name == kind).map(|(_, flags_attribute)| *flags_attribute);
    let mut requestable = Vec::new();
    for (kind, content) in Attributes::after(options, 0) {
        match u32_at(content, 0) {
            Some(flags) if Some(kind) == flags_attribute => {
                push(&mut requestable, kind, &(flags & REQUESTABLE).to_ne_bytes());
            }
            _ => push(&mut requestable, kind, content),
        }
    }
    requestable
}

/// Subtracts `age_s` from the lifetimes of an address, preferred and valid, in s (`struct ifa_cacheinfo`).
fn shorten_lifetimes(content: &mut [u8], age_s: u32) {
    for offset in [0, 4] {
        if let Some(remaining) = u32_at(content, offset).filter(|remaining| *remaining != u32::MAX) {
            content[offset..offset + 4]
                .copy_from_slice(&remaining.saturating_sub(age_s).max(1).to_ne_bytes());
        }
    }
}
