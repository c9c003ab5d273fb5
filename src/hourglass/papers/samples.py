# SPDX-License-Identifier: Apache-2.0
"""What the records of a run say about a mechanism: samples of the senders in the loaded window."""

import numpy as np
import polars as pl

from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window, ping_ms

ESTABLISHED = 1
US_PER_S = 10**6
PROBE_RTT_CWND = 4
"""tcp_bbr.c: bbr_cwnd_min_target, the window of ProbeRTT."""


def senders(run: Recording) -> pl.DataFrame:
    """The senders' samples that know their round trip, with plain signed integers."""
    fields = ["rtt", "snd_mss", "snd_cwnd", "snd_ssthresh", "unacked", "pacing_rate", "sk_wmem_alloc", "min_rtt"]
    known = pl.col("sender") & (pl.col("rtt") > 0) & (pl.col("state") == ESTABLISHED) & loaded_window(run).holds()
    return run.tcp.filter(known).sort("stream", "t_ns").with_columns(pl.col(fields).cast(pl.Int64))


def middle(column: pl.Series) -> float:
    """The median as a number. Raises LookupError when there is none."""
    found = column.drop_nulls().cast(pl.Float64).median()
    if not isinstance(found, float):
        raise LookupError(f"no samples of {column.name}")
    return found


def below_tcp(run: Recording) -> str:
    """What the sockets have in qdisc and NIC, and which term of the TSQ limit decides."""
    table = senders(run)
    held = middle(table["sk_wmem_alloc"])
    flows = table["stream"].n_unique()
    words = f"each of {flows} sockets has {held:,.0f} bytes of memory below TCP (median)"
    if table["tsq_limit"].drop_nulls().len():
        terms = table.drop_nulls("tsq_term").group_by("tsq_term").len().sort("len", descending=True)
        if terms["tsq_term"][0] == "off":
            return f"{words}; TSQ is off"
        limit, skb = middle(table["tsq_limit"]), middle(table["tsq_truesize"])
        words += (
            f"; the TSQ limit is {limit:,.0f}, by the term '{terms['tsq_term'][0]}', for skbs of {skb:,.0f} (truesize)"
        )
    return words


def window(run: Recording) -> str:
    """The congestion windows, and the smallest round trip that the sockets have seen."""
    table = senders(run)
    cwnd, base_us = middle(table["snd_cwnd"]), middle(table["min_rtt"])
    flows = table["stream"].n_unique()
    return f"{flows} windows of {cwnd:.0f} segments (median), min_rtt {base_us / 1000:.3g} ms"


def drain_times_s(run: Recording) -> list[float]:
    """When the first flow's BBR window was that of ProbeRTT: the beginning of each such spell, seconds of test time."""
    table = senders(run).filter(of(run.flows[0]))
    low = (table["snd_cwnd"] <= PROBE_RTT_CWND).to_numpy()
    begins = np.flatnonzero(low[1:] & ~low[:-1]) + 1
    return [float(t) / 1e9 for t in table["t_ns"].to_numpy()[begins]]


def pacing_rule(run: Recording, ss: int, ca: int) -> tuple[float, float]:
    """Shares of samples whose pacing rate is Algorithm 1's with the smoothed RTT, and with the smallest RTT.

    The kernel: mss · max(cwnd, packets out) / srtt · ratio in integers; `rtt` is srtt without its last three bits."""
    slow_start = pl.col("snd_cwnd") < pl.col("snd_ssthresh") // 2
    packets = pl.max_horizontal("snd_cwnd", "unacked")
    rate = pl.col("snd_mss") * (US_PER_S // 100 * 8) * pl.when(slow_start).then(ss).otherwise(ca) * packets
    smoothed = pl.col("pacing_rate").is_between(rate // (8 * pl.col("rtt") + 7), rate // (8 * pl.col("rtt")))
    base = pl.col("pacing_rate").is_between(rate // (8 * pl.col("min_rtt") + 7), rate // (8 * pl.col("min_rtt")))
    shares = senders(run).select(smoothed.mean().alias("s"), base.mean().alias("b")).row(0)
    return float(shares[0]), float(shares[1])


def tsq_rule(run: Recording, cap: int) -> tuple[float, float]:
    """The share of checks whose limit is Algorithm 2's, and what sockets had of limit and one skb, or less, in 99 % of
    the samples.

    The kernel: min(max(2 · truesize, rate >> shift), cap), the cap only where nothing is paced, which is CUBIC below
    pfifo_fast. An skb passes while less than the limit is below TCP. What a socket has is compared with the highest
    limit and the largest skb of its last three samples, since skbs of before the last check are still there."""
    table = (
        senders(run)
        .drop_nulls(["tsq_limit", "tsq_rate", "tsq_truesize"])
        .with_columns(pl.col("tsq_limit", "tsq_rate", "tsq_truesize").cast(pl.Int64))
    )
    if table.is_empty():
        raise LookupError("this kernel does not tell the limit of TCP Small Queues")
    floor, rate = 2 * pl.col("tsq_truesize"), pl.col("tsq_rate") // 1024
    exact = pl.col("tsq_limit") == pl.min_horizontal(pl.max_horizontal(floor, rate), cap)
    room = (pl.col("tsq_limit") + pl.col("tsq_truesize")).rolling_max(3, min_samples=1).over("stream")
    found = table.select(exact.mean().alias("rule"), (pl.col("sk_wmem_alloc") / room).quantile(0.99).alias("held")).row(
        0
    )
    return float(found[0]), float(found[1])


def mean_ping_ms(run: Recording) -> float:
    """The mean round trip of the first ping over the whole test, before and after the load too. Raises LookupError."""
    found = ping_ms(run, run.pings[0]).values if run.pings else np.empty(0)
    if not np.isfinite(found).any():
        raise LookupError("no ping came back")
    return float(np.nanmean(found))


def sending_ns(run: Recording) -> int:
    """How long all flows were meant to send, together, ns."""
    return sum(flow.stop_ns - flow.start_ns for flow in run.flows)


def growth(run: Recording, column: str) -> int:
    """How much a counter of the senders grew, all flows together; 0 where the kernel does not fill it."""
    ends = run.tcp.filter(pl.col("sender")).drop_nulls(column).group_by("stream").agg(pl.col(column).max())
    return int(ends[column].cast(pl.Int64).sum() or 0)
