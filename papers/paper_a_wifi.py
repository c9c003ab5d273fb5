# SPDX-License-Identifier: Apache-2.0
"""Paper A's Wi-Fi: TCP Small Queues of 1 to 8 ms on ath9k, against pacing ratio and base RTT (its Figure 8).

The paper says directions and gives no number, so the trends are judged against the spread of the seeds.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import median

from papers.checks import BEYOND
from papers.model import AGGREGATES, PING, UP, Claim, Evidence, Finding, Layout, PaperFigure, spread

SMALL = [f"{n}ms" for n in range(1, 5)]
LARGE = [f"{n}ms" for n in range(5, 9)]
RATIOS = (120, 130, 140)
LINE = 0.01
"""A smaller change of throughput is invisible in a chart of its height."""
MOST_SUBFRAMES = 32
"""The most subframes of an aggregate of ath9k."""
GREEN_BLUE_RED = (2, 0, 1)
"""The paper's colours of 2p, 3p and 4p, and of 1, 10 and 100 ms, in the house's order of styles."""
ALIKE = 0.05
"""The difference of what is "almost the same"."""

Judge = Callable[[Evidence], Finding]


def _falls(series: list[list[float]]) -> int:
    """Return the number of steps that fall by more than the spread of the seeds and the width of a line."""
    return sum(median(a) - median(b) > max(spread(a), spread(b), LINE * median(a)) for a, b in pairwise(series))


def _with_size(e: Evidence) -> Finding:
    texts, good = [], True
    for unit, column in (("Mbit/s", UP), ("ms", PING)):
        series = [e.each(column, ca=120, tsq=size) for size in e.values("tsq")]
        good &= min(series[-1]) > max(series[0]) and not _falls(series)
        texts.append(f"{', '.join(f'{median(seeds):.3g}' for seeds in series)} {unit}")
    return Finding(good, "; ".join(texts))


def _with_ratio(sizes: list[str]) -> Judge:
    """Judge that throughput and latency of 140 % are above those of 120 %, in every seed, at more than half of the
    sizes, and nowhere below."""

    def judge(e: Evidence) -> Finding:
        texts, good = [], True
        for unit, column in (("Mbit/s", UP), ("ms", PING)):
            series = [[e.each(column, ca=ca, tsq=size) for ca in RATIOS] for size in sizes]
            above = sum(min(ratios[-1]) > max(ratios[0]) for ratios in series)
            good &= above > len(sizes) / 2 and not any(map(_falls, series))
            text = ", ".join("/".join(f"{median(part):.3g}" for part in ratios) for ratios in series)
            texts.append(f"{text} {unit}")
        return Finding(good, "; ".join(texts))

    return judge


def _saturated(e: Evidence) -> Finding:
    texts, good = [], True
    for size in LARGE:
        rates, times = ([e.each(column, ca=ca, tsq=size) for ca in (120, 140)] for column in (UP, PING))
        gain = median(rates[1]) - median(rates[0])
        good &= gain <= max(*map(spread, rates), LINE * median(rates[0])) and min(times[1]) > max(times[0])
        texts.append(f"{size} {gain:+.2g} Mbit/s, {median(times[1]) - median(times[0]):+.2g} ms")
    return Finding(good, "; ".join(texts))


def _base_rtt(e: Evidence) -> Finding:
    pairs = [[e.each(UP, delay=delay, tsq=size) for delay in ("1ms", "10ms")] for size in e.values("tsq")]
    text = ", ".join(f"{median(near):.3g}/{median(far):.3g}" for near, far in pairs)
    return Finding(all(min(near) > max(far) for near, far in pairs), f"1 ms/10 ms: {text} Mbit/s")


def _far(e: Evidence) -> Finding:
    best = max((e.each(UP, delay="1ms", tsq=size) for size in e.values("tsq")), key=median)
    rates = [e.each(UP, delay="100ms", tsq=size) for size in e.values("tsq")]
    text = ", ".join(f"{median(seeds):.3g}" for seeds in rates)
    good = all(max(seeds) < min(best) for seeds in rates)
    return Finding(good, f"at 100 ms {text} Mbit/s; the highest of 1 ms is {median(best):.3g}")


def _as_reduction(e: Evidence) -> Finding:
    """Judge that throughput at 100 ms is below that at 10 ms, in every seed, as it is with a lower pacing ratio."""
    pairs = [[e.each(UP, delay=delay, tsq=size) for delay in ("10ms", "100ms")] for size in e.values("tsq")]
    text = ", ".join(f"{median(near):.3g}/{median(far):.3g}" for near, far in pairs)
    how = "at 100 ms and a small TSQ the flows stay in slow start, where the pacing ratio is 200 %"
    return Finding(all(min(near) > max(far) for near, far in pairs), f"10 ms/100 ms: {text} Mbit/s", how)


def _aggregates(e: Evidence) -> Finding:
    """Judge that a larger pacing ratio makes larger aggregates, in every seed, up to 4 ms of TSQ."""
    pairs = [[e.each(AGGREGATES, ca=ca, tsq=size) for ca in (120, 140)] for size in SMALL]
    text = ", ".join(f"{median(low):.3g}/{median(high):.3g}" for low, high in pairs)
    return Finding(all(min(high) > max(low) for low, high in pairs), f"120 %/140 %: {text} subframes")


def _full(e: Evidence) -> Finding:
    sizes = [e.value(AGGREGATES, ca=120, tsq=size) for size in LARGE]
    text = ", ".join(f"{size:.3g}" for size in sizes)
    return Finding(min(sizes) >= (1 - ALIKE) * MOST_SUBFRAMES, f"{text} subframes of {MOST_SUBFRAMES} on average")


def _green(e: Evidence) -> Finding:
    other = e.other("A-8a")
    pairs = [(e.value(UP, delay="1ms", tsq=size), other.value(UP, ca=120, tsq=size)) for size in e.values("tsq")]
    text = ", ".join(f"{rate:.3g}/{reference:.3g}" for rate, reference in pairs)
    good = all(abs(rate - reference) <= ALIKE * reference for rate, reference in pairs)
    return Finding(good, f"8b/8a: {text} Mbit/s", "the base RTT is 1 ms in 8b; in 8a there is no netem")


def _halving(e: Evidence) -> Finding:
    """Compare half of the base RTT at the standard ratio with all of it at twice the ratio."""
    pairs = [
        (e.each(UP, delay="10ms", ca=120, tsq=size), e.each(UP, delay="20ms", ca=240, tsq=size))
        for size in e.values("tsq")
    ]
    text = ", ".join(f"{median(half):.3g}/{median(double):.3g}" for half, double in pairs)
    good = all(
        abs(median(half) - median(double)) <= max(spread(half), spread(double), ALIKE * median(half))
        for half, double in pairs
    )
    return Finding(good, f"10 ms at 120 %/20 ms at 240 %: {text} Mbit/s")


FIGURES = (
    PaperFigure(
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
            Claim(
                "A-8a.4",
                "a higher ratio makes larger aggregates",
                f"140 % above 120 % up to 4 ms, {BEYOND}",
                _aggregates,
            ),
            Claim("A-8a.5", "beyond 4 ms the aggregates are of the largest size", "32 subframes, within 5 %", _full),
        ),
        Layout("tsq", ("ca",), quantities=("goodput", "ping"), styles=GREEN_BLUE_RED),
    ),
    PaperFigure(
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
            Claim(
                "A-8b.4",
                "a longer base RTT acts like a lower pacing ratio",
                f"100 ms below 10 ms at each size, {BEYOND}",
                _as_reduction,
            ),
        ),
        Layout("tsq", ("delay",), quantities=("goodput", "ping"), styles=GREEN_BLUE_RED),
        needs=("A-8a",),
    ),
    PaperFigure(
        "A-8-halved",
        "Half of the base RTT, or twice the pacing ratio",
        "table",
        (
            Claim(
                "A-8.1",
                "halving the RTT has the effect of doubling the pacing rate",
                "throughput within the spread of the seeds or 5 %",
                _halving,
                excluded="tcp_update_pacing_rate divides by srtt_us, in which the queue counts as well as the base RTT",
            ),
        ),
    ),
)
