# SPDX-License-Identifier: Apache-2.0
"""The probe's tables: which columns they have when a run wrote none, the names of its streams, and packets by layers.

A stream is one flow or probe of the plan; its name stands in the column `stream`. The layers, in the order in which a
packet passes them at one node (`kernel/drivers/probe_abi.h`):

| layer | the packet |
|---|---|
| `rx` | has arrived, until the stack has it: interrupt moderation, NAPI, GRO |
| `resequence` | is in mac80211 of the receiver, until no MPDU before it is missing |
| `reorder` | is in the receiver, until nothing before it is missing |
| `read` | is in the receiver's socket, until it is read |
| `cwnd`, `rwnd`, `pacing`, `tsq`, `push` | is written but not sent: congestion window, receiver's window, pacing, \
TCP Small Queues, Nagle and the like |
| `recovery` | was sent before, until it was sent again |
| `stack` | is between socket or receive path and qdisc |
| `qdisc` | is in the qdisc |
| `txq` | is in mac80211's queue (FQ-CoDel), until the radio's driver takes it |
| `ring` | is with the driver, until its first bit leaves; of a radio: until its PPDU is first in its hardware queue |
| `contention` | until that PPDU begins: EDCA, others' air time, RTS and CTS |
| `retry` | until the PPDU begins that is received |
| `air` | that PPDU, preamble to last bit |
| `wire` | is being transmitted |
| `propagation` | is on its way: the cable's delay and jitter; through the air |
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from polars.datatypes import DataType, DataTypeClass

LAYERS = (
    "rx", "resequence", "reorder", "read", "cwnd", "rwnd", "pacing", "tsq", "push", "recovery", "stack", "qdisc", "txq",
    "ring", "contention", "retry", "air", "wire", "propagation",
)  # fmt: skip
COLUMNS = [f"{layer}_ns" for layer in LAYERS]
WAYS = ("up", "down")
PLACES = ("socket", "stack", "qdisc", "ring", "wire", "rx", "txq", "air")

Schema = dict[str, "DataType | DataTypeClass"]

_STREAM: Schema = {"t_ns": pl.Int64, "flow": pl.UInt16, "probe": pl.UInt16, "way": pl.String}
SCHEMAS: dict[str, Schema] = {
    "packet": {"t_ns": pl.Int64, "end_ns": pl.Int64, "flow": pl.UInt16, "probe": pl.UInt16, "way": pl.String,
               "packet": pl.UInt32, "bytes": pl.UInt32, "data": pl.Boolean, "visit": pl.UInt8, "node": pl.String,
               **dict.fromkeys(COLUMNS, pl.Int64)},
    "layer": {**_STREAM, "data": pl.Boolean, "node": pl.String, "packets": pl.UInt64,
              **dict.fromkeys(COLUMNS, pl.UInt64)},
    "queue": {"t_ns": pl.Int64, "node": pl.String, "device": pl.String, "qdisc_packets": pl.UInt32,
              "qdisc_bytes": pl.UInt32, "ring_skbs": pl.UInt32, "ring_bytes": pl.UInt32, "bql_limit": pl.UInt32,
              "bql_inflight": pl.UInt32, "txq_packets": pl.UInt32, "txq_bytes": pl.UInt32},
    "drop": {**_STREAM, "node": pl.String, "device": pl.String, "place": pl.String, "reason": pl.String,
             "packets": pl.UInt32, "bytes": pl.UInt32},
    "balance": {**_STREAM, "sent": pl.UInt64, "duplicated": pl.UInt64, "delivered": pl.UInt64, "dropped": pl.UInt64,
                "in_flight": pl.UInt64, "unmatched": pl.UInt64},
    "qdisc_stat": {"t_ns": pl.Int64, "node": pl.String, "device": pl.String, "handle": pl.String, "kind": pl.String,
                   "name": pl.String, "value": pl.Int64},
    "datagram": {"t_ns": pl.Int64, "datagram": pl.UInt16, "seq": pl.UInt32, "owd_ns": pl.Int64,
                 "refused": pl.Boolean},
    "fetch": {"t_ns": pl.Int64, "fetch": pl.UInt16, "seq": pl.UInt32, "bytes": pl.UInt64, "first_ns": pl.Int64,
              "done_ns": pl.Int64},
}  # fmt: skip
"""Columns of the tables that a run need not have written (ARCHITECTURE.md, "The records"): those that a kernel without
the probe does not give, and those of traffic that not every test has."""


def table(tables: Mapping[str, pl.DataFrame], name: str) -> pl.DataFrame:
    """A record table; without rows but with its columns when the run did not write it and it is one of the probe's."""
    found = tables.get(name)
    return pl.DataFrame(schema=SCHEMAS.get(name, {})) if found is None else found


def named(frame: pl.DataFrame, plan: dict[str, Any]) -> pl.DataFrame:
    """With a column `stream` behind `flow` and `probe`: the flow's or probe's name in the plan, null of neither."""
    streams = {"flow": plan["flows"], "probe": [*plan["probes"], *plan.get("datagrams", [])]}
    names = {kind: {one["id"]: one["name"] for one in found} for kind, found in streams.items()}
    kinds = [kind for kind in names if kind in frame.columns]
    if not kinds:
        return frame
    kind_of = pl.Enum(list(dict.fromkeys(name for kind in names.values() for name in kind.values())))
    found = [pl.col(kind).replace_strict(names[kind], default=None, return_dtype=kind_of) for kind in kinds]
    if frame.is_empty():
        found = [pl.lit(None, dtype=kind_of)]
    place = 1 + max(frame.columns.index(kind) for kind in kinds)
    order = [*frame.columns[:place], "stream", *frame.columns[place:]]
    return frame.with_columns(pl.coalesce(found).alias("stream")).select(order)


def coded(frame: pl.DataFrame, plan: dict[str, Any]) -> pl.DataFrame:
    """The columns `node` and `way` as enumerations: a million rows stay small and quick."""
    return frame.with_columns(pl.col("node").cast(pl.Enum(plan["nodes"])), pl.col("way").cast(pl.Enum(WAYS)))


KEYS = ("t_ns", "end_ns", "stream", "way", "packet", "data", "visit", "node")


def long(packets: pl.DataFrame) -> pl.DataFrame:
    """A row per packet, node and layer that took time: the `KEYS` of `Run.packets`, then `layer` and `ns`.

    In the order of `packets`, a packet's layers in the order in which it passed them."""
    rows = packets.lazy().select(*KEYS, *COLUMNS).with_row_index("row")
    kind = pl.Enum(LAYERS)
    parts = [
        rows.filter(pl.col(column) != 0).select(
            "row", *KEYS, pl.lit(layer, dtype=kind).alias("layer"), pl.col(column).alias("ns")
        )
        for layer, column in zip(LAYERS, COLUMNS, strict=True)
    ]
    return pl.concat(parts).sort("row", "layer").drop("row").collect()


def path_order(packets: pl.DataFrame, plan: dict[str, Any]) -> list[str]:
    """The plan's nodes in the order in which packets to the server pass them, then those that none passed."""
    streams = [*plan["flows"], *plan["probes"]]  # every test has pings
    ends = (streams[0]["client"], streams[0]["server"]) if streams else ("", "")
    visits = packets.filter(pl.col("way") == "up").group_by("node").agg(pl.col("visit").mean()).sort("visit", "node")
    seen = [node for node in visits["node"] if node not in ends]
    between = [node for node in plan["nodes"] if node not in (*ends, *seen)]
    return _present([ends[0], *seen, *([] if seen else between), ends[1], *between], plan["nodes"])


def _present(names: Iterable[str], nodes: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in nodes]
