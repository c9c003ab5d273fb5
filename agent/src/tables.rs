// SPDX-License-Identifier: Apache-2.0
//! Every table's schema, declared here and nowhere else. ARCHITECTURE.md says what the columns mean.

use crate::abi;
use crate::column::{Column, Kind};
use crate::tcp_info;

#[derive(Clone, Copy)]
pub enum Table {
    Tcp,
    Ping,
    Device,
    Ethtool,
    Qdisc,
    QdiscStat,
    Flow,
    Fact,
    Packet,
    Layer,
    Queue,
    Drop,
    Balance,
    Radio,
    Station,
    Datagram,
    Fetch,
}

/// Every table, in the order of `Table`.
pub const TABLES: [(&str, &[&[Column]]); 17] = [
    ("tcp", &[TCP, &tcp_info::COLUMNS, TCP_EXTRAS, TCP_SENDING]),
    ("ping", &[PING]),
    ("device", &[DEVICE]),
    ("ethtool", &[ETHTOOL]),
    ("qdisc", &[QDISC]),
    ("qdisc_stat", &[QDISC_STAT]),
    ("flow", &[FLOW]),
    ("fact", &[FACT]),
    ("packet", &[PACKET, STREAM, PACKET_VISIT, &layers(Kind::I64)]),
    ("layer", &[TIME, STREAM, LAYER, &layers(Kind::U64)]),
    ("queue", &[QUEUE]),
    ("drop", &[TIME, STREAM, DROP]),
    ("balance", &[TIME, STREAM, BALANCE]),
    ("radio", &[TIME, DEVICE_OF, COUNTER]),
    ("station", &[TIME, DEVICE_OF, STATION, COUNTER]),
    ("datagram", &[DATAGRAM]),
    ("fetch", &[FETCH]),
];

const DATAGRAM: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("datagram", Kind::U16),
    Column::of("seq", Kind::U32),
    Column::optional("owd_ns", Kind::I64),
    Column::of("refused", Kind::Bool),
];

const FETCH: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("fetch", Kind::U16),
    Column::of("seq", Kind::U32),
    Column::of("bytes", Kind::U64),
    Column::optional("first_ns", Kind::I64),
    Column::optional("done_ns", Kind::I64),
];

const DEVICE_OF: &[Column] = &[Column::of("node", Kind::Text), Column::of("device", Kind::Text)];

/// The other end of a radio's counter: its address.
const STATION: &[Column] = &[Column::of("station", Kind::Text)];

/// A counter whose name is the driver's.
const COUNTER: &[Column] = &[Column::of("name", Kind::Text), Column::of("value", Kind::I64)];

const TCP: &[Column] =
    &[Column::of("t_ns", Kind::I64), Column::of("flow", Kind::U16), Column::of("sender", Kind::Bool)];

/// What stands beside `struct tcp_info`, in the order of the kernel's structures: `sk_meminfo`, `tcp_bbr_info`
/// (its two halves of `bw` joined), `tcpvegas_info`, `tcp_dctcp_info`.
const TCP_EXTRAS: &[Column] = &[
    Column::optional("sk_rmem_alloc", Kind::U32),
    Column::optional("sk_rcvbuf", Kind::U32),
    Column::optional("sk_wmem_alloc", Kind::U32),
    Column::optional("sk_sndbuf", Kind::U32),
    Column::optional("sk_fwd_alloc", Kind::U32),
    Column::optional("sk_wmem_queued", Kind::U32),
    Column::optional("sk_optmem", Kind::U32),
    Column::optional("sk_backlog", Kind::U32),
    Column::optional("sk_drops", Kind::U32),
    Column::optional("bbr_bw", Kind::U64),
    Column::optional("bbr_min_rtt", Kind::U32),
    Column::optional("bbr_pacing_gain", Kind::U32),
    Column::optional("bbr_cwnd_gain", Kind::U32),
    Column::optional("vegas_enabled", Kind::U32),
    Column::optional("vegas_rttcnt", Kind::U32),
    Column::optional("vegas_rtt", Kind::U32),
    Column::optional("vegas_minrtt", Kind::U32),
    Column::optional("dctcp_enabled", Kind::U16),
    Column::optional("dctcp_ce_state", Kind::U16),
    Column::optional("dctcp_alpha", Kind::U32),
    Column::optional("dctcp_ab_ecn", Kind::U32),
    Column::optional("dctcp_ab_tot", Kind::U32),
];

const PING: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("probe", Kind::U16),
    Column::of("seq", Kind::U32),
    Column::optional("rtt_ns", Kind::I64),
    Column::optional("owd_up_ns", Kind::I64),
    Column::optional("owd_down_ns", Kind::I64),
];

const DEVICE: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("rx_packets", Kind::U64),
    Column::of("tx_packets", Kind::U64),
    Column::of("rx_bytes", Kind::U64),
    Column::of("tx_bytes", Kind::U64),
    Column::of("rx_dropped", Kind::U64),
    Column::of("tx_dropped", Kind::U64),
    Column::of("rx_errors", Kind::U64),
    Column::of("tx_errors", Kind::U64),
];

const ETHTOOL: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("name", Kind::Text),
    Column::of("value", Kind::U64),
];

const QDISC: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("kind", Kind::Text),
    Column::of("handle", Kind::Text),
    Column::of("parent", Kind::Text),
    Column::of("bytes", Kind::U64),
    Column::of("packets", Kind::U64),
    Column::of("drops", Kind::U64),
    Column::of("overlimits", Kind::U64),
    Column::of("requeues", Kind::U64),
    Column::of("qlen", Kind::U64),
    Column::of("backlog", Kind::U64),
];

const FLOW: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("flow", Kind::U16),
    Column::of("event", Kind::Text),
    Column::of("detail", Kind::Text),
];

const FACT: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::optional("node", Kind::Text),
    Column::of("key", Kind::Text),
    Column::of("value", Kind::Text),
];

/// Why unsent data waits: known to the kernel's probe alone.
const TCP_SENDING: &[Column] = &[
    Column::optional("tsq_limit", Kind::U64),
    Column::optional("tsq_truesize", Kind::U32),
    Column::optional("tsq_term", Kind::Text),
    Column::optional("tsq_rate", Kind::U64),
    Column::optional("tsq_shift", Kind::U32),
    Column::optional("tsq_throttled", Kind::U32),
    Column::optional("gso_bytes", Kind::U32),
    Column::optional("hold", Kind::Text),
    Column::optional("hold_cwnd_ns", Kind::U64),
    Column::optional("hold_rwnd_ns", Kind::U64),
    Column::optional("hold_pacing_ns", Kind::U64),
    Column::optional("hold_tsq_ns", Kind::U64),
    Column::optional("hold_push_ns", Kind::U64),
];

const QDISC_STAT: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("handle", Kind::Text),
    Column::of("kind", Kind::Text),
    Column::of("name", Kind::Text),
    Column::of("value", Kind::I64),
];

const TIME: &[Column] = &[Column::of("t_ns", Kind::I64)];

/// One way of one flow or probe; all null for what is neither.
const STREAM: &[Column] = &[
    Column::optional("flow", Kind::U16),
    Column::optional("probe", Kind::U16),
    Column::optional("way", Kind::Text),
];

const PACKET: &[Column] = &[Column::of("t_ns", Kind::I64), Column::of("end_ns", Kind::I64)];

const PACKET_VISIT: &[Column] = &[
    Column::of("packet", Kind::U32),
    Column::of("bytes", Kind::U32),
    Column::of("data", Kind::Bool),
    Column::of("visit", Kind::U8),
    Column::of("node", Kind::Text),
];

const LAYER: &[Column] =
    &[Column::of("data", Kind::Bool), Column::of("node", Kind::Text), Column::of("packets", Kind::U64)];

const QUEUE: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("qdisc_packets", Kind::U32),
    Column::of("qdisc_bytes", Kind::U32),
    Column::of("ring_skbs", Kind::U32),
    Column::of("ring_bytes", Kind::U32),
    Column::of("bql_limit", Kind::U32),
    Column::of("bql_inflight", Kind::U32),
    Column::of("txq_packets", Kind::U32),
    Column::of("txq_bytes", Kind::U32),
];

const DROP: &[Column] = &[
    Column::of("node", Kind::Text),
    Column::optional("device", Kind::Text),
    Column::of("place", Kind::Text),
    Column::of("reason", Kind::Text),
    Column::of("packets", Kind::U32),
    Column::of("bytes", Kind::U32),
];

const BALANCE: &[Column] = &[
    Column::of("sent", Kind::U64),
    Column::of("duplicated", Kind::U64),
    Column::of("delivered", Kind::U64),
    Column::of("dropped", Kind::U64),
    Column::of("in_flight", Kind::U64),
    Column::of("unmatched", Kind::U64),
];

/// The layers' columns, in the order of `enum probe_layer`.
const LAYERS: [&str; abi::LAYERS] = [
    "rx_ns",
    "resequence_ns",
    "reorder_ns",
    "read_ns",
    "cwnd_ns",
    "rwnd_ns",
    "pacing_ns",
    "tsq_ns",
    "push_ns",
    "recovery_ns",
    "stack_ns",
    "qdisc_ns",
    "txq_ns",
    "ring_ns",
    "contention_ns",
    "retry_ns",
    "air_ns",
    "wire_ns",
    "propagation_ns",
];

const fn layers(kind: Kind) -> [Column; abi::LAYERS] {
    let mut columns = [Column::of("", kind); abi::LAYERS];
    let mut index = 0;
    while index < columns.len() {
        columns[index] = Column::of(LAYERS[index], kind);
        index += 1;
    }
    columns
}

/// A layer's name, as in `enum probe_layer`.
pub fn layer_name(index: usize) -> &'static str {
    LAYERS[index].trim_end_matches("_ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_are_unique_and_t_ns_comes_first() {
        for (name, parts) in TABLES {
            let columns: Vec<&str> = parts.concat().iter().map(|column| column.name).collect();
            let unique: std::collections::BTreeSet<_> = columns.iter().collect();
            assert_eq!((columns[0], unique.len()), ("t_ns", columns.len()), "table {name}");
        }
    }
}
