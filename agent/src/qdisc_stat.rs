// SPDX-License-Identifier: Apache-2.0
//! A qdisc's special counters, in addition to those that all qdiscs have: the output of `tc -s` below the second line
//! (`include/uapi/linux/pkt_sched.h` of Linux 7.3).
//!
//! Structures only grow at their end, so missing fields are left out. Names are tc's. Names of cake's tins have the tin
//! as prefix. Units are the kernel's: µs for `codel` and `dualpi2`, ns for `fq`, 64 ns for the tokens of `htb`.

use std::fmt::Write;

use zerocopy::FromBytes;

use crate::abi::{Stat, STATS};
use crate::netlink::{u32_at, u64_at, Attributes};
use crate::probe_records::text;

enum Encoding {
    U32,
    S32,
    U64,
    /// A probability in units of 2^-64, reported in units of 10^-9.
    Probability,
    /// A probability in units of 2^-32, reported in units of 10^-9.
    Fraction,
}

use Encoding::{Fraction, Probability, S32, U32, U64};

type Field = (&'static str, usize, Encoding);

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

/// The fields after the word that distinguishes a qdisc from a class.
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

/// The fields since Linux 5.6.
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
    ("prob", 0, Fraction),
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

/// The fields at the end of `struct tc_sfq_qopt_v1`.
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

/// Qdiscs whose classes are sampled as well.
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

/// Passes each counter to `each`. `app` is the content of `TCA_STATS_APP`, `options` that of `TCA_OPTIONS`. A
/// custom qdisc has its own names.
pub fn read(kind: &str, app: &[u8], options: &[u8], mut on_counter: impl FnMut(&str, i64)) {
    let (fields, bytes) = match kind {
        "codel" => (CODEL, app),
        "fq_codel" if u32_at(app, 0) == Some(FQ_CODEL_QDISC) => (FQ_CODEL, app),
        "fq" => (FQ, app),
        "pie" => (PIE, app),
        "fq_pie" => (FQ_PIE, app),
        "dualpi2" => (DUALPI2, app),
        "red" => (RED, app),
        "sfq" if u32_at(options, SFQ_QTH_MIN).is_some_and(|minimum| minimum > 0) => (SFQ_OPTIONS, options),
        HTB_CLASS_KIND => (HTB_CLASS, app),
        "cake" => return cake(app, &mut on_counter),
        _ => return custom(app, &mut on_counter),
    };
    for (name, at, encoding) in fields {
        if let Some(value) = encoding.read(bytes, *at) {
            on_counter(name, value);
        }
    }
}

impl Encoding {
    fn read(&self, bytes: &[u8], at: usize) -> Option<i64> {
        match self {
            U32 => u32_at(bytes, at).map(i64::from),
            S32 => word_at(bytes, at).map(i32::from_ne_bytes).map(i64::from),
            U64 => word_at(bytes, at).map(i64::from_ne_bytes),
            Probability => u64_at(bytes, at).map(billionths),
            Fraction => u32_at(bytes, at).map(|part| billionths(u64::from(part) << 32)),
        }
    }
}

/// Reads the state that a custom qdisc exports (`kernel/drivers/lib/hourglass_qdisc.h`).
fn custom(app: &[u8], on_counter: &mut impl FnMut(&str, i64)) {
    let stats = || app.chunks(size_of::<Stat>()).map_while(|bytes| Stat::read_from_bytes(bytes).ok());
    if stats().next().is_some_and(|head| head.value == i64::from(STATS) && text(&head.name) == Some("")) {
        for stat in stats().skip(1) {
            on_counter(text(&stat.name).unwrap_or("?"), stat.value);
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

fn cake(app: &[u8], on_counter: &mut impl FnMut(&str, i64)) {
    let mut name = String::new();
    for (number, content) in Attributes::after(app, 0) {
        if number == CAKE_TINS {
            for (tin, content) in Attributes::after(content, 0) {
                for (number, content) in Attributes::after(content, 0) {
                    let Some((_, field)) = CAKE_TIN.iter().find(|(id, _)| *id == number) else {
                        continue;
                    };
                    name.clear();
                    let _ = write!(name, "tin{}_{field}", tin.saturating_sub(1));
                    report_value(&name, content, on_counter);
                }
            }
        } else if let Some((_, name)) = CAKE.iter().find(|(id, _)| *id == number) {
            report_value(name, content, on_counter);
        }
    }
}

fn report_value(name: &str, content: &[u8], on_counter: &mut impl FnMut(&str, i64)) {
    let value = word_at(content, 0).map(i64::from_ne_bytes).or_else(|| u32_at(content, 0).map(i64::from));
    if let Some(value) = value {
        on_counter(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn read_all(kind: &str, app: &[u8], options: &[u8]) -> Vec<(String, i64)> {
        let mut counters = Vec::new();
        read(kind, app, options, |name, value| counters.push((name.to_owned(), value)));
        counters
    }

    /// Returns the words 1, 2, 3 …
    fn numbered_words(count: u32) -> Vec<u8> {
        (1..=count).flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn a_structure_has_a_counter_for_each_word() {
        let codel = read_all("codel", &numbered_words(9), &[]);
        assert_eq!(codel.iter().map(|(_, value)| *value).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
        assert_eq!(read_all("red", &numbered_words(4), &[])[3], ("marked".into(), 4));
        assert_eq!(read_all("fq_pie", &numbered_words(9), &[])[8], ("memory_used".into(), 9));
        let minus = (-5i32).to_ne_bytes();
        assert_eq!(
            read_all("htb class", &[&numbered_words(3)[..], &minus, &minus].concat(), &[])[4],
            ("ctokens".into(), -5)
        );
    }

    #[test]
    fn an_older_kernel_has_fewer_counters() {
        assert_eq!(read_all("fq", &[1; 88], &[]).len(), 13, "Linux 5.4");
        assert_eq!(read_all("fq", &[1; 104], &[]).len(), 15, "Linux 5.10 and 6.1");
        assert_eq!(read_all("fq", &[1; 152], &[]).len(), 22, "Linux 6.12");
    }

    #[test]
    fn fq_codel_is_distinguished_from_its_classes() {
        let qdisc = [&0u32.to_ne_bytes()[..], &numbered_words(9)].concat();
        assert_eq!(read_all("fq_codel", &qdisc, &[])[8], ("drop_overmemory".into(), 9));
        let class = [&1u32.to_ne_bytes()[..], &numbered_words(9)].concat();
        assert_eq!(read_all("fq_codel", &class, &[]), []);
    }

    #[test]
    fn a_probability_is_in_billionths() {
        let half = [&(1u64 << 63).to_ne_bytes()[..], &numbered_words(8)].concat();
        assert_eq!(read_all("pie", &half, &[])[0], ("prob".into(), 500_000_000));
        assert_eq!(billionths(u64::MAX), 999_999_999);
        let half = [&(1u32 << 31).to_ne_bytes()[..], &numbered_words(11)].concat();
        let counters = read_all("dualpi2", &half, &[]);
        assert_eq!(
            (counters.len(), &counters[0], &counters[11]),
            (12, &("prob".into(), 500_000_000), &("memory_limit".into(), 11))
        );
    }

    #[test]
    fn sfq_has_counters_only_with_red() {
        assert_eq!(read_all("sfq", &[], &numbered_words(18))[0], ("prob_drop".into(), 13));
        assert_eq!(read_all("sfq", &[], &[0; 72]), []);
        assert_eq!(read_all("sfq", &[], &numbered_words(5)), [], "an old kernel");
    }

    #[test]
    fn the_tins_of_a_cake_are_numbered_from_0() {
        let tin =
            |drops: u32| [attribute(4, &drops.to_ne_bytes()), attribute(3, &7u64.to_ne_bytes())].concat();
        let tins = [attribute(1, &tin(5)), attribute(2, &tin(6))].concat();
        let cake = [attribute(4, &9u32.to_ne_bytes()), attribute(CAKE_TINS, &tins)].concat();
        let expected = [("memory_used", 9), ("tin0_drops", 5), ("tin0_sent_bytes", 7), ("tin1_drops", 6)];
        let counters = read_all("cake", &cake, &[]);
        assert_eq!(counters.len(), 5);
        for (name, value) in expected {
            assert!(counters.contains(&(name.to_owned(), value)), "{name}");
        }
    }

    #[test]
    fn a_custom_qdisc_names_its_fields() {
        let stat = |value: i64, name: &str| {
            let mut bytes = value.to_ne_bytes().to_vec();
            bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(32));
            bytes
        };
        let head = stat(i64::from(STATS), "");
        let app = [head.clone(), stat(7, "marked"), stat(-1, "credit")].concat();
        assert_eq!(read_all("mine", &app, &[]), [("marked".into(), 7), ("credit".into(), -1)]);
        assert_eq!(read_all("mine", &app[40..], &[]), [], "without a head");
        assert_eq!(read_all("mine", &app[..100], &[]), [("marked".into(), 7)], "cut off");
        assert_eq!(read_all("mine", &head, &[]), []);
    }

    #[test]
    fn other_kinds_have_no_counters() {
        assert_eq!(read_all("pfifo_fast", &numbered_words(20), &numbered_words(20)), []);
        assert_eq!(read_all("codel", &[1, 2, 3], &[]), [], "cut off");
    }
}
