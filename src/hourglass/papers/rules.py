# SPDX-License-Identifier: Apache-2.0
"""The two algorithms of paper A, sample by sample, and its sentences with which the kernel's own code disagrees.

A verdict here is on the paper's sentence: where it "differs", the figures are what the kernel does instead.
"""

from itertools import pairwise

import polars as pl

from hourglass.papers import samples
from hourglass.papers.model import PING, TCP, Claim, Evidence, Figure, Finding, ratio
from hourglass.results.recording import Recording

MTU_SEGMENT = 1448
PAPERS_CAP = 128 << 10


def _probe(run: Recording, column: str) -> pl.Series:
    """A column that only a kernel with our probe fills. Raises LookupError."""
    found = samples.senders(run)[column].drop_nulls()
    if found.is_empty():
        raise LookupError(f"this kernel does not tell {column}")
    return found


def _cubic(e: Evidence, ca: int = 120) -> Recording:
    return e.runs(cc="cubic", ca=ca, qdisc="pfifo_fast")[0]


def _alg1(e: Evidence) -> Finding:
    shares = [samples.pacing_rule(_cubic(e, ca), 200, ca)[0] for ca in (120, 200)]
    words = "; ".join(f"ca_ratio {ca}: {share:.2%}" for ca, share in zip((120, 200), shares, strict=True))
    return Finding(min(shares) > 0.99, f"of the samples: {words}", "with the smoothed RTT and max(cwnd, packets out)")


def _base_rtt(e: Evidence) -> Finding:
    smoothed, base = samples.pacing_rule(_cubic(e), 200, 120)
    return Finding(base > 0.99, f"{base:.2%} of the samples", f"with the smoothed RTT it is {smoothed:.2%}")


def _alg2(e: Evidence) -> Finding:
    table = samples.senders(_cubic(e))
    rate_ms = (pl.col("pacing_rate") // 1024).rolling_max(3, min_samples=1).over("stream")
    skb = pl.max_horizontal(rate_ms // pl.col("snd_mss"), 2) * pl.col("snd_mss") + 1280
    bound = pl.max_horizontal(2 * skb, rate_ms) + skb
    used = table.with_columns(u=pl.col("sk_wmem_alloc") / bound)["u"]
    middle, most = samples.middle(used), float(used.to_numpy().max())
    measured = f"memory below TCP is {middle:.0%} of the bound (median), {most:.0%} at most"
    how = "bound: the limit and the one skb more that the check lets pass; " + samples.below_tcp(_cubic(e))
    return Finding(most <= 1 and middle > 0.5, measured, how)


def _floor(e: Evidence) -> Finding:
    limit, skb = (samples.middle(_probe(_cubic(e), name)) for name in ("tsq_limit", "tsq_truesize"))
    measured = f"the limit is {limit:,.0f} bytes (median); two segments are {2 * MTU_SEGMENT:,}"
    return Finding(limit == 2 * MTU_SEGMENT, measured, f"2 x truesize of the skb at hand, which is {skb:,.0f}")


def _cap(e: Evidence) -> Finding:
    run = e.runs(scenario="LR1000M", tsq="default")[0]
    most = int(_probe(run, "tsq_limit").to_numpy().max())
    terms = _probe(run, "tsq_term").to_list()
    capped = sum(term == "cap" for term in terms)
    how = f"tcp_limit_output_bytes decided {capped} of {len(terms)} samples, the other terms the rest"
    return Finding(most <= PAPERS_CAP, f"the highest limit on LR1000M is {most:,} bytes", how)


def _bbr_alone(e: Evidence) -> Finding:
    held = samples.growth(e.runs(cc="bbr", ca=120)[0], "hold_pacing_ns")
    if not held:
        _probe(e.runs(cc="bbr", ca=120)[0], "hold_pacing_ns")
    return Finding(held > 0, f"below pfifo_fast unsent data waited {held / 1e9:.3g} s for pacing")


def _bbr_paces(e: Evidence) -> Finding:
    runs = e.runs(cc="bbr", ca=120)
    held = samples.growth(runs[0], "hold_pacing_ns")
    same = _same_packets(runs[0], e.runs(cc="bbr", ca=200)[0])
    drains = samples.drain_times_s(runs[0])
    gap = [later - sooner for sooner, later in pairwise(drains)]
    words = f"ca_ratio 120 and 200: {'the same' if same else 'other'} TCP samples; drains {len(drains)}"
    words += f", {min(gap):.3g} to {max(gap):.3g} s apart" if gap else ""
    how = f"unsent data waited {held / 1e9:.3g} s for BBR's pacing" if held else ""
    return Finding(same and bool(gap) and all(9 <= one <= 12 for one in gap), words, how)


def _same_packets(one: Recording, other: Recording) -> bool:
    columns = ["t_ns", "stream", "sender", "rtt", "snd_cwnd", "bytes_acked", "pacing_rate"]
    return one.tcp.select(columns).equals(other.tcp.select(columns))


def _pacing_acts(e: Evidence) -> Finding:
    fifo = int(_probe(_cubic(e), "hold_pacing_ns").to_numpy().max())
    fair = samples.middle(samples.senders(e.runs(cc="cubic", ca=120, qdisc="fq")[0])["pacing_rate"])
    ends = [e.value(TCP, cc="cubic", ca=ca, qdisc="pfifo_fast") for ca in (120, 200)]
    how = f"ca_ratio 120 and 200 have a TCP RTT of {ends[0]:.3g} and {ends[1]:.3g} ms: through the TSQ limit"
    measured = f"CUBIC below pfifo_fast waited {fifo:,} ns for pacing"
    return Finding(bool(fifo), measured, f"{how}; below fq the rate is {fair:,.0f} bytes/s")


def _one_flow(e: Evidence) -> Finding:
    fixed, own = (e.value(PING, kernel="5.10", tsq=tsq, upload_streams=1) for tsq in ("64KiB", "default"))
    how = samples.below_tcp(e.runs(kernel="5.10", tsq="64KiB", upload_streams=1)[0])
    return Finding(fixed < own, f"ping with 64 KiB / standard: {ratio(fixed, own)} (wired, 100 Mbit/s)", how)


def _one_ms(e: Evidence) -> Finding:
    found = {k: e.value(PING, kernel=k, tsq="default", upload_streams=4) for k in e.values("kernel")}
    how = "; ".join(f"{k}: {samples.below_tcp(e.runs(kernel=k, tsq='default', upload_streams=4)[0])}" for k in found)
    measured = ", ".join(f"Linux {k} {ms:.3g} ms" for k, ms in found.items())
    return Finding(max(found.values()) <= 4, f"ping of four flows: {measured}", how)


CAP = Claim("D-3", "TSQ's limit is at most tcp_limit_output_bytes, 128 KB", "128 KiB", _cap)

FIGURES = (
    Figure(
        "A-rules",
        "The rules of paper A, sample by sample",
        "table",
        (
            Claim("A-alg1", "pacing rate = mss x cwnd / rtt x ratio", "exact in 99 % of the samples", _alg1),
            Claim("A-alg2", "TSQ limit = min(max(2 packets, rate >> 10), cap)", "never above the bound", _alg2),
            Claim(
                "A-bbr",
                "BBR ignores the pacing ratios and drains every 10 s",
                "the same samples; 9 to 12 s",
                _bbr_paces,
            ),
            Claim("D-1", "the pacing rate divides by the base RTT", "in 99 % of the samples", _base_rtt),
            Claim("D-2", "TSQ's floor is 2 packets of data", "exact", _floor),
            Claim("D-8", "BBR paces itself, without fq", "unsent data waits for pacing", _bbr_alone),
            Claim("D-5", "pacing changes CUBIC's sending", "unsent data waits for pacing", _pacing_acts),
        ),
    ),
    Figure(
        "A-kernels",
        "TSQ on three kernels",
        "bars",
        (
            Claim("D-9", "one flow: 64 KB gives a lower latency than standard TSQ", "lower", _one_flow),
            Claim("D-10", "TSQ limits a flow to about 1 ms", "ping of four flows at most 4 ms on each kernel", _one_ms),
        ),
    ),
)
