# SPDX-License-Identifier: Apache-2.0
"""Read what holds the data of senders back: the kernel's own accounts of each socket, as shares of the time under load.

`hold_*_ns` of the packet probe name the reason for which written data wait. The kernel counts the time with a full
receive window and a full send buffer (`tcp_info`); the rest without unsent data is the application's.
"""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from hourglass.results.explain.loads import Loads
from hourglass.results.series import NS_PER_S

HOLDS = ("cwnd", "rwnd", "pacing", "tsq", "push")
LIMITS = {"busy": "busy_time", "rwnd": "rwnd_limited", "sndbuf": "sndbuf_limited"}
US_PER_S = 10**6
LOSS_BASED = (
    "cubic",
    "reno",
    "bic",
    "htcp",
    "hybla",
    "highspeed",
    "illinois",
    "scalable",
    "westwood",
    "dctcp",
    "prague",
)


@dataclass(frozen=True)
class SenderShares:
    """Shares of the time under load while a flow is connected, mean over flows. `busy`: with data to send. None: the
    kernel does not say."""

    flows: int
    cwnd: float | None
    rwnd: float | None
    pacing: float | None
    tsq: float | None
    push: float | None
    busy: float | None
    sndbuf: float | None
    tsq_term: str | None
    """The most frequent term of the limit of TCP Small Queues."""
    tsq_limit: float | None
    below_tcp: float | None
    """Bytes of skbs of a flow in qdisc and NIC."""
    skb_bytes: float | None
    cwnd_segments: float | None
    window_bytes: float | None
    ccs: tuple[str, ...]

    @cached_property
    def largest(self) -> str | None:
        """Return the name of the largest share: cwnd, rwnd, pacing, tsq or sndbuf; None without any."""
        shares = {name: getattr(self, name) for name in ("tsq", "rwnd", "pacing", "cwnd", "sndbuf")}
        positive = {name: share for name, share in shares.items() if share}
        return max(positive, key=lambda name: positive[name]) if positive else None

    @property
    def loss_based(self) -> bool:
        """Tell if all congestion controls grow until a loss."""
        return bool(self.ccs) and all(cc in LOSS_BASED for cc in self.ccs)


def sender_shares(loads: Loads, flows: tuple[str, ...]) -> SenderShares:
    """Return the shares of flows, or of programs' connections."""
    window, run = loads.window_of(flows), loads.run
    table = run.tcp.filter(pl.col("stream").cast(pl.String).is_in(flows))
    acked = table.group_by("stream", "sender").agg(pl.col("bytes_acked").max()).sort("bytes_acked", nulls_last=False)
    ends = {str(stream): sender for stream, sender, _ in acked.iter_rows()}
    """Of each stream, the end whose data was acknowledged most: programs' connections have two senders."""
    is_end = pl.col("stream").cast(pl.String).replace_strict(ends, default=True, return_dtype=pl.Boolean)
    rows = table.filter((pl.col("sender") == is_end) & window.contains()).sort("t_ns")

    def grown(column: str, per_s: int) -> float | None:
        values = rows.drop_nulls(column)
        if values.is_empty():
            return None
        spans = values.group_by("stream").agg(
            *(pl.col(name).last().cast(pl.Float64) - pl.col(name).first().cast(pl.Float64) for name in ("t_ns", column))
        ).filter(pl.col("t_ns") > 0)  # fmt: skip
        if spans.is_empty():
            return None
        shares = spans[column] / per_s / (spans["t_ns"] / NS_PER_S)
        return max(0.0, min(1.0, float(shares.to_numpy().mean())))

    def median(column: str) -> float | None:
        value = rows[column].drop_nulls().median()
        return float(value) if isinstance(value, int | float) else None

    terms = rows["tsq_term"].drop_nulls().value_counts(sort=True)
    holds = {name: grown(f"hold_{name}_ns", NS_PER_S) for name in HOLDS}
    limits = {name: grown(column, US_PER_S) for name, column in LIMITS.items()}
    if holds["cwnd"] is None:  # without the probe, time with data that nothing else accounts for
        busy = limits["busy"]
        rest = None if busy is None else max(0.0, busy - (limits["rwnd"] or 0) - (limits["sndbuf"] or 0))
        holds |= {"cwnd": rest, "rwnd": limits["rwnd"]}
    return SenderShares(
        flows=len(flows),
        cwnd=holds["cwnd"],
        rwnd=max((share for share in (holds["rwnd"], limits["rwnd"]) if share is not None), default=None),
        pacing=holds["pacing"],
        tsq=holds["tsq"],
        push=holds["push"],
        busy=limits["busy"],
        sndbuf=limits["sndbuf"],
        tsq_term=str(terms["tsq_term"][0]) if terms.height else None,
        tsq_limit=median("tsq_limit"),
        below_tcp=median("sk_wmem_alloc"),
        skb_bytes=median("gso_bytes"),
        cwnd_segments=median("snd_cwnd"),
        window_bytes=median("snd_wnd"),
        ccs=tuple(dict.fromkeys(flow.cc for flow in run.flows if flow.name in flows)),
    )
