# SPDX-License-Identifier: Apache-2.0
"""Paper A's Wi-Fi: TCP Small Queues of 1 to 8 ms on ath9k, against pacing ratio and base RTT (its Figure 8).

The paper says directions and gives no number, so the trends are judged against the spread of the seeds.
"""

from collections.abc import Callable
from itertools import pairwise

from hourglass.papers.checks import BEYOND, middle
from hourglass.papers.model import PING, UP, Claim, Evidence, Figure, Finding, Layout, spread

SMALL = [f"{n}ms" for n in range(1, 5)]
LARGE = [f"{n}ms" for n in range(5, 9)]
RATIOS = (120, 130, 140)
LINE = 0.01
"""A throughput that moves by less is not seen in a chart of its height."""
ALIKE = 0.05
"""What "almost the same" may differ by."""

Judge = Callable[[Evidence], Finding]


def _falls(found: list[list[float]]) -> int:
    """How many steps fall by more than the spread of the seeds, and by more than a line's width."""
    return sum(middle(a) - middle(b) > max(spread(a), spread(b), LINE * middle(a)) for a, b in pairwise(found))


def _with_size(e: Evidence) -> Finding:
    told, good = [], True
    for word, column in (("Mbit/s", UP), ("ms", PING)):
        found = [e.each(column, ca=120, tsq=size) for size in e.values("tsq")]
        good &= min(found[-1]) > max(found[0]) and not _falls(found)
        told.append(f"{', '.join(f'{middle(one):.3g}' for one in found)} {word}")
    return Finding(good, "; ".join(told))


def _with_ratio(sizes: list[str]) -> Judge:
    """Throughput and latency of 140 % are above those of 120 %, in every seed, at more than half of the sizes, and
    nowhere below."""

    def judge(e: Evidence) -> Finding:
        told, good = [], True
        for word, column in (("Mbit/s", UP), ("ms", PING)):
            found = [[e.each(column, ca=ca, tsq=size) for ca in RATIOS] for size in sizes]
            above = sum(min(one[-1]) > max(one[0]) for one in found)
            good &= above > len(sizes) / 2 and not any(map(_falls, found))
            words = ", ".join("/".join(f"{middle(part):.3g}" for part in one) for one in found)
            told.append(f"{words} {word}")
        return Finding(good, "; ".join(told))

    return judge


def _saturated(e: Evidence) -> Finding:
    told, good = [], True
    for size in LARGE:
        rates, times = ([e.each(column, ca=ca, tsq=size) for ca in (120, 140)] for column in (UP, PING))
        gain = middle(rates[1]) - middle(rates[0])
        good &= gain <= max(*map(spread, rates), LINE * middle(rates[0])) and min(times[1]) > max(times[0])
        told.append(f"{size} {gain:+.2g} Mbit/s, {middle(times[1]) - middle(times[0]):+.2g} ms")
    return Finding(good, "; ".join(told))


def _base_rtt(e: Evidence) -> Finding:
    pairs = [[e.each(UP, delay=delay, tsq=size) for delay in ("1ms", "10ms")] for size in e.values("tsq")]
    words = ", ".join(f"{middle(near):.3g}/{middle(far):.3g}" for near, far in pairs)
    return Finding(all(min(near) > max(far) for near, far in pairs), f"1 ms/10 ms: {words} Mbit/s")


def _far(e: Evidence) -> Finding:
    best = max((e.each(UP, delay="1ms", tsq=size) for size in e.values("tsq")), key=middle)
    found = [e.each(UP, delay="100ms", tsq=size) for size in e.values("tsq")]
    words = ", ".join(f"{middle(one):.3g}" for one in found)
    good = all(max(one) < min(best) for one in found)
    return Finding(good, f"at 100 ms {words} Mbit/s; the highest of 1 ms is {middle(best):.3g}")


def _green(e: Evidence) -> Finding:
    other = e.other("A-8a")
    pairs = [(e.value(UP, delay="1ms", tsq=size), other.value(UP, ca=120, tsq=size)) for size in e.values("tsq")]
    words = ", ".join(f"{here:.3g}/{there:.3g}" for here, there in pairs)
    good = all(abs(here - there) <= ALIKE * there for here, there in pairs)
    return Finding(good, f"8b/8a: {words} Mbit/s", "the base RTT is 1 ms in 8b; in 8a there is no netem")


def _halving(e: Evidence) -> Finding:
    """Half of the base RTT with the standard ratio, against the whole of it with twice the ratio."""
    pairs = [
        (e.each(UP, delay="10ms", ca=120, tsq=size), e.each(UP, delay="20ms", ca=240, tsq=size))
        for size in e.values("tsq")
    ]
    words = ", ".join(f"{middle(one):.3g}/{middle(other):.3g}" for one, other in pairs)
    good = all(
        abs(middle(one) - middle(other)) <= max(spread(one), spread(other), ALIKE * middle(one)) for one, other in pairs
    )
    return Finding(good, f"10 ms at 120 %/20 ms at 240 %: {words} Mbit/s")


FIGURES = (
    Figure(
        "A-8a",
        "Throughput and latency on ath9k: TSQ size and pacing ratio",
        "candles",
        (
            Claim(
                "A-8a.1",
                "throughput and latency rise with TSQ's size",
                f"8 ms above 1 ms, no step falls, {BEYOND}",
                _with_size,
            ),
            Claim(
                "A-8a.2",
                "up to 4 ms both rise with the pacing ratio",
                f"140 % above 120 % at three of four sizes or more, no step falls, {BEYOND}",
                _with_ratio(SMALL),
            ),
            Claim(
                "A-8a.3",
                "beyond 4 ms a larger ratio adds latency only",
                f"throughput by no more than the spread of the seeds or 1 %; latency {BEYOND}",
                _saturated,
            ),
        ),
        Layout("tsq", ("ca",), quantities=("goodput", "ping")),
    ),
    Figure(
        "A-8b",
        "Throughput and latency on ath9k: TSQ size and base RTT",
        "candles",
        (
            Claim("A-8b.1", "1 ms of base RTT gives more throughput than 10 ms", f"at each size, {BEYOND}", _base_rtt),
            Claim(
                "A-8b.2",
                "at 100 ms no size reaches the optimum",
                f"each below the highest throughput of 1 ms, {BEYOND}",
                _far,
            ),
            Claim(
                "A-8b.3",
                "what is green in both, 2p in 8a and 1 ms in 8b, is almost the same",
                "throughput within 5 % at each size",
                _green,
            ),
        ),
        Layout("tsq", ("delay",), quantities=("goodput", "ping")),
        needs=("A-8a",),
    ),
    Figure(
        "A-8-halved",
        "Half of the base RTT, or twice the pacing ratio",
        "table",
        (
            Claim(
                "A-8.1",
                "halving the RTT has the effect of doubling the pacing rate",
                "throughput within the spread of the seeds or 5 %",
                _halving,
                apart="tcp_update_pacing_rate divides by srtt_us, in which the queue counts as well as the base RTT",
            ),
        ),
    ),
)
