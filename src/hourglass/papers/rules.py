# SPDX-License-Identifier: Apache-2.0
"""The two algorithms of paper A, sample by sample, and sentences with which the kernel's own code disagrees.

A verdict here is on the paper's sentence: where it "differs", the figures are what the kernel does instead. Sentences
that the code contradicts are `apart`: told, with what is measured, and not counted.
"""

from itertools import pairwise

import polars as pl

from hourglass.papers import samples
from hourglass.papers.model import TCP, Claim, Evidence, Figure, Finding, ratio
from hourglass.results.recording import Recording

MTU_SEGMENT = 1448
PAPERS_CAP = 128 << 10
CAP_KEY = "sysctl.net.ipv4.tcp_limit_output_bytes"
MOST_SUBFRAMES = 32
SAME_RTT = 2
"""BBR's round trips with and without fq are alike within the factor of all times: fq also takes turns between flows."""
PACED = 0.1
"""BBR's flows wait for their pacing for more of their time than this. At a pacing gain of 1 or less, in seven of its
eight phases, pacing is what decides, unless TCP Small Queues does."""


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
    """Each check of TCP Small Queues that the probe saw last before a sample: its rate, its skb, its limit."""
    cap = _cap_bytes(_cubic(e))
    rule, held = samples.tsq_rule(_cubic(e), cap)
    words = f"{rule:.2%} of the limits are the rule's; memory below TCP is {held:.0%} of the limit and one skb, or less"
    return Finding(rule > 0.99 and held <= 1, words, f"a packet is an skb's truesize; {samples.below_tcp(_cubic(e))}")


def _floor(e: Evidence) -> Finding:
    limit, skb = (samples.middle(_probe(_cubic(e), name)) for name in ("tsq_limit", "tsq_truesize"))
    measured = f"the limit is {limit:,.0f} bytes (median); two segments are {2 * MTU_SEGMENT:,}"
    return Finding(limit == 2 * MTU_SEGMENT, measured, f"2 x truesize of the skb at hand, which is {skb:,.0f}")


def _cap_bytes(run: Recording) -> int:
    """The sender's tcp_limit_output_bytes, as the run read it. Raises LookupError."""
    found = run.facts.filter(pl.col("key") == CAP_KEY)["value"]
    if found.is_empty():
        raise LookupError("the run does not tell tcp_limit_output_bytes")
    return int(found[0])


def _cap(e: Evidence) -> Finding:
    cap = _cap_bytes(_cubic(e))
    return Finding(
        cap == PAPERS_CAP, f"the sysctl is {cap:,} bytes", "since 5.0 it bounds only sockets that are not paced"
    )


def _one_ms(e: Evidence) -> Finding:
    run = _cubic(e)
    rate, limit = (samples.middle(_probe(run, column)) for column in ("tsq_rate", "tsq_limit"))
    held_ms = 1000 * limit / rate
    how = f"the floor of two skbs decides: {samples.below_tcp(run)}"
    return Finding(0.5 <= held_ms <= 2, f"the limit is {held_ms:.3g} ms of data at the pacing rate (median)", how)


def _bbr_alone(e: Evidence) -> Finding:
    runs = [e.runs(cc="bbr", ca=120, qdisc=qdisc)[0] for qdisc in ("pfifo_fast", "fq")]
    held = [samples.growth(run, "hold_pacing_ns") for run in runs]
    times = [e.value(TCP, cc="bbr", ca=120, qdisc=qdisc) for qdisc in ("pfifo_fast", "fq")]
    other = samples.growth(_cubic(e), "hold_pacing_ns")
    measured = (
        f"TCP RTT below pfifo_fast / fq: {ratio(*times)}; unsent data waited {held[0] / 1e9:.3g} s for pacing,"
        f" of CUBIC {other / 1e9:.3g}"
    )
    alike = 1 / SAME_RTT <= times[0] / times[1] <= SAME_RTT
    paced = held[0] / samples.sending_ns(runs[0]) > PACED
    return Finding(alike and paced and not other, measured, f"below fq it waited {held[1] / 1e9:.3g} s in TCP")


def _bbr_paces(e: Evidence) -> Finding:
    runs = e.runs(cc="bbr", ca=120, qdisc="pfifo_fast")
    held = samples.growth(runs[0], "hold_pacing_ns")
    same = _same_packets(runs[0], e.runs(cc="bbr", ca=200, qdisc="pfifo_fast")[0])
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


def _shift(e: Evidence) -> Finding:
    table = samples.senders(e.runs(scenario="wifi-ath9k")[0])
    if not table["tsq_shift"].drop_nulls().len():
        raise LookupError("this kernel does not tell sk_pacing_shift")
    shift = int(samples.middle(table["tsq_shift"]))
    return Finding(shift == 10, f"the pacing shift is {shift}: 1/{2**shift} s of data", "mac80211 sets it")


def _aggregates(e: Evidence) -> Finding:
    run = e.runs(scenario="wifi-ath9k")[0]
    most = max(radio.subframes.max or 0 for radio in run.summary.wifi["client"].values())
    words = f"the largest aggregate has {most} subframes"
    return Finding(most < MOST_SUBFRAMES, words, "mac80211's and ath9k's bound is 32")


def _bql(e: Evidence) -> Finding:
    samples = e.runs(scenario="wifi-ath9k")[0].queues
    radios = samples.filter(pl.col("device").str.starts_with("wlan"))
    if radios.is_empty():
        raise LookupError("no queue samples of a Wi-Fi device")
    limit = int(radios["bql_limit"].fill_null(0).to_numpy().max())
    return Finding(limit > 0, f"BQL's limit of the Wi-Fi device: {limit}", "no mac80211 driver has BQL")


SRTT = "tcp_update_pacing_rate divides by srtt_us"
TRUESIZE = "tcp_small_queue_check takes 2 * skb->truesize: memory, not payload, and of an skb of many segments"
UNPACED = "CUBIC asks for no pacing: only fq makes sk_pacing_status SK_PACING_FQ"
LARGER = "tcp_sk_init makes it 16 * 65536"
WIFI_SHIFT = "ieee80211_alloc_hw_nm makes tx_sk_pacing_shift 7 (4.20)"
SUBFRAMES = "CoDel is in mac80211, above the aggregates, which ath9k bounds by subframes, 4 ms of air and 65,535 bytes"
NO_BQL = "no driver below mac80211 calls netdev_tx_sent_queue"

FIGURES = (
    Figure(
        "A-rules",
        "The rules of paper A, sample by sample",
        "table",
        (
            Claim("A-alg1", "pacing rate = mss x cwnd / rtt x ratio", "exact in 99 % of the samples", _alg1),
            Claim(
                "A-alg2",
                "TSQ limit = min(max(2 packets, rate >> 10), limit_output_bytes)",
                "in 99 % of the samples exact, and memory below TCP at most the limit and one skb more",
                _alg2,
            ),
            Claim(
                "A-bbr",
                "BBR ignores the pacing ratios and drains every 10 s",
                "the same samples; 9 to 12 s",
                _bbr_paces,
            ),
            Claim("D-1", "the pacing rate divides by the base RTT", "in 99 % of the samples", _base_rtt, apart=SRTT),
            Claim("D-2", "TSQ's floor is 2 packets of data", "exact", _floor, apart=TRUESIZE),
            Claim("D-3", "limit_output_bytes is 128 KB by default", "exact", _cap, apart=LARGER),
            Claim("D-5", "pacing changes CUBIC's sending", "unsent data waits", _pacing_acts, apart=UNPACED),
            Claim(
                "D-8",
                "since 4.17 BBR paces itself, without fq",
                f"TCP RTT within a factor of {SAME_RTT} of fq's; data waits {PACED:.0%} of the time, CUBIC's never",
                _bbr_alone,
            ),
            Claim("D-10", "TSQ's limit is about 1 ms of data", "within a factor of 2, L100M, four flows", _one_ms),
        ),
    ),
    Figure(
        "A-wifi",
        "What is below TCP on Wi-Fi",
        "table",
        (
            Claim(
                "D-4",
                "TSQ's standard size is 1 ms of data, on Wi-Fi too",
                "sk_pacing_shift is 10",
                _shift,
                apart=WIFI_SHIFT,
            ),
            Claim(
                "D-6",
                "FQ-CoDel's 5 ms bound aggregates",
                f"fewer than {MOST_SUBFRAMES} subframes",
                _aggregates,
                apart=SUBFRAMES,
            ),
            Claim("D-7", "BQL is the driver's last queue limit", "the device has a BQL limit", _bql, apart=NO_BQL),
        ),
    ),
)
