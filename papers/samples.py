# SPDX-License-Identifier: Apache-2.0
"""Derive facts about a mechanism from a run's records: samples of the senders in the loaded window."""

import numpy as np
import polars as pl

from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window, ping_ms

ESTABLISHED = 1
US_PER_S = 10**6
PROBE_RTT_CWND = 4
"""tcp_bbr.c: bbr_cwnd_min_target, the window of ProbeRTT."""


def senders(run: Recording) -> pl.DataFrame:
    """Return the senders' samples that have a round trip, as plain signed integers."""
    fields = ["rtt", "snd_mss", "snd_cwnd", "snd_ssthresh", "unacked", "pacing_rate", "sk_wmem_alloc", "min_rtt"]
    is_measured = (
        pl.col("sender") & (pl.col("rtt") > 0) & (pl.col("state") == ESTABLISHED) & loaded_window(run).contains()
    )
    return run.tcp.filter(is_measured).sort("stream", "t_ns").with_columns(pl.col(fields).cast(pl.Int64))


def median_of(column: pl.Series) -> float:
    """Return the median as a number. Raises LookupError if there is none."""
    value = column.drop_nulls().cast(pl.Float64).median()
    if not isinstance(value, float):
        raise LookupError(f"no samples of {column.name}")
    return value


def below_tcp(run: Recording) -> str:
    """Return the sockets' memory in qdisc and NIC, and the term of the TSQ limit that decides, as text; of uploads and
    downloads apart, whose senders are on two nodes."""
    table = senders(run)
    nodes = [
        (direction, part)
        for direction, upload in (("upload", True), ("download", False))
        if (part := table.filter(pl.col("stream").is_in([f.name for f in run.flows if f.upload == upload]))).height
    ]
    return "; ".join(f"{direction}s: {_below(part)}" if len(nodes) > 1 else _below(part) for direction, part in nodes)


def _below(table: pl.DataFrame) -> str:
    memory = median_of(table["sk_wmem_alloc"])
    flows = table["stream"].n_unique()
    text = f"each of {flows} sockets has {memory:,.0f} bytes of memory below TCP (median)"
    if table["tsq_limit"].drop_nulls().len():
        terms = table.drop_nulls("tsq_term").group_by("tsq_term").len().sort("len", descending=True)
        if terms["tsq_term"][0] == "off":
            return f"{text}; TSQ is off"
        limit, skb = median_of(table["tsq_limit"]), median_of(table["tsq_truesize"])
        text += (
            f"; the TSQ limit is {limit:,.0f}, by the term '{terms['tsq_term'][0]}', for skbs of {skb:,.0f} (truesize)"
        )
    return text


def window(run: Recording) -> str:
    """Return the congestion windows and the sockets' smallest round trip, as text."""
    table = senders(run)
    cwnd, base_us = median_of(table["snd_cwnd"]), median_of(table["min_rtt"])
    flows = table["stream"].n_unique()
    return f"{flows} windows of {cwnd:.0f} segments (median), min_rtt {base_us / 1000:.3g} ms"


def drain_times_s(run: Recording) -> list[float]:
    """Return the seconds of test time at which the first flow's BBR window became that of ProbeRTT."""
    table = senders(run).filter(pl.col("stream") == run.flows[0].name)
    low = (table["snd_cwnd"] <= PROBE_RTT_CWND).to_numpy()
    begins = np.flatnonzero(low[1:] & ~low[:-1]) + 1
    return [float(t) / 1e9 for t in table["t_ns"].to_numpy()[begins]]


def pacing_rule(run: Recording, ss: int, ca: int) -> tuple[float, float]:
    """Return the shares of samples whose pacing rate is Algorithm 1's with the smoothed RTT, and with the smallest RTT.

    The kernel: mss · max(cwnd, packets out) / srtt · ratio in integers; `rtt` is srtt without its last three bits."""
    slow_start = pl.col("snd_cwnd") < pl.col("snd_ssthresh") // 2
    packets = pl.max_horizontal("snd_cwnd", "unacked")
    rate = pl.col("snd_mss") * (US_PER_S // 100 * 8) * pl.when(slow_start).then(ss).otherwise(ca) * packets
    smoothed = pl.col("pacing_rate").is_between(rate // (8 * pl.col("rtt") + 7), rate // (8 * pl.col("rtt")))
    base = pl.col("pacing_rate").is_between(rate // (8 * pl.col("min_rtt") + 7), rate // (8 * pl.col("min_rtt")))
    shares = senders(run).select(smoothed.mean().alias("s"), base.mean().alias("b")).row(0)
    return float(shares[0]), float(shares[1])


def tsq_rule(run: Recording, cap: int) -> float:
    """Return the share of checks whose limit is Algorithm 2's.

    The kernel: min(max(2 · truesize, rate >> shift), cap), the cap only where nothing is paced, which is CUBIC below
    pfifo_fast."""
    table = (
        senders(run)
        .drop_nulls(["tsq_limit", "tsq_rate", "tsq_truesize"])
        .with_columns(pl.col("tsq_limit", "tsq_rate", "tsq_truesize").cast(pl.Int64))
    )
    if table.is_empty():
        raise LookupError("this kernel does not tell the limit of TCP Small Queues")
    floor, rate = 2 * pl.col("tsq_truesize"), pl.col("tsq_rate") // 1024
    exact = pl.col("tsq_limit") == pl.min_horizontal(pl.max_horizontal(floor, rate), cap)
    return float(table.select(exact.mean()).item())


def mean_ping_ms(run: Recording) -> float:
    """Return the mean round trip of the first ping over the whole test, with and without load. Raises LookupError."""
    values = ping_ms(run, run.pings[0]).values if run.pings else np.empty(0)
    if not np.isfinite(values).any():
        raise LookupError("no ping came back")
    return float(np.nanmean(values))


def sending_ns(run: Recording) -> int:
    """Return the planned sending time of all flows together, ns."""
    return sum(flow.stop_ns - flow.start_ns for flow in run.flows)


def growth(run: Recording, column: str) -> int:
    """Return the growth of a counter of the senders, all flows together; 0 where the kernel does not fill it."""
    ends = run.tcp.filter(pl.col("sender")).drop_nulls(column).group_by("stream").agg(pl.col(column).max())
    return int(ends[column].cast(pl.Int64).sum() or 0)
