# SPDX-License-Identifier: Apache-2.0
"""Paper A: Grazia, Klapez, Casoni, "The New TCP Modules on the Block" (IEEE Access 2021), kernel 5.10.

Its figures survive as sentences only, so the tolerances are those of the words: an order of magnitude is the nearest
one on a logarithmic scale; "about N ms" is within a factor of 2.
"""

from math import log10
from statistics import median

import numpy as np

from hourglass.papers import samples
from hourglass.papers.model import DROPS, PING, RETRANSMITS, TCP, UP, Claim, Evidence, Figure, Finding, Layout, ratio
from hourglass.papers.rules import CAP
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
        found = e.value(TCP, scenario=scenario, tsq=tsq)
        run = e.runs(scenario=scenario, tsq=tsq)[0]
        how = f"{samples.window(run)}; a full frame takes 1.23 ms at 10 Mbit/s"
        return Finding(5 <= found <= 20, f"median {found:.3g} ms", how)

    words = f"{scenario}{' without TSQ' if tsq == 'off' else ''}"
    return Claim(f"A-5c {words}", f"fq_codel holds BBR on {words} to about 10 ms", "5 to 20 ms", judge)


def _rtt(e: Evidence, cc: str, tsq: str) -> float:
    return e.value(TCP, cc=cc, tsq=tsq)


def _sawtooth(tsq: str) -> Claim:
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
    return Claim(f"saw-tooth {name}", says, "the swing is 20 % or more, and the queue drops", judge)


def _drains(tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        low, high = _rtt(e, "bbr", tsq), _rtt(e, "cubic", tsq)
        gaps = [float(gap) for run in e.runs(cc="bbr", tsq=tsq) for gap in np.diff(samples.drain_times_s(run))]
        gap = median(gaps) if gaps else float("nan")
        measured = f"TCP RTT {low:.3g} ms (CUBIC {high:.3g}); {len(gaps)} gaps between drains, median {gap:.3g} s"
        return Finding(low < high / 3 and 9 <= gap <= 12, measured, "drains: snd_cwnd down to 4, BBR's ProbeRTT")

    name = "TSQ" if tsq == "default" else "NoTSQ"
    says = f"BBR ({name}): low RTT, with a drain about every 10 s"
    return Claim(f"drains {name}", says, "RTT below a third of CUBIC's; gaps of 9 to 12 s", judge)


def _nothing(cc: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = _rtt(e, cc, "off"), _rtt(e, cc, "default")
        return Finding(1 / MARGINAL <= off / on <= MARGINAL, f"TCP RTT {ratio(off, on)}")

    return Claim(f"A-6 {cc}", f"TSQ changes nothing for {cc.upper()}", f"less than a factor of {MARGINAL}", judge)


def _minimal(e: Evidence) -> Finding:
    cubic, bbr = _rtt(e, "cubic", "default"), _rtt(e, "bbr", "default")
    how = samples.below_tcp(e.runs(cc="cubic", tsq="default")[0])
    return Finding(cubic <= 2 * bbr, f"TCP RTT of CUBIC / BBR: {ratio(cubic, bbr)}", how)


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
        (_orders("L10M", 2), _orders("L100M", 2), _orders("LR1000M", 1), CAP),
    ),
    Figure(
        "A-5b",
        "TCP RTT: BBR, pfifo_fast",
        "candles",
        (_less("A-5b", "L10M", 10), _less("A-5b", "L100M", 3), _less("A-5b", "LR1000M", 2)),
    ),
    Figure(
        "A-5c",
        "TCP RTT: BBR, fq_codel",
        "candles",
        (_held("R10M", "off"), _held("R10M", "default"), _held("L10M", "off")),
    ),
    Figure(
        "A-6",
        "CUBIC and BBR on a remote bottleneck",
        "series",
        (
            _sawtooth("off"),
            _sawtooth("default"),
            _drains("off"),
            _drains("default"),
            _nothing("cubic"),
            _nothing("bbr"),
        ),
    ),
    Figure(
        "A-7",
        "CUBIC and BBR on a local bottleneck",
        "series",
        (
            _sawtooth("off"),
            _drains("off"),
            Claim(
                "A-7 minimal queue",
                "with TSQ CUBIC keeps a minimal queue, like BBR",
                "RTT at most twice BBR's",
                _minimal,
            ),
        ),
    ),
)
