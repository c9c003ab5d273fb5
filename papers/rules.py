# SPDX-License-Identifier: Apache-2.0
"""The two algorithms of paper A, sample by sample, and sentences with which the kernel's own code disagrees.

A verdict here is on the paper's sentence: if it is missed, the figures show the kernel's rule instead. Sentences that
the code contradicts are `excluded`: measured and shown, but not counted.
"""

from itertools import pairwise

import polars as pl

from hourglass.results.recording import Recording
from papers import samples
from papers.model import TCP, Claim, Evidence, Finding, PaperFigure, View, ratio

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
    """Return a column that only a kernel with the probe fills. Raises LookupError."""
    values = samples.senders(run)[column].drop_nulls()
    if values.is_empty():
        raise LookupError(f"this kernel does not tell {column}")
    return values


def _cubic(e: Evidence, ca: int = 120) -> Recording:
    return e.runs(cc="cubic", ca=ca, qdisc="pfifo_fast")[0]


def _alg1(e: Evidence) -> Finding:
    shares = [samples.pacing_rule(_cubic(e, ca), 200, ca)[0] for ca in (120, 200)]
    text = "; ".join(f"ca_ratio {ca}: {share:.2%}" for ca, share in zip((120, 200), shares, strict=True))
    return Finding(min(shares) > 0.99, f"of the samples: {text}", "with the smoothed RTT and max(cwnd, packets out)")


def _base_rtt(e: Evidence) -> Finding:
    smoothed, base = samples.pacing_rule(_cubic(e), 200, 120)
    return Finding(base > 0.99, f"{base:.2%} of the samples", f"with the smoothed RTT it is {smoothed:.2%}")


def _alg2(e: Evidence) -> Finding:
    """Judge the last check of TCP Small Queues before each sample: its rate, its skb, its limit."""
    cap = _cap_bytes(_cubic(e))
    rule = samples.tsq_rule(_cubic(e), cap)
    how = f"a packet is an skb's truesize; {samples.below_tcp(_cubic(e))}"
    return Finding(rule > 0.99, f"{rule:.2%} of the limits are the rule's", how)


def _ratio_moves_limit(e: Evidence) -> Finding:
    limits = [samples.median_of(_probe(_cubic(e, ca), "tsq_limit")) for ca in (120, 200)]
    text = f"CUBIC's limit at 120 and 200 %: {limits[0]:,.0f} and {limits[1]:,.0f} bytes (median)"
    return Finding(limits[1] > limits[0], text)


def _sole(e: Evidence) -> Finding:
    """Judge that the ratio changes CUBIC's samples and not BBR's."""
    texts, changes = [], []
    for cc in ("bbr", "cubic"):
        runs = [e.runs(cc=cc, ca=ca, qdisc="pfifo_fast")[0] for ca in (120, 200)]
        changes.append(not _same_packets(runs[0], runs[1]))
        texts.append(f"{cc.upper()} has {'other' if changes[-1] else 'the same'} samples")
    return Finding(changes == [False, True], f"ca_ratio 120 and 200: {', '.join(texts)}")


def _floor(e: Evidence) -> Finding:
    limit, skb = (samples.median_of(_probe(_cubic(e), name)) for name in ("tsq_limit", "tsq_truesize"))
    measured = f"the limit is {limit:,.0f} bytes (median); two segments are {2 * MTU_SEGMENT:,}"
    return Finding(limit == 2 * MTU_SEGMENT, measured, f"2 x truesize of the skb at hand, which is {skb:,.0f}")


def _cap_bytes(run: Recording) -> int:
    """Return the sender's tcp_limit_output_bytes, as the run read it. Raises LookupError."""
    values = run.facts.filter(pl.col("key") == CAP_KEY)["value"]
    if values.is_empty():
        raise LookupError("the run does not tell tcp_limit_output_bytes")
    return int(values[0])


def _cap(e: Evidence) -> Finding:
    cap = _cap_bytes(_cubic(e))
    return Finding(
        cap == PAPERS_CAP, f"the sysctl is {cap:,} bytes", "since 5.0 it bounds only sockets that are not paced"
    )


def _one_ms(e: Evidence) -> Finding:
    run = _cubic(e)
    rate, limit = (samples.median_of(_probe(run, column)) for column in ("tsq_rate", "tsq_limit"))
    limit_ms = 1000 * limit / rate
    how = f"the floor of two skbs decides: {samples.below_tcp(run)}"
    return Finding(0.5 <= limit_ms <= 2, f"the limit is {limit_ms:.3g} ms of data at the pacing rate (median)", how)


def _bbr_alone(e: Evidence) -> Finding:
    runs = [e.runs(cc="bbr", ca=120, qdisc=qdisc)[0] for qdisc in ("pfifo_fast", "fq")]
    waits = [samples.growth(run, "hold_pacing_ns") for run in runs]
    times = [e.value(TCP, cc="bbr", ca=120, qdisc=qdisc) for qdisc in ("pfifo_fast", "fq")]
    other = samples.growth(_cubic(e), "hold_pacing_ns")
    measured = (
        f"TCP RTT below pfifo_fast / fq: {ratio(*times)}; unsent data waited {waits[0] / 1e9:.3g} s for pacing,"
        f" of CUBIC {other / 1e9:.3g}"
    )
    alike = 1 / SAME_RTT <= times[0] / times[1] <= SAME_RTT
    paced = waits[0] / samples.sending_ns(runs[0]) > PACED
    return Finding(alike and paced and not other, measured, f"below fq it waited {waits[1] / 1e9:.3g} s in TCP")


def _bbr_paces(e: Evidence) -> Finding:
    runs = e.runs(cc="bbr", ca=120, qdisc="pfifo_fast")
    wait = samples.growth(runs[0], "hold_pacing_ns")
    drains = samples.drain_times_s(runs[0])
    gaps = [later - sooner for sooner, later in pairwise(drains)]
    text = f"drains {len(drains)}"
    text += f", {min(gaps):.3g} to {max(gaps):.3g} s apart" if gaps else ""
    how = f"unsent data waited {wait / 1e9:.3g} s for BBR's pacing" if wait else ""
    return Finding(bool(gaps) and all(9 <= gap <= 12 for gap in gaps), text, how)


def _same_packets(run: Recording, other: Recording) -> bool:
    columns = ["t_ns", "stream", "sender", "rtt", "snd_cwnd", "bytes_acked", "pacing_rate"]
    return run.tcp.select(columns).equals(other.tcp.select(columns))


def _pacing_acts(e: Evidence) -> Finding:
    fifo = int(_probe(_cubic(e), "hold_pacing_ns").to_numpy().max())
    fair = samples.median_of(samples.senders(e.runs(cc="cubic", ca=120, qdisc="fq")[0])["pacing_rate"])
    ends = [e.value(TCP, cc="cubic", ca=ca, qdisc="pfifo_fast") for ca in (120, 200)]
    how = f"ca_ratio 120 and 200 have a TCP RTT of {ends[0]:.3g} and {ends[1]:.3g} ms: through the TSQ limit"
    measured = f"CUBIC below pfifo_fast waited {fifo:,} ns for pacing"
    return Finding(bool(fifo), measured, f"{how}; below fq the rate is {fair:,.0f} bytes/s")


def _shift(e: Evidence) -> Finding:
    table = samples.senders(e.runs(scenario="wifi-ath9k")[0])
    if not table["tsq_shift"].drop_nulls().len():
        raise LookupError("this kernel does not tell sk_pacing_shift")
    shift = int(samples.median_of(table["tsq_shift"]))
    return Finding(shift == 10, f"the pacing shift is {shift}: 1/{2**shift} s of data", "mac80211 sets it")


def _aggregates(e: Evidence) -> Finding:
    run = e.runs(scenario="wifi-ath9k")[0]
    most = max(radio.subframes.max or 0 for radio in run.summary.wifi["client"].values())
    text = f"the largest aggregate has {most} subframes"
    return Finding(most < MOST_SUBFRAMES, text, "mac80211's and ath9k's bound is 32")


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
    PaperFigure(
        "A-rules",
        "The rules of paper A, sample by sample",
        "table",
        (
            Claim("A-alg1", "pacing rate = mss x cwnd / rtt x ratio", "exact in 99 % of the samples", _alg1),
            Claim(
                "A-alg2",
                "TSQ limit = min(max(2 packets, rate >> 10), limit_output_bytes)",
                "exact in 99 % of the samples",
                _alg2,
            ),
            Claim("A-limit", "the pacing ratio changes the TSQ limit", "200 % above 120 %", _ratio_moves_limit),
            Claim("A-sole", "BBR alone ignores the pacing ratios", "BBR's samples are the same, CUBIC's differ", _sole),
            Claim("A-bbr", "BBR drains every 10 s", "9 to 12 s", _bbr_paces),
            Claim("D-1", "the pacing rate divides by the base RTT", "in 99 % of the samples", _base_rtt, excluded=SRTT),
            Claim("D-2", "TSQ's floor is 2 packets of data", "exact", _floor, excluded=TRUESIZE),
            Claim("D-3", "limit_output_bytes is 128 KB by default", "exact", _cap, excluded=LARGER),
            Claim("D-5", "pacing changes CUBIC's sending", "unsent data waits", _pacing_acts, excluded=UNPACED),
            Claim(
                "D-8",
                "since 4.17 BBR paces itself, without fq",
                f"TCP RTT within a factor of {SAME_RTT} of fq's; data waits {PACED:.0%} of the time, CUBIC's never",
                _bbr_alone,
            ),
            Claim("D-10", "TSQ's limit is about 1 ms of data", "within a factor of 2, L100M, four flows", _one_ms),
        ),
        view=View({"tsq": "default"}),
    ),
    PaperFigure(
        "A-wifi",
        "The data below TCP on Wi-Fi",
        "table",
        (
            Claim(
                "D-4",
                "TSQ's standard size is 1 ms of data, on Wi-Fi too",
                "sk_pacing_shift is 10",
                _shift,
                excluded=WIFI_SHIFT,
            ),
            Claim(
                "D-6",
                "FQ-CoDel's 5 ms bound aggregates",
                f"fewer than {MOST_SUBFRAMES} subframes",
                _aggregates,
                excluded=SUBFRAMES,
            ),
            Claim("D-7", "BQL is the driver's last queue limit", "the device has a BQL limit", _bql, excluded=NO_BQL),
        ),
    ),
)
