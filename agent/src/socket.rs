// SPDX-License-Identifier: Apache-2.0
//! A row of the table `tcp`, whoever tells: `sock_diag`, or the kernel's probe, which knows more.

use crate::abi;
use crate::column::Cell;
use crate::netlink::{u16_at, u32_at};
use crate::records::Records;
use crate::report::Result;
use crate::tables::{Table, TCP_INFO};

pub const INET_DIAG_VEGASINFO: u16 = 3;
pub const INET_DIAG_DCTCPINFO: u16 = 9;
pub const INET_DIAG_BBRINFO: u16 = 16;
pub const ESTABLISHED: u8 = 1;

/// The state of one socket: the kernel's structures, empty where they are not told.
#[derive(Default)]
pub struct Socket<'a> {
    pub info: &'a [u8],
    /// `SK_MEMINFO_*`.
    pub memory: &'a [u8],
    bbr: &'a [u8],
    vegas: &'a [u8],
    dctcp: &'a [u8],
    /// Known to the kernel's probe alone.
    pub sending: Option<&'a abi::Tcp>,
}

impl<'a> Socket<'a> {
    /// The congestion control's own structure. `attribute` says which it is; of others nothing is known.
    pub fn set_congestion(&mut self, attribute: u16, content: &'a [u8]) {
        match attribute {
            INET_DIAG_BBRINFO => self.bbr = content,
            INET_DIAG_VEGASINFO => self.vegas = content,
            INET_DIAG_DCTCPINFO => self.dctcp = content,
            _ => {}
        }
    }

    pub fn write(&self, t_ns: i64, stream: u16, sender: bool, records: &mut Records) -> Result<()> {
        let head = [Cell::I64(t_ns), Cell::U64(stream.into()), Cell::Bool(sender)];
        records.push(Table::Tcp, head.into_iter().chain(self.cells()))
    }

    /// The cells from `state` on.
    fn cells(&self) -> impl Iterator<Item = Cell<'static>> + '_ {
        let bandwidth = u32_at(self.bbr, 0).zip(u32_at(self.bbr, 4));
        let bandwidth = bandwidth.map(|(low, high)| u64::from(high) << 32 | u64::from(low));
        let dctcp_flags = [0, 2].map(|at| Cell::from(u16_at(self.dctcp, at).map(u64::from)));
        let info = TCP_INFO.iter().map(|field| Cell::from(field.read(self.info)));
        info.chain(words(self.memory, 0, 9))
            .chain([Cell::from(bandwidth)])
            .chain(words(self.bbr, 8, 3))
            .chain(words(self.vegas, 0, 4))
            .chain(dctcp_flags)
            .chain(words(self.dctcp, 4, 3))
            .chain(self.sending.map_or([Cell::Null; 13], sending))
    }
}

fn words(bytes: &[u8], from: usize, count: usize) -> impl Iterator<Item = Cell<'static>> + '_ {
    (0..count).map(move |index| Cell::from(u32_at(bytes, from + 4 * index).map(u64::from)))
}

/// What TCP Small Queues last decided by is null until it has.
fn sending(told: &abi::Tcp) -> [Cell<'static>; 13] {
    let checked = told.tsq_term != abi::TERM_NONE;
    let checked = |value: u64| if checked { Cell::U64(value) } else { Cell::Null };
    let [_, cwnd, rwnd, pacing, tsq, push] = told.hold_ns.map(Cell::U64);
    [
        checked(told.tsq_limit),
        checked(told.tsq_truesize.into()),
        if told.tsq_term == abi::TERM_NONE { Cell::Null } else { text(&abi::TERM, told.tsq_term) },
        checked(told.tsq_rate),
        checked(told.tsq_shift.into()),
        Cell::U64(told.tsq_throttled.into()),
        Cell::U64(told.gso_bytes.into()),
        text(&abi::HOLD, told.hold),
        cwnd,
        rwnd,
        pacing,
        tsq,
        push,
    ]
}

/// The name of a number; null for one of the future.
fn text(names: &[&'static str], number: u32) -> Cell<'static> {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number));
    name.map_or(Cell::Null, |name| Cell::Text(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TABLES;
    use zerocopy::FromZeros;

    #[test]
    fn a_socket_fills_the_columns_of_its_congestion_control_and_no_others() {
        let mut info = [0; 232];
        info[80..84].copy_from_slice(&77u32.to_ne_bytes());
        let bbr: Vec<u8> = [5u32, 1, 20_000, 739, 512].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut socket = Socket { info: &info, ..Socket::default() };
        socket.set_congestion(INET_DIAG_BBRINFO, &bbr);
        let cells: Vec<Cell> = socket.cells().collect();
        let fields = TCP_INFO.len();
        let columns = TABLES[Table::Tcp as usize].1;
        let cwnd = columns.iter().position(|column| column.name == "snd_cwnd").expect("a column") - 3;
        assert_eq!(cells.len(), fields + 9 + 4 + 4 + 5 + 13);
        assert_eq!(cells[cwnd], Cell::U64(77));
        assert_eq!(cells[fields - 1], Cell::Null, "what is last is not in 232 bytes");
        assert_eq!(cells[fields], Cell::Null, "no memory was told");
        assert_eq!(cells[fields + 9..fields + 13], [1 << 32 | 5, 20_000, 739, 512].map(Cell::U64));
        assert!(cells[fields + 13..].iter().all(|cell| *cell == Cell::Null));
    }

    #[test]
    fn dctcp_begins_with_two_short_words() {
        let dctcp = [1u8, 0, 1, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0];
        let mut socket = Socket::default();
        socket.set_congestion(INET_DIAG_DCTCPINFO, &dctcp);
        let cells: Vec<Cell> = socket.cells().collect();
        let end = cells.len() - 13;
        assert_eq!(cells[end - 5..end], [1, 1, 9, 8, 7].map(Cell::U64));
    }

    #[test]
    fn before_its_first_check_tsq_has_no_limit() {
        let mut told = abi::Tcp::new_zeroed();
        (told.tsq_limit, told.tsq_truesize, told.tsq_rate, told.tsq_shift) = (5, 6, 7, 10);
        (told.hold, told.gso_bytes, told.hold_ns) = (4, 8, [9, 1, 2, 3, 4, 5]);
        let cells = sending(&told);
        assert_eq!(cells[..5], [Cell::Null; 5]);
        assert_eq!(cells[7], Cell::Text("tsq"));
        assert_eq!(cells[8..], [1, 2, 3, 4, 5].map(Cell::U64));
        told.tsq_term = 2;
        let cells = sending(&told);
        assert_eq!((cells[0], cells[2]), (Cell::U64(5), Cell::Text("rate")));
        told.tsq_term = 77;
        assert_eq!(sending(&told)[2], Cell::Null, "a term of the future");
    }
}
