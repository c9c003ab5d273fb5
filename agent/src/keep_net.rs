// SPDX-License-Identifier: Apache-2.0
//! What route netlink says of a device, kept as the kernel's own messages, which it takes back (as `ip addr restore` does).
//!
//! Two messages are the same if they differ in nothing but counters, times and the device's number.

use std::io::{Error, Result};

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use serde::{Deserialize, Serialize};

use crate::netlink::{push, traffic, u16_at, u32_at, Attributes, Socket, CREATE, EXCL, TCMSG};

const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// Where the filters of a clsact hang.
const CLSACT: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STAB: u16 = 8;
const TCA_CHAIN: u16 = 11;

/// Qdiscs whose classes somebody makes; those of others are there with them.
const MADE_CLASSES: [&[u8]; 6] = [b"htb\0", b"hfsc\0", b"drr\0", b"qfq\0", b"cbq\0", b"ets\0"];
/// Classifiers, and the attribute of their options that tells, among what was asked for, whether hardware has them.
const FLAGS: [(&[u8], u16); 4] = [(b"u32\0", 11), (b"flower\0", 22), (b"matchall\0", 3), (b"bpf\0", 8)];
/// Not in hardware, not in software, and say why: what can be asked for.
const ASKED: u32 = 0x13;

/// The kernel's tables of which some rows are a device's.
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
    /// The number of its first message (`RTM_NEW…`); those that delete and ask follow.
    fn first(self) -> u16 {
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

/// Route netlink of the namespace in which the thread was when it was opened.
pub struct Net(pub Socket);

impl Net {
    pub fn open() -> Result<Self> {
        Ok(Self(Socket::open(SockProtocol::NetlinkRoute)?))
    }

    /// The device's rows, in the kernel's order; none of those that the kernel makes by itself.
    pub fn rows(&mut self, table: Table, index: u32) -> Result<Vec<Row>> {
        let mut found = Vec::new();
        let mut keep = |body: &[u8]| {
            if is_kept(table, body, index) {
                found.push(Row(body.to_vec()));
            }
        };
        match table {
            Address | Neighbour => self.0.dump(table.first() + 2, &vec![0; table.header()], &mut keep)?,
            Route => {
                for family in [libc::AF_INET, libc::AF_INET6] {
                    let mut body = vec![0; table.header()];
                    body[0] = u8::try_from(family).expect("is small");
                    match self.0.dump(table.first() + 2, &body, &mut keep) {
                        Err(error) if family == libc::AF_INET6 && unsupported(&error) => {}
                        result => result?,
                    }
                }
            }
            Qdisc | Class => self.0.dump(table.first() + 2, &traffic(index, 0, 0), &mut keep)?,
            Filter => return self.filters(index),
        }
        Ok(found)
    }

    /// Filters are asked for by what they hang on.
    fn filters(&mut self, index: u32) -> Result<Vec<Row>> {
        let mut parents = Vec::new();
        for table in [Qdisc, Class] {
            let rows = self.rows(table, index)?;
            parents.extend(rows.iter().filter_map(|row| u32_at(&row.0, 8)).filter(|handle| *handle != 0));
        }
        parents.extend(CLSACT);
        let mut found: Vec<Row> = Vec::new();
        for parent in parents {
            let keep = |body: &[u8]| {
                let whole = u32_at(body, 8).is_some_and(|handle| handle != 0 && !is_own_table(body, handle));
                let seen = found.iter().any(|row| stripped(Filter, &row.0) == stripped(Filter, body));
                if whole && !seen && is_kept(Filter, body, index) {
                    found.push(Row(body.to_vec()));
                }
            };
            match self.0.dump(Filter.first() + 2, &traffic(index, 0, parent), keep) {
                Err(error) if unsupported(&error) => {} // it has no place for filters
                result => result?,
            }
        }
        Ok(found)
    }

    /// The device's rows made to be those, at its number of today, where `age_s` have passed since they were read.
    pub fn restore(&mut self, table: Table, index: u32, wanted: &[Row], age_s: u32) -> Result<()> {
        for row in self.rows(table, index)? {
            if !wanted.iter().any(|one| same(table, one, &row)) {
                self.0.change(table.first() + 1, 0, &row.0).or_else(forgiven)?;
            }
        }
        let there = self.rows(table, index)?;
        let missing = wanted.iter().filter(|one| !there.iter().any(|row| same(table, one, row)));
        self.repeat(missing.map(|row| (table, at(table, &row.0, index, age_s))).collect())
    }

    /// Qdiscs, classes and filters made anew if they are not those: what hangs on what is found by trying.
    pub fn restore_traffic(&mut self, index: u32, wanted: [&[Row]; 3]) -> Result<()> {
        let tables = [Qdisc, Class, Filter];
        let mut alike = true;
        for (table, rows) in tables.into_iter().zip(wanted) {
            alike = alike && all_same(table, rows, &self.rows(table, index)?);
        }
        if alike {
            return Ok(());
        }
        for parent in [ROOT, INGRESS] {
            let _ = self.0.change(Qdisc.first() + 1, 0, &traffic(index, 0, parent));
            // there may be none
        }
        let [qdiscs, classes, filters] = wanted;
        let ours = qdiscs.iter().filter(|row| !is_own(row)).map(|row| (Qdisc, row));
        let tree = ours.chain(classes.iter().map(|row| (Class, row)));
        self.repeat(tree.map(|(table, row)| (table, at(table, &row.0, index, 0))).collect())?;
        self.repeat(filters.iter().map(|row| (Filter, at(Filter, &row.0, index, 0))).collect())
    }

    /// Makes rows of which some need others to be there first.
    fn repeat(&mut self, mut rows: Vec<(Table, Vec<u8>)>) -> Result<()> {
        while !rows.is_empty() {
            let before = rows.len();
            let mut first = None;
            let classes = rows.iter().filter(|(table, _)| *table == Class);
            // HTB takes a class whose parent is not there yet for one without a parent
            let later: Vec<u32> = classes.filter_map(|(_, body)| u32_at(body, 8)).collect();
            rows.retain(|(table, body)| {
                if *table == Class && u32_at(body, 12).is_some_and(|parent| later.contains(&parent)) {
                    return true;
                }
                let made = self.0.change(table.first(), CREATE | EXCL, body).or_else(forgiven);
                let failed = made.is_err();
                first = first.take().or(made.err());
                failed
            });
            if rows.len() == before {
                return first.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }
}

/// Whether a qdisc is one that the kernel has given a device by itself: it has no handle.
pub fn is_own(qdisc: &Row) -> bool {
    u32_at(&qdisc.0, 8) == Some(0)
}

/// Whether it is the hash table that every u32 has.
fn is_own_table(body: &[u8], handle: u32) -> bool {
    const ROOT_TABLE: u32 = 0x8000_0000;
    attribute(body, Filter.header(), TCA_KIND) == Some(b"u32\0") && handle == ROOT_TABLE
}

/// What is wanted is so already.
fn forgiven(error: Error) -> Result<()> {
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

fn is_kept(table: Table, body: &[u8], index: u32) -> bool {
    const PERMANENT: u16 = 0x80;
    const RTPROT_KERNEL: u8 = 2;
    const CLONED: u32 = 0x200;
    match table {
        Route => {
            let made =
                body.get(5) == Some(&RTPROT_KERNEL) || u32_at(body, 8).is_some_and(|f| f & CLONED != 0);
            !made && attribute(body, table.header(), 4).and_then(|index| u32_at(index, 0)) == Some(index)
        }
        Neighbour => {
            u32_at(body, 4) == Some(index) && u16_at(body, 8).is_some_and(|state| state & PERMANENT != 0)
        }
        Class => {
            let kind = attribute(body, table.header(), TCA_KIND).unwrap_or_default();
            u32_at(body, 4) == Some(index) && MADE_CLASSES.contains(&kind)
        }
        _ => u32_at(body, 4) == Some(index),
    }
}

/// Whether a route that leaves by the device cannot be given back: one of several ways, or of a nexthop object.
pub fn intricate(net: &mut Net, index: u32) -> Result<bool> {
    const MULTIPATH: u16 = 9;
    const NH_ID: u16 = 30;
    let mut found = false;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut body = vec![0; Route.header()];
        body[0] = u8::try_from(family).expect("is small");
        let asked = net.0.dump(Route.first() + 2, &body, |body| {
            let of = |kind| attribute(body, Route.header(), kind);
            // `struct rtnexthop`: length, flags, hops, the device's number
            let mut ways = of(MULTIPATH).unwrap_or_default();
            while let (Some(length), Some(way)) = (u16_at(ways, 0), u32_at(ways, 4)) {
                found = found || way == index;
                ways = ways.get(usize::from(length).next_multiple_of(4).max(8)..).unwrap_or_default();
            }
            found = found || (of(NH_ID).is_some() && of(4).and_then(|oif| u32_at(oif, 0)) == Some(index));
        });
        match asked {
            Err(error) if unsupported(&error) => {}
            result => result?,
        }
    }
    Ok(found)
}

pub fn attribute(body: &[u8], header: usize, kind: u16) -> Option<&[u8]> {
    Attributes::after(body, header).find(|(found, _)| *found == kind).map(|(_, content)| content)
}

pub fn same(table: Table, one: &Row, other: &Row) -> bool {
    stripped(table, &one.0) == stripped(table, &other.0)
}

/// Whether the rows are the same, in whatever order.
pub fn all_same(table: Table, one: &[Row], other: &[Row]) -> bool {
    let sorted = |rows: &[Row]| {
        let mut all: Vec<_> = rows.iter().map(|row| stripped(table, &row.0)).collect();
        all.sort();
        all
    };
    sorted(one) == sorted(other)
}

/// A row without what changes by itself.
fn stripped(table: Table, body: &[u8]) -> Vec<(u16, Vec<u8>)> {
    /// An IPv6 address that is being tried out.
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
            head[16..20].fill(0); // how many refer to it
        }
        Neighbour | Class | Filter => head[4..8].fill(0),
    }
    let kind = attribute(body, table.header(), TCA_KIND).unwrap_or_default().to_vec();
    let mut rest: Vec<(u16, Vec<u8>)> = Attributes::after(body, table.header())
        .filter(|(attribute, _)| match table {
            Address => *attribute != 6,
            Route => !matches!(attribute, 4 | 12 | 23),
            Neighbour => !matches!(attribute, 3 | 4),
            Qdisc | Class => matches!(*attribute, TCA_KIND | TCA_OPTIONS | TCA_STAB),
            Filter => matches!(*attribute, TCA_KIND | TCA_CHAIN), // its options count
        })
        .map(|(attribute, content)| {
            let mut content = content.to_vec();
            match (table, attribute) {
                (Address, 8) if !content.is_empty() => content[0] &= !TENTATIVE,
                (Qdisc, TCA_OPTIONS) => content = uncounted(&kind, content),
                _ => {}
            }
            (attribute, content)
        })
        .collect();
    rest.insert(0, (0, head));
    rest
}

/// A qdisc's options without the counters that some have among them.
fn uncounted(kind: &[u8], mut options: Vec<u8>) -> Vec<u8> {
    match kind {
        // TCA_HTB_INIT, `struct tc_htb_glob`: the last word counts packets that no class took
        b"htb\0" if options.len() >= 24 && u16_at(&options, 2) == Some(2) => options[20..24].fill(0),
        b"sfq\0" => options.truncate(48), // its marks and drops follow
        _ => {}
    }
    options
}

/// The row as a request that makes it at the device of that number.
fn at(table: Table, body: &[u8], index: u32, age_s: u32) -> Vec<u8> {
    let mut new = body.get(..table.header()).unwrap_or_default().to_vec();
    match table {
        Route => new[8..12].fill(0),
        _ => new[4..8].copy_from_slice(&index.to_ne_bytes()),
    }
    if matches!(table, Qdisc | Class) {
        new[16..20].fill(0);
    }
    for (kind, content) in Attributes::after(body, table.header()) {
        let mut content = content.to_vec();
        match (table, kind) {
            (Route, 4) => content = index.to_ne_bytes().to_vec(),
            (Route, 12 | 23) | (Neighbour, 3 | 4) => continue,
            (Filter, TCA_OPTIONS) => {
                let kind = attribute(body, table.header(), TCA_KIND).unwrap_or_default();
                content = asked(kind, &content);
            }
            (Qdisc, TCA_OPTIONS) => {
                versioned(attribute(body, table.header(), TCA_KIND).unwrap_or_default(), &mut content);
            }
            (Address, 6) => aged(&mut content, age_s),
            (Qdisc | Class, kind) if ![TCA_KIND, TCA_OPTIONS, TCA_STAB].contains(&kind) => continue,
            (Filter, kind) if ![TCA_KIND, TCA_OPTIONS, TCA_CHAIN].contains(&kind) => continue,
            _ => {}
        }
        push(&mut new, kind, &content);
    }
    new
}

/// HTB tells its version as major and minor, and takes the major alone.
fn versioned(kind: &[u8], options: &mut [u8]) {
    const INIT: u16 = 2;
    if let (b"htb\0", Some(INIT), Some(version)) = (kind, u16_at(options, 2), u32_at(options, 4)) {
        let major = if version > u32::from(u16::MAX) { version >> 16 } else { version };
        options[4..8].copy_from_slice(&major.to_ne_bytes());
    }
}

/// A filter's options with no other flags than can be asked for.
fn asked(kind: &[u8], options: &[u8]) -> Vec<u8> {
    let place = FLAGS.iter().find(|(name, _)| *name == kind).map(|(_, place)| *place);
    let mut new = Vec::new();
    for (kind, content) in Attributes::after(options, 0) {
        match u32_at(content, 0) {
            Some(flags) if Some(kind) == place => push(&mut new, kind, &(flags & ASKED).to_ne_bytes()),
            _ => push(&mut new, kind, content),
        }
    }
    new
}

/// `struct ifa_cacheinfo`: how long an address is preferred and valid, in s.
fn aged(content: &mut [u8], age_s: u32) {
    for place in [0, 4] {
        if let Some(left) = u32_at(content, place).filter(|left| *left != u32::MAX) {
            content[place..place + 4].copy_from_slice(&left.saturating_sub(age_s).max(1).to_ne_bytes());
        }
    }
}
