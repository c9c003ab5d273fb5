// SPDX-License-Identifier: Apache-2.0
//! A row of the table `tcp`, from `sock_diag` or from the kernel's probe, which knows more.

use std::collections::BTreeMap;

use crate::abi;
use crate::column::Cell;
use crate::netlink::{u16_at, u32_at};
use crate::records::Records;
use crate::report::Result;
use crate::tables::{Table, TABLES, TCP_INFO};

pub const INET_DIAG_VEGASINFO: u16 = 3;
pub const INET_DIAG_DCTCPINFO: u16 = 9;
pub const INET_DIAG_BBRINFO: u16 = 16;
pub const ESTABLISHED: u8 = 1;
/// The columns before the state: the time, the stream, the end.
const HEAD: usize = 3;

/// The state of one socket: the kernel's structures, empty if they are missing.
#[derive(Default)]
pub struct Socket<'a> {
    pub info: &'a [u8],
    /// `SK_MEMINFO_*`.
    pub memory: &'a [u8],
    bbr: &'a [u8],
    vegas: &'a [u8],
    dctcp: &'a [u8],
    /// Fields that only the kernel's probe reports.
    pub sending: Option<&'a abi::Tcp>,
}

impl<'a> Socket<'a> {
    /// Sets the congestion control's structure, which `attribute` identifies. Ignores other attributes.
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

    /// Returns the columns that the kernel fills, by their names.
    pub fn state(&self) -> BTreeMap<&'static str, Cell<'static>> {
        let columns = TABLES[Table::Tcp as usize].1[HEAD..].iter().map(|column| column.name);
        columns.zip(self.cells()).filter(|(_, cell)| *cell != Cell::Null).collect()
    }

    /// Returns the cells from `state` on.
    fn cells(&self) -> impl Iterator<Item = Cell<'static>> + '_ {
        let bandwidth = u32_at(self.bbr, 0).zip(u32_at(self.bbr, 4));
        let bandwidth = bandwidth.map(|(low, high)| u64::from(high) << 32 | u64::from(low));
        let dctcp_flags = [0, 2].map(|at| Cell::from(u16_at(self.dctcp, at).map(u64::from)));
        let info = TCP_INFO.iter().map(|field| Cell::from(field.read(self.info)));
        info.chain(u32_cells(self.memory, 0, 9))
            .chain([Cell::from(bandwidth)])
            .chain(u32_cells(self.bbr, 8, 3))
            .chain(u32_cells(self.vegas, 0, 4))
            .chain(dctcp_flags)
            .chain(u32_cells(self.dctcp, 4, 3))
            .chain(self.sending.map_or([Cell::Null; 13], sending))
    }
}

fn u32_cells(bytes: &[u8], from: usize, count: usize) -> impl Iterator<Item = Cell<'static>> + '_ {
    (0..count).map(move |index| Cell::from(u32_at(bytes, from + 4 * index).map(u64::from)))
}

/// Returns the probe's cells. The inputs of TCP Small Queues' last decision are null before the first decision.
fn sending(tcp: &abi::Tcp) -> [Cell<'static>; 13] {
    let was_checked = tcp.tsq_term != abi::TERM_NONE;
    let checked = |value: u64| if was_checked { Cell::U64(value) } else { Cell::Null };
    let [_, cwnd, rwnd, pacing, tsq, push] = tcp.hold_ns.map(Cell::U64);
    [
        checked(tcp.tsq_limit),
        checked(tcp.tsq_truesize.into()),
        if tcp.tsq_term == abi::TERM_NONE { Cell::Null } else { name_cell(&abi::TERM, tcp.tsq_term) },
        checked(tcp.tsq_rate),
        checked(tcp.tsq_shift.into()),
        Cell::U64(tcp.tsq_throttled.into()),
        Cell::U64(tcp.gso_bytes.into()),
        name_cell(&abi::HOLD, tcp.hold),
        cwnd,
        rwnd,
        pacing,
        tsq,
        push,
    ]
}

/// Returns the name of a number; null for a number of a newer kernel.
fn name_cell(names: &[&'static str], number: u32) -> Cell<'static> {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number));
    name.map_or(Cell::Null, |name| Cell::Text(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn a_socket_fills_only_the_columns_of_its_congestion_control() {
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
        assert_eq!(cells[fields - 1], Cell::Null, "the last field is beyond 232 bytes");
        assert_eq!(cells[fields], Cell::Null, "the kernel reported no memory");
        assert_eq!(cells[fields + 9..fields + 13], [1 << 32 | 5, 20_000, 739, 512].map(Cell::U64));
        assert!(cells[fields + 13..].iter().all(|cell| *cell == Cell::Null));
        let state = socket.state();
        assert_eq!((state["snd_cwnd"], state["bbr_min_rtt"]), (Cell::U64(77), Cell::U64(20_000)));
        assert!(state.values().all(|cell| *cell != Cell::Null));
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
        let mut tcp = abi::Tcp::new_zeroed();
        (tcp.tsq_limit, tcp.tsq_truesize, tcp.tsq_rate, tcp.tsq_shift) = (5, 6, 7, 10);
        (tcp.hold, tcp.gso_bytes, tcp.hold_ns) = (4, 8, [9, 1, 2, 3, 4, 5]);
        let cells = sending(&tcp);
        assert_eq!(cells[..5], [Cell::Null; 5]);
        assert_eq!(cells[7], Cell::Text("tsq"));
        assert_eq!(cells[8..], [1, 2, 3, 4, 5].map(Cell::U64));
        tcp.tsq_term = 2;
        let cells = sending(&tcp);
        assert_eq!((cells[0], cells[2]), (Cell::U64(5), Cell::Text("rate")));
        tcp.tsq_term = 77;
        assert_eq!(sending(&tcp)[2], Cell::Null, "a term of a newer kernel");
    }
}
