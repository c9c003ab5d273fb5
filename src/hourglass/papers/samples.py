# SPDX-License-Identifier: Apache-2.0
"""What the records of a run say about a mechanism: samples of the senders in the loaded window."""

import numpy as np
import polars as pl

from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window

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


def growth(run: Recording, column: str) -> int:
    """How much a counter of the senders grew, all flows together; 0 where the kernel does not fill it."""
    ends = run.tcp.filter(pl.col("sender")).drop_nulls(column).group_by("stream").agg(pl.col(column).max())
    return int(ends[column].cast(pl.Int64).sum() or 0)
