# SPDX-License-Identifier: Apache-2.0
"""Paper A: Grazia, Klapez, Casoni, "The New TCP Modules on the Block" (IEEE Access 2021), kernel 5.10.

Its figures survive as sentences only, so the tolerances are those of the words: an order of magnitude is the nearest
one on a logarithmic scale; "about N ms" is within a factor of 2. Wired; its Wi-Fi is in paper_a_wifi.py, its two
algorithms in rules.py.
"""

from math import log10
from statistics import median

import numpy as np

from hourglass.papers import samples
from hourglass.papers.model import (
    DROPS,
    PING,
    RETRANSMITS,
    TCP,
    UP,
    Claim,
    Evidence,
    Figure,
    Finding,
    Layout,
    Unknown,
    Where,
    ratio,
)
from hourglass.plots.paper import samples_of
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window, tcp_rtt_ms

MARGINAL = 1.25
"""A change of latency below this factor is "marginal" or "nothing": seeds alone move R100M by 10 %."""


def _a4_throughput(e: Evidence) -> Finding:
    found = [e.value(UP, scenario=s, tsq=t) for s in e.values("scenario") for t in e.values("tsq")]
    return Finding(all(abs(one - 96) <= 1 for one in found), f"{min(found):.4g} to {max(found):.4g} Mbit/s")


def _local(e: Evidence) -> Finding:
    off, on = e.value(PING, scenario="L100M", tsq="off"), e.value(PING, scenario="L100M", tsq="default")
    return Finding(
        off / on >= 10, f"ping {ratio(off, on)}", samples.below_tcp(e.runs(scenario="L100M", tsq="default")[0])
    )


def _remote(e: Evidence) -> Finding:
    off, on = e.value(PING, scenario="R100M", tsq="off"), e.value(PING, scenario="R100M", tsq="default")
    return Finding(1 / MARGINAL <= off / on <= MARGINAL, f"ping {ratio(off, on)}")


def _both(e: Evidence, scenario: str) -> list[Recording]:
    """A run without TSQ and one with it."""
    return [e.runs(scenario=scenario, tsq=tsq)[0] for tsq in ("off", "default")]


def _orders(scenario: str, orders: int) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = e.value(TCP, scenario=scenario, tsq="off"), e.value(TCP, scenario=scenario, tsq="default")
        told = [f"{samples.below_tcp(run)}; {samples.window(run)}" for run in _both(e, scenario)]
        how = f"without TSQ {told[0]}; with it {told[1]}"
        return Finding(round(log10(off / on)) == orders, f"TCP RTT {ratio(off, on)}", how)

    word = {1: "one order", 2: "two orders"}[orders]
    return Claim(
        f"A-5a {scenario}", f"{scenario}: TSQ reduces the TCP RTT by {word} of magnitude", "to the nearest order", judge
    )


def _less(figure: str, scenario: str, about_ms: float) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = e.value(TCP, scenario=scenario, tsq="off"), e.value(TCP, scenario=scenario, tsq="default")
        told = [f"{samples.below_tcp(run)}; {samples.window(run)}" for run in _both(e, scenario)]
        how = f"without TSQ {told[0]}; with it {told[1]}"
        return Finding(about_ms / 2 <= off - on <= about_ms * 2, f"{off:.3g} - {on:.3g} = {off - on:.3g} ms less", how)

    return Claim(
        f"{figure} {scenario}",
        f"BBR on {scenario}: TSQ takes about {about_ms:g} ms off",
        f"{about_ms / 2:g} to {about_ms * 2:g} ms",
        judge,
    )


def _held(scenario: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        found = e.value(TCP, cc="bbr", scenario=scenario, tsq=tsq)
        run = e.runs(cc="bbr", scenario=scenario, tsq=tsq)[0]
        how = f"{samples.window(run)}; a full frame takes 1.23 ms at 10 Mbit/s"
        return Finding(5 <= found <= 20, f"median {found:.3g} ms", how)

    words = f"{scenario}{' without TSQ' if tsq == 'off' else ''}"
    return Claim(f"A-5c {words}", f"fq_codel holds BBR on {words} to about 10 ms", "5 to 20 ms", judge)


NOTES = (
    "The paper's kernel is 5.10, and so is this one. Four uploads of 30 s, as its section IV says, with NICs, HTB and",
    "qdiscs at their defaults. Not tried: a kernel with HZ 300, a router whose qdisc is another than the client's,",
    "shaping in one direction only.",
)
"""What is to be known before the figures: lines of the paper's page."""

REMOTE = ("R10M", "R100M")
SIMILAR = 1.5
"""What "very similar" may differ by: a half, as of two candles that overlap."""


def _remote_same(figure: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        found = [(e.value(TCP, scenario=s, tsq="off"), e.value(TCP, scenario=s, tsq="default")) for s in REMOTE]
        words = "; ".join(f"{s}: {ratio(*one)}" for s, one in zip(REMOTE, found, strict=True))
        return Finding(all(1 / MARGINAL <= off / on <= MARGINAL for off, on in found), f"TCP RTT {words}")

    return Claim(f"{figure} remote", "TSQ does nothing on R10M and R100M", f"less than a factor of {MARGINAL}", judge)


def _differ(found: list[tuple[str, float, float]], factor: float) -> Finding:
    """Pairs that are alike within a factor; those that are not come first."""
    far = [one for one in found if not 1 / factor <= one[1] / one[2] <= factor]
    words = "; ".join(f"{label}: {ratio(a, b)}" for label, a, b in far or found)
    return Finding(not far, f"TCP RTT {words}", f"{len(found) - len(far)} of {len(found)} pairs are within it")


def _settings(e: Evidence) -> list[Where]:
    return [{"scenario": s, "tsq": t} for s in e.values("scenario") for t in e.values("tsq")]


def _cubic_alike(e: Evidence) -> Finding:
    pairs = [(e.label(**one), e.value(TCP, cc="cubic", **one), e.value(TCP, cc="bbr", **one)) for one in _settings(e)]
    return _differ(pairs, SIMILAR)


def _elsewhere(e: Evidence) -> Finding:
    """Fig. 5c against 5b, but for what the paper names: R10M, and L10M without TSQ."""
    fifo = e.other("A-5b")
    there = [one for one in _settings(e) if one["scenario"] != "R10M" and one != {"scenario": "L10M", "tsq": "off"}]
    return _differ([(e.label(**one), e.value(TCP, cc="bbr", **one), fifo.value(TCP, **one)) for one in there], SIMILAR)


def _rtt(e: Evidence, cc: str, tsq: str) -> float:
    return e.value(TCP, cc=cc, tsq=tsq)


def _sawtooth(figure: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        run = e.runs(cc="cubic", tsq=tsq)[0]
        rtt = tcp_rtt_ms(run, run.flows[0]).within(loaded_window(run)).values
        late = rtt[len(rtt) // 3 :]
        low, high = np.percentile(late, [2, 98])
        drops = e.value(DROPS, cc="cubic", tsq=tsq)
        measured = f"RTT between {low:.3g} and {high:.3g} ms after the first third, {drops:.0f} packets dropped"
        how = f"retransmitted segments: {e.value(RETRANSMITS, cc='cubic', tsq=tsq):.0f}"
        return Finding(high / low >= 1.2 and drops > 0, measured, how)

    name = "TSQ" if tsq == "default" else "NoTSQ"
    says = f"CUBIC ({name}): the RTT is a saw-tooth up to the full queue"
    return Claim(f"{figure} saw-tooth {name}", says, "the swing is 20 % or more, and the queue drops", judge)


def _drains(figure: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        low, high = _rtt(e, "bbr", tsq), _rtt(e, "cubic", tsq)
        gaps = [float(gap) for run in e.runs(cc="bbr", tsq=tsq) for gap in np.diff(samples.drain_times_s(run))]
        gap = median(gaps) if gaps else float("nan")
        measured = f"TCP RTT {low:.3g} ms (CUBIC {high:.3g}); {len(gaps)} gaps between drains, median {gap:.3g} s"
        return Finding(low < high / 3 and 9 <= gap <= 12, measured, "drains: snd_cwnd down to 4, BBR's ProbeRTT")

    name = "TSQ" if tsq == "default" else "NoTSQ"
    says = f"BBR ({name}): low RTT, with a drain about every 10 s"
    return Claim(f"{figure} drains {name}", says, "RTT below a third of CUBIC's; gaps of 9 to 12 s", judge)


def _nothing(cc: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = _rtt(e, cc, "off"), _rtt(e, cc, "default")
        return Finding(1 / MARGINAL <= off / on <= MARGINAL, f"TCP RTT {ratio(off, on)}")

    return Claim(f"A-6 {cc}", f"TSQ changes nothing for {cc.upper()}", f"less than a factor of {MARGINAL}", judge)


def _similar_throughput(e: Evidence) -> Finding:
    found = [e.value(UP, cc=cc, tsq=tsq) for cc in e.values("cc") for tsq in e.values("tsq")]
    return Finding(min(found) >= 0.95 * max(found), f"{min(found):.4g} to {max(found):.4g} Mbit/s")


def _as_remote(e: Evidence) -> Finding:
    """The candles of Fig. 7a and 6a, p10 to p90 of all TCP RTT samples, overlap."""
    told, good = [], True
    for cc in ("cubic", "bbr"):
        here, there = (
            [float(one) for one in np.percentile(samples_of(data.runs(cc=cc, tsq="off"), "tcp"), [10, 90])]
            for data in (e, e.other("A-6"))
        )
        good &= here[0] <= there[1] and there[0] <= here[1]
        told.append(f"{cc.upper()} {here[0]:.3g} to {here[1]:.3g} ms, in 6a {there[0]:.3g} to {there[1]:.3g}")
    return Finding(good, "; ".join(told), "a qdisc of 1,000 skbs holds more bytes where they are not yet cut: locally")


LOSS_BASED = ("reno", "bic", "highspeed", "hybla", "htcp", "scalable", "westwood", "illinois", "veno", "yeah")


def _any_loss_based(e: Evidence) -> Finding:
    """Ruled by TSQ: no queue ever drops, and the RTT is a tenth or less of what CUBIC's is without TSQ."""
    sweep = e.other("A-7-loss-based")
    full = _rtt(e, "cubic", "off")
    found = {cc: sweep.value(TCP, cc=cc) for cc in ("cubic", *LOSS_BASED)}
    drops = sum(sweep.value(DROPS, cc=cc) for cc in found)
    words = ", ".join(f"{cc} {ms:.3g}" for cc, ms in found.items())
    how = "without a loss they stay in slow start, if nothing as CUBIC's HyStart ends it, with twice the pacing rate"
    good = max(found.values()) <= full / 10 and not drops
    return Finding(good, f"TCP RTT {words} ms, CUBIC without TSQ {full:.3g}; {drops:.0f} packets dropped", how)


def _minimal(e: Evidence) -> Finding:
    cubic, bbr = _rtt(e, "cubic", "default"), _rtt(e, "bbr", "default")
    how = samples.below_tcp(e.runs(cc="cubic", tsq="default")[0])
    return Finding(cubic <= 2 * bbr, f"TCP RTT of CUBIC / BBR: {ratio(cubic, bbr)}", how)


FLOWS = (
    'how many flows a figure was made with: section IV says "four TCP uploads", of Figure 4 the text says "a simple TCP'
    ' Cubic stream", and Figures 5 to 7 are "the same tests"'
)


def _flows(figure: str, *claims: str) -> Unknown:
    return Unknown(
        FLOWS, f"{figure}-flows", ("test.upload_streams",), claims=tuple(f"{figure} {one}" for one in claims)
    )


FIGURES = (
    Figure(
        "A-4",
        "Throughput and latency on different wired bottlenecks: TSQ vs. NoTSQ",
        "candles",
        (
            Claim("A-4 throughput", "throughput near 96 Mbit/s in all four", "within 1 Mbit/s", _a4_throughput),
            Claim("A-4 local", "local bottleneck: latency drops by a lot with TSQ", "to a tenth or less", _local),
            Claim("A-4 remote", "remote bottleneck: the difference is marginal", f"a factor below {MARGINAL}", _remote),
        ),
        Layout(quantities=("goodput", "ping")),
    ),
    Figure(
        "A-5a",
        "TCP RTT: CUBIC, pfifo_fast",
        "candles",
        (_orders("L10M", 2), _orders("L100M", 2), _orders("LR1000M", 1), _remote_same("A-5a")),
        unknowns=(_flows("A-5a", "L10M", "L100M", "LR1000M"),),
    ),
    Figure(
        "A-5b",
        "TCP RTT: BBR, pfifo_fast",
        "candles",
        (_less("A-5b", "L10M", 10), _less("A-5b", "L100M", 3), _less("A-5b", "LR1000M", 2), _remote_same("A-5b")),
        unknowns=(_flows("A-5b", "L10M", "L100M", "LR1000M"),),
    ),
    Figure(
        "A-5c",
        "TCP RTT: BBR, fq_codel",
        "candles",
        (
            _held("R10M", "off"),
            _held("R10M", "default"),
            _held("L10M", "off"),
            _remote_same("A-5c"),
            Claim("A-5c elsewhere", "elsewhere it is as Figure 5b", f"within a factor of {SIMILAR}", _elsewhere),
            Claim(
                "A-5c CUBIC",
                "CUBIC with fq_codel is very similar to BBR with it",
                f"each of the ten within a factor of {SIMILAR}",
                _cubic_alike,
            ),
        ),
        Layout(where=(("cc", "bbr"),)),
        needs=("A-5b",),
        unknowns=(_flows("A-5c", "R10M without TSQ", "R10M", "L10M without TSQ", "elsewhere", "CUBIC"),),
    ),
    Figure(
        "A-6",
        "CUBIC and BBR on a remote bottleneck",
        "series",
        (
            Claim("A-6 throughput", "CUBIC and BBR have a similar throughput", "all within 5 %", _similar_throughput),
            _sawtooth("A-6", "off"),
            _sawtooth("A-6", "default"),
            _drains("A-6", "off"),
            _drains("A-6", "default"),
            _nothing("cubic"),
            _nothing("bbr"),
        ),
        note="A step of goodput above 100 Mbit/s is no error: what waits behind a lost segment is delivered to the"
        " application all at once when the segment has come again.",
    ),
    Figure(
        "A-7",
        "CUBIC and BBR on a local bottleneck",
        "series",
        (
            _sawtooth("A-7", "off"),
            _drains("A-7", "off"),
            Claim(
                "A-7 as remote", "without TSQ it is as on the remote bottleneck (6a)", "the candles overlap", _as_remote
            ),
            Claim(
                "A-7 minimal queue",
                "with TSQ CUBIC keeps a minimal queue, like BBR",
                "RTT at most twice BBR's",
                _minimal,
            ),
            Claim(
                "A-7 loss-based",
                "any loss-based variant is ruled by TSQ as CUBIC is",
                "a tenth or less of CUBIC's RTT without TSQ, and no drop",
                _any_loss_based,
            ),
        ),
        needs=("A-6", "A-7-loss-based"),
        unknowns=(_flows("A-7", "minimal queue"),),
    ),
)
