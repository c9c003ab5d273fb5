// SPDX-License-Identifier: Apache-2.0
//! A field of a kernel structure: its position and its type. A structure only grows at its end, so its length
//! determines the fields that a kernel has.

use crate::column::Kind;

pub struct Field {
    offset: usize,
    kind: Kind,
    /// The first bit and the width of a bit field.
    bits: Option<(u32, u32)>,
}

impl Field {
    pub const fn of(offset: usize, kind: Kind) -> Self {
        Self { offset, kind, bits: None }
    }

    pub const fn bits(offset: usize, first: u32, width: u32) -> Self {
        Self { offset, kind: Kind::U8, bits: Some((first, width)) }
    }

    /// Reads the field; None beyond the end of this kernel's structure.
    pub fn read(&self, structure: &[u8]) -> Option<u64> {
        let tail = structure.get(self.offset..)?;
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
    use crate::tables::{Table, TABLES, TCP_INFO};

    /// Reads the field of `struct tcp_info` for a column.
    fn read(info: &[u8], name: &str) -> Option<u64> {
        let columns = TABLES[Table::Tcp as usize].1;
        let first = columns.iter().position(|column| column.name == "state").expect("a column");
        let index = columns.iter().position(|column| column.name == name).expect("a column");
        TCP_INFO[index - first].read(info)
    }

    #[test]
    fn the_structure_is_as_long_as_the_newest_kernel_s() {
        let info = [0; 280]; // sizeof(struct tcp_info) is 280 in Linux 7.3 and 248 in 6.12
        assert_eq!(read(&info, "accecn_fail_mode"), Some(0));
        assert_eq!(read(&info[..248], "total_rto_time"), Some(0));
        assert_eq!(read(&info[..248], "received_ce"), None);
        assert_eq!(read(&info[..247], "total_rto_time"), None);
    }

    #[test]
    fn bit_fields_are_separated() {
        let mut info = [0; 248];
        info[6] = 0x97;
        info[7] = 0b101;
        assert_eq!(read(&info, "snd_wscale"), Some(7));
        assert_eq!(read(&info, "rcv_wscale"), Some(9));
        assert_eq!(read(&info, "delivery_rate_app_limited"), Some(1));
        assert_eq!(read(&info, "fastopen_client_fail"), Some(2));
        let mut info = [0; 280];
        info[276] = 0b0101_1110;
        assert_eq!(read(&info, "ecn_mode"), Some(2));
        assert_eq!(read(&info, "accecn_opt_seen"), Some(3));
        assert_eq!(read(&info, "accecn_fail_mode"), Some(5));
    }

    #[test]
    fn fields_that_an_older_kernel_lacks_are_null() {
        let mut info = [0; 232]; // Linux 5.10 and 6.1
        info[80..84].copy_from_slice(&10u32.to_ne_bytes());
        assert_eq!(read(&info, "snd_cwnd"), Some(10));
        assert_eq!(read(&info, "snd_wnd"), Some(0));
        assert_eq!(read(&info, "rcv_wnd"), None);
        assert_eq!(read(&info, "total_rto"), None);
    }
}
