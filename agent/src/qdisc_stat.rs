// SPDX-License-Identifier: Apache-2.0
//! A qdisc's own counters, beside those that all have: what `tc -s` prints below the second line
//! (`include/uapi/linux/pkt_sched.h` of Linux 7.3).
//!
//! Structures only grow at their end, so what is not there is not told. Names are tc's, those of a cake's tins with
//! the tin in front; units are the kernel's (times of `codel` in µs, of `fq` in ns; of `dualpi2` in µs; tokens of `htb` in 64 ns).

use std::fmt::Write;

use zerocopy::FromBytes;

use crate::abi::{Stat, STATS};
use crate::netlink::{u32_at, u64_at, Attributes};
use crate::reader::text;

enum Word {
    U32,
    S32,
    U64,
    /// A probability in units of 2^-64, told in units of 10^-9.
    Probability,
    /// One in units of 2^-32, told in the same.
    Part,
}

use Word::{Part, Probability, S32, U32, U64};

type Field = (&'static str, usize, Word);

const CODEL: &[Field] = &[
    ("maxpacket", 0, U32),
    ("count", 4, U32),
    ("lastcount", 8, U32),
    ("ldelay", 12, U32),
    ("drop_next", 16, S32),
    ("drop_overlimit", 20, U32),
    ("ecn_mark", 24, U32),
    ("dropping", 28, U32),
    ("ce_mark", 32, U32),
];

/// After the word that says whether they are the qdisc's or a class's.
const FQ_CODEL: &[Field] = &[
    ("maxpacket", 4, U32),
    ("drop_overlimit", 8, U32),
    ("ecn_mark", 12, U32),
    ("new_flow_count", 16, U32),
    ("new_flows_len", 20, U32),
    ("old_flows_len", 24, U32),
    ("ce_mark", 28, U32),
    ("memory_used", 32, U32),
    ("drop_overmemory", 36, U32),
];

const FQ: &[Field] = &[
    ("gc", 0, U64),
    ("highprio", 8, U64),
    ("retrans", 16, U64),
    ("throttled", 24, U64),
    ("flows_plimit", 32, U64),
    ("pkts_too_long", 40, U64),
    ("alloc_errors", 48, U64),
    ("next_packet_delay", 56, U64),
    ("flows", 64, U32),
    ("flows_inactive", 68, U32),
    ("flows_throttled", 72, U32),
    ("latency", 76, U32),
    ("ce_mark", 80, U64),
    ("horizon_drops", 88, U64),
    ("horizon_caps", 96, U64),
    ("fastpath", 104, U64),
    ("band0_drops", 112, U64),
    ("band1_drops", 120, U64),
    ("band2_drops", 128, U64),
    ("band0_pkts", 136, U32),
    ("band1_pkts", 140, U32),
    ("band2_pkts", 144, U32),
];

/// As of Linux 5.6.
const PIE: &[Field] = &[
    ("prob", 0, Probability),
    ("delay", 8, U32),
    ("avg_dq_rate", 12, U32),
    ("dq_rate_estimating", 16, U32),
    ("packets_in", 20, U32),
    ("dropped", 24, U32),
    ("overlimit", 28, U32),
    ("maxq", 32, U32),
    ("ecn_mark", 36, U32),
];

const FQ_PIE: &[Field] = &[
    ("pkts_in", 0, U32),
    ("dropped", 4, U32),
    ("overlimit", 8, U32),
    ("overmemory", 12, U32),
    ("ecn_mark", 16, U32),
    ("new_flow_count", 20, U32),
    ("new_flows_len", 24, U32),
    ("old_flows_len", 28, U32),
    ("memory_used", 32, U32),
];

const RED: &[Field] = &[("early", 0, U32), ("pdrop", 4, U32), ("other", 8, U32), ("marked", 12, U32)];

const DUALPI2: &[Field] = &[
    ("prob", 0, Part),
    ("delay_c", 4, U32),
    ("delay_l", 8, U32),
    ("packets_in_c", 12, U32),
    ("packets_in_l", 16, U32),
    ("maxq", 20, U32),
    ("ecn_mark", 24, U32),
    ("step_marks", 28, U32),
    ("credit", 32, S32),
    ("memory_used", 36, U32),
    ("max_memory_used", 40, U32),
    ("memory_limit", 44, U32),
];

/// At the end of `struct tc_sfq_qopt_v1`.
const SFQ_OPTIONS: &[Field] = &[
    ("prob_drop", 48, U32),
    ("forced_drop", 52, U32),
    ("prob_mark", 56, U32),
    ("forced_mark", 60, U32),
    ("prob_mark_head", 64, U32),
    ("forced_mark_head", 68, U32),
];

const HTB_CLASS: &[Field] = &[
    ("lended", 0, U32),
    ("borrowed", 4, U32),
    ("giants", 8, U32),
    ("tokens", 12, S32),
    ("ctokens", 16, S32),
];

/// Qdiscs whose classes are sampled beside them.
pub const CLASSFUL: [&str; 3] = ["htb", "prio", "ets"];
const HTB_CLASS_KIND: &str = "htb class";
const SFQ_QTH_MIN: usize = 32;
const FQ_CODEL_QDISC: u32 = 0;

/// `TCA_CAKE_STATS_*` and `TCA_CAKE_TIN_STATS_*`, by number.
const CAKE_TINS: u16 = 10;
const CAKE: [(u16, &str); 8] = [
    (2, "capacity_estimate"),
    (3, "memory_limit"),
    (4, "memory_used"),
    (5, "avg_hdr_offset"),
    (6, "min_network_size"),
    (7, "max_network_size"),
    (8, "min_adj_size"),
    (9, "max_adj_size"),
];
const CAKE_TIN: [(u16, &str); 21] = [
    (2, "sent_packets"),
    (3, "sent_bytes"),
    (4, "drops"),
    (6, "ack_drops"),
    (8, "ecn_mark"),
    (10, "backlog_packets"),
    (11, "backlog_bytes"),
    (12, "threshold_rate"),
    (13, "target_us"),
    (14, "interval_us"),
    (15, "way_indirect_hits"),
    (16, "way_misses"),
    (17, "way_collisions"),
    (18, "peak_delay_us"),
    (19, "avg_delay_us"),
    (20, "base_delay_us"),
    (21, "sparse_flows"),
    (22, "bulk_flows"),
    (23, "unresponsive_flows"),
    (24, "max_pkt_len"),
    (25, "flow_quantum"),
];

/// Hands each counter to `each`. `app` is the content of `TCA_STATS_APP`, `options` of `TCA_OPTIONS`; of a kind that is
/// not known, what it names itself.
pub fn read(kind: &str, app: &[u8], options: &[u8], mut each: impl FnMut(&str, i64)) {
    let (fields, bytes) = match kind {
        "codel" => (CODEL, app),
        "fq_codel" if u32_at(app, 0) == Some(FQ_CODEL_QDISC) => (FQ_CODEL, app),
        "fq" => (FQ, app),
        "pie" => (PIE, app),
        "fq_pie" => (FQ_PIE, app),
        "dualpi2" => (DUALPI2, app),
        "red" => (RED, app),
        "sfq" if u32_at(options, SFQ_QTH_MIN).is_some_and(|least| least > 0) => (SFQ_OPTIONS, options),
        HTB_CLASS_KIND => (HTB_CLASS, app),
        "cake" => return cake(app, &mut each),
        _ => return named(app, &mut each),
    };
    for (name, at, word) in fields {
        if let Some(value) = word.read(bytes, *at) {
            each(name, value);
        }
    }
}

impl Word {
    fn read(&self, bytes: &[u8], at: usize) -> Option<i64> {
        match self {
            U32 => u32_at(bytes, at).map(i64::from),
            S32 => word_at(bytes, at).map(i32::from_ne_bytes).map(i64::from),
            U64 => word_at(bytes, at).map(i64::from_ne_bytes),
            Probability => u64_at(bytes, at).map(billionths),
            Part => u32_at(bytes, at).map(|part| billionths(u64::from(part) << 32)),
        }
    }
}

/// What a qdisc of the user's own shows of its state (`kernel/drivers/hourglass_qdisc.h`).
fn named(app: &[u8], each: &mut impl FnMut(&str, i64)) {
    let stats = || app.chunks(size_of::<Stat>()).map_while(|bytes| Stat::read_from_bytes(bytes).ok());
    if stats().next().is_some_and(|head| head.value == i64::from(STATS) && text(&head.name) == Some("")) {
        for stat in stats().skip(1) {
            each(text(&stat.name).unwrap_or("?"), stat.value);
        }
    }
}

fn word_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn billionths(probability: u64) -> i64 {
    let value = (u128::from(probability) * 1_000_000_000) >> 64;
    i64::try_from(value).expect("is below 10^9")
}

fn cake(app: &[u8], each: &mut impl FnMut(&str, i64)) {
    let mut name = String::new();
    for (number, content) in Attributes::after(app, 0) {
        if number == CAKE_TINS {
            for (tin, content) in Attributes::after(content, 0) {
                for (number, content) in Attributes::after(content, 0) {
                    let Some((_, own)) = CAKE_TIN.iter().find(|(known, _)| *known == number) else {
                        continue;
                    };
                    name.clear();
                    let _ = write!(name, "tin{}_{own}", tin.saturating_sub(1));
                    tell(&name, content, each);
                }
            }
        } else if let Some((_, name)) = CAKE.iter().find(|(known, _)| *known == number) {
            tell(name, content, each);
        }
    }
}

fn tell(name: &str, content: &[u8], each: &mut impl FnMut(&str, i64)) {
    let value = word_at(content, 0).map(i64::from_ne_bytes).or_else(|| u32_at(content, 0).map(i64::from));
    if let Some(value) = value {
        each(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn all(kind: &str, app: &[u8], options: &[u8]) -> Vec<(String, i64)> {
        let mut counters = Vec::new();
        read(kind, app, options, |name, value| counters.push((name.to_owned(), value)));
        counters
    }

    /// Words 1, 2, 3 …
    fn words(count: u32) -> Vec<u8> {
        (1..=count).flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn a_structure_of_words_gives_them_all() {
        let codel = all("codel", &words(9), &[]);
        assert_eq!(codel.iter().map(|(_, value)| *value).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
        assert_eq!(all("red", &words(4), &[])[3], ("marked".into(), 4));
        assert_eq!(all("fq_pie", &words(9), &[])[8], ("memory_used".into(), 9));
        let minus = (-5i32).to_ne_bytes();
        assert_eq!(
            all("htb class", &[&words(3)[..], &minus, &minus].concat(), &[])[4],
            ("ctokens".into(), -5)
        );
    }

    #[test]
    fn an_older_kernel_tells_less() {
        assert_eq!(all("fq", &[1; 88], &[]).len(), 13, "Linux 5.4");
        assert_eq!(all("fq", &[1; 104], &[]).len(), 15, "Linux 5.10 and 6.1");
        assert_eq!(all("fq", &[1; 152], &[]).len(), 22, "Linux 6.12");
    }

    #[test]
    fn fq_codel_is_told_from_its_classes() {
        let qdisc = [&0u32.to_ne_bytes()[..], &words(9)].concat();
        assert_eq!(all("fq_codel", &qdisc, &[])[8], ("drop_overmemory".into(), 9));
        let class = [&1u32.to_ne_bytes()[..], &words(9)].concat();
        assert_eq!(all("fq_codel", &class, &[]), []);
    }

    #[test]
    fn a_probability_is_in_billionths() {
        let half = [&(1u64 << 63).to_ne_bytes()[..], &words(8)].concat();
        assert_eq!(all("pie", &half, &[])[0], ("prob".into(), 500_000_000));
        assert_eq!(billionths(u64::MAX), 999_999_999);
        let half = [&(1u32 << 31).to_ne_bytes()[..], &words(11)].concat();
        let told = all("dualpi2", &half, &[]);
        assert_eq!(
            (told.len(), &told[0], &told[11]),
            (12, &("prob".into(), 500_000_000), &("memory_limit".into(), 11))
        );
    }

    #[test]
    fn sfq_tells_only_with_red() {
        assert_eq!(all("sfq", &[], &words(18))[0], ("prob_drop".into(), 13));
        assert_eq!(all("sfq", &[], &[0; 72]), []);
        assert_eq!(all("sfq", &[], &words(5)), [], "an old kernel");
    }

    #[test]
    fn the_tins_of_a_cake_are_numbered_from_0() {
        let tin =
            |drops: u32| [attribute(4, &drops.to_ne_bytes()), attribute(3, &7u64.to_ne_bytes())].concat();
        let tins = [attribute(1, &tin(5)), attribute(2, &tin(6))].concat();
        let cake = [attribute(4, &9u32.to_ne_bytes()), attribute(CAKE_TINS, &tins)].concat();
        let expected = [("memory_used", 9), ("tin0_drops", 5), ("tin0_sent_bytes", 7), ("tin1_drops", 6)];
        let told = all("cake", &cake, &[]);
        assert_eq!(told.len(), 5);
        for (name, value) in expected {
            assert!(told.contains(&(name.to_owned(), value)), "{name}");
        }
    }

    #[test]
    fn a_qdisc_of_ones_own_names_its_fields() {
        let stat = |value: i64, name: &str| {
            let mut bytes = value.to_ne_bytes().to_vec();
            bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(32));
            bytes
        };
        let head = stat(i64::from(STATS), "");
        let app = [head.clone(), stat(7, "marked"), stat(-1, "credit")].concat();
        assert_eq!(all("mine", &app, &[]), [("marked".into(), 7), ("credit".into(), -1)]);
        assert_eq!(all("mine", &app[40..], &[]), [], "without a head");
        assert_eq!(all("mine", &app[..100], &[]), [("marked".into(), 7)], "cut off");
        assert_eq!(all("mine", &head, &[]), []);
    }

    #[test]
    fn of_other_kinds_nothing_is_told() {
        assert_eq!(all("pfifo_fast", &words(20), &words(20)), []);
        assert_eq!(all("codel", &[1, 2, 3], &[]), [], "cut off");
    }
}
