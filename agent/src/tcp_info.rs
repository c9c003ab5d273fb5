// SPDX-License-Identifier: Apache-2.0
//! `struct tcp_info` (include/uapi/linux/tcp.h, up to Linux 6.12): where each field lies, and how to read one.
//!
//! The structure only ever grows at its end, so its length says which fields a kernel has; those beyond are null.
//! Names are the kernel's without `tcpi_`, values are untouched: times in µs (some in ms: `ato`, `last_*`), rates in
//! bytes/s.

use crate::column::{Cell, Column, Kind};

struct Field {
    name: &'static str,
    offset: usize,
    kind: Kind,
    /// For a bit field: its first bit and its width.
    bits: Option<(u32, u32)>,
}

const fn at(offset: usize, kind: Kind, name: &'static str) -> Field {
    Field { name, offset, kind, bits: None }
}

const fn bits(offset: usize, first: u32, width: u32, name: &'static str) -> Field {
    Field { name, offset, kind: Kind::U8, bits: Some((first, width)) }
}

const FIELDS: [Field; 61] = [
    at(0, Kind::U8, "state"),
    at(1, Kind::U8, "ca_state"),
    at(2, Kind::U8, "retransmits"),
    at(3, Kind::U8, "probes"),
    at(4, Kind::U8, "backoff"),
    at(5, Kind::U8, "options"),
    bits(6, 0, 4, "snd_wscale"),
    bits(6, 4, 4, "rcv_wscale"),
    bits(7, 0, 1, "delivery_rate_app_limited"),
    bits(7, 1, 2, "fastopen_client_fail"),
    at(8, Kind::U32, "rto"),
    at(12, Kind::U32, "ato"),
    at(16, Kind::U32, "snd_mss"),
    at(20, Kind::U32, "rcv_mss"),
    at(24, Kind::U32, "unacked"),
    at(28, Kind::U32, "sacked"),
    at(32, Kind::U32, "lost"),
    at(36, Kind::U32, "retrans"),
    at(40, Kind::U32, "fackets"),
    at(44, Kind::U32, "last_data_sent"),
    at(48, Kind::U32, "last_ack_sent"),
    at(52, Kind::U32, "last_data_recv"),
    at(56, Kind::U32, "last_ack_recv"),
    at(60, Kind::U32, "pmtu"),
    at(64, Kind::U32, "rcv_ssthresh"),
    at(68, Kind::U32, "rtt"),
    at(72, Kind::U32, "rttvar"),
    at(76, Kind::U32, "snd_ssthresh"),
    at(80, Kind::U32, "snd_cwnd"),
    at(84, Kind::U32, "advmss"),
    at(88, Kind::U32, "reordering"),
    at(92, Kind::U32, "rcv_rtt"),
    at(96, Kind::U32, "rcv_space"),
    at(100, Kind::U32, "total_retrans"),
    at(104, Kind::U64, "pacing_rate"),
    at(112, Kind::U64, "max_pacing_rate"),
    at(120, Kind::U64, "bytes_acked"),
    at(128, Kind::U64, "bytes_received"),
    at(136, Kind::U32, "segs_out"),
    at(140, Kind::U32, "segs_in"),
    at(144, Kind::U32, "notsent_bytes"),
    at(148, Kind::U32, "min_rtt"),
    at(152, Kind::U32, "data_segs_in"),
    at(156, Kind::U32, "data_segs_out"),
    at(160, Kind::U64, "delivery_rate"),
    at(168, Kind::U64, "busy_time"),
    at(176, Kind::U64, "rwnd_limited"),
    at(184, Kind::U64, "sndbuf_limited"),
    at(192, Kind::U32, "delivered"),
    at(196, Kind::U32, "delivered_ce"),
    at(200, Kind::U64, "bytes_sent"),
    at(208, Kind::U64, "bytes_retrans"),
    at(216, Kind::U32, "dsack_dups"),
    at(220, Kind::U32, "reord_seen"),
    at(224, Kind::U32, "rcv_ooopack"),
    at(228, Kind::U32, "snd_wnd"),
    at(232, Kind::U32, "rcv_wnd"),
    at(236, Kind::U32, "rehash"),
    at(240, Kind::U16, "total_rto"),
    at(242, Kind::U16, "total_rto_recoveries"),
    at(244, Kind::U32, "total_rto_time"),
];

/// The columns of the table `tcp` that this structure fills.
pub const COLUMNS: [Column; FIELDS.len()] = {
    let mut columns = [Column::optional("", Kind::U8); FIELDS.len()];
    let mut index = 0;
    while index < FIELDS.len() {
        columns[index] = Column::optional(FIELDS[index].name, FIELDS[index].kind);
        index += 1;
    }
    columns
};

/// The cells of `COLUMNS`, read from the structure as far as it goes.
pub fn cells(info: &[u8]) -> impl Iterator<Item = Cell<'static>> + '_ {
    FIELDS.iter().map(|field| Cell::from(field.read(info)))
}

impl Field {
    fn read(&self, info: &[u8]) -> Option<u64> {
        let tail = info.get(self.offset..)?;
        let value = match self.kind {
            Kind::U8 => u64::from(*tail.first()?),
            Kind::U16 => u64::from(u16::from_ne_bytes(*tail.first_chunk()?)),
            Kind::U32 => u64::from(u32::from_ne_bytes(*tail.first_chunk()?)),
            _ => u64::from_ne_bytes(*tail.first_chunk()?),
        };
        Some(self.bits.map_or(value, |(first, width)| (value >> first) & ((1 << width) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: &[u8], name: &str) -> Option<u64> {
        FIELDS.iter().find(|field| field.name == name).expect("a field").read(info)
    }

    #[test]
    fn fields_follow_each_other_without_gap_or_overlap() {
        let mut end = 0;
        for field in &FIELDS {
            if field.bits.is_some_and(|(first, _)| first > 0) {
                continue; // shares the byte of the field before
            }
            assert_eq!(field.offset, end, "{}", field.name);
            end += match field.kind {
                Kind::U8 => 1,
                Kind::U16 => 2,
                Kind::U32 => 4,
                _ => 8,
            };
        }
        assert_eq!(end, 248, "sizeof(struct tcp_info) of Linux 6.12");
    }

    #[test]
    fn bit_fields_are_taken_apart() {
        let mut info = [0; 248];
        info[6] = 0x97;
        info[7] = 0b101;
        assert_eq!(read(&info, "snd_wscale"), Some(7));
        assert_eq!(read(&info, "rcv_wscale"), Some(9));
        assert_eq!(read(&info, "delivery_rate_app_limited"), Some(1));
        assert_eq!(read(&info, "fastopen_client_fail"), Some(2));
    }

    #[test]
    fn what_an_older_kernel_lacks_is_null() {
        let mut info = [0; 232]; // Linux 5.10 and 6.1
        info[80..84].copy_from_slice(&10u32.to_ne_bytes());
        assert_eq!(read(&info, "snd_cwnd"), Some(10));
        assert_eq!(read(&info, "snd_wnd"), Some(0));
        assert_eq!(read(&info, "rcv_wnd"), None);
        assert_eq!(read(&info, "total_rto"), None);
    }
}
