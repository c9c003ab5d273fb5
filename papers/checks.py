# SPDX-License-Identifier: Apache-2.0
"""Define what sentences about figures of a table mean, as checks of which claims consist.

Tolerances and their reasons:

* "N Mbit/s" is within 20 %, and so is "N ms" from 50 ms on: such numbers are rounded to tens. A shorter time is within
  a factor of 2: adapter, USB and air of the testbed are not known closer than that.
* "More", "less", "rises" and "best" are differences beyond the spread of the seeds: every seed of one setting is above
  every seed of the other.
* "The same" and "stable" are within 10 %, what is read off a chart, or within the spread of the seeds where that is
  more.
* A bound that is read off a chart ("below 10 ms") has 10 % of slack for the reading.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median

import hourglass
from hourglass.errors import HourglassError
from papers.model import DOWN, UP, Claim, Evidence, Finding, Setting, spread
from papers.samples import below_tcp

Check = Callable[[Evidence], tuple[bool, str, Setting]]
"""Returns the result, the measured figures as text, and the setting whose runs show the cause."""

READING = 0.1
"""The error of a number that is read off a chart."""
FAIR = 1.5
"""Up and down within this factor are fair: of 100 Mbit/s, 40 and 60."""
LONG_MS = 50
"""Times from this on are rounded to tens."""
NUMBERS = "rates and times from 50 ms on 20 %, shorter times a factor of 2"
BEYOND = "beyond the spread of the seeds"
SAME = "within 10 %, or the spread of the seeds"


def name(where: Setting) -> str:
    """Return a setting as text; of a qdisc's line its kind."""
    return " ".join(str(value).split(" ")[0] for value in where.values())


def near(column: str, value: float, **where: object) -> Check:
    """Check that a rate or a long time is within 20 %, or a short time within a factor of 2."""
    if column in (UP, DOWN):
        return between(value / 1.2, value * 1.2, column, where)
    low, high = (0.8, 1.2) if value >= LONG_MS else (0.5, 2)
    return between(value * low, value * high, column, where)


def below(column: str, value: float, **where: object) -> Check:
    """Check that a figure is below a bound that was read off a chart."""
    return between(-inf, value * (1 + READING), column, where)


def above(column: str, value: float, **where: object) -> Check:
    """Check that a figure is above a bound that was read off a chart."""
    return between(value * (1 - READING), inf, column, where)


def between(low: float, high: float, column: str, where: Setting) -> Check:
    """Check that a figure is in a range."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        value = e.value(column, **where)
        return low <= value <= high, f"{name(where)} {value:.3g}".strip(), where

    return check


def fair(**where: object) -> Check:
    """Check that up and down differ by less than what is fair."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        up, down = e.value(UP, **where), e.value(DOWN, **where)
        return max(up, down) < FAIR * min(up, down), f"{name(where)} {up:.3g} up {down:.3g} down", where

    return check


def unfair(**where: object) -> Check:
    """Check that down is above up by more than what is fair."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        up, down = e.value(UP, **where), e.value(DOWN, **where)
        return down >= FAIR * up, f"{name(where)} {up:.3g} up {down:.3g} down", where

    return check


def more(column: str, other_column: str, setting: Setting, other: Setting | None = None, of: str = "") -> Check:
    """Check that `column` of every seed of a setting is above `other_column` of every seed of another (default: the
    same setting). `of`: the figure that the other is of."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        reference = setting if other is None else other
        a, b = e.each(column, **setting), (e.other(of) if of else e).each(other_column, **reference)
        text = f"{name(setting)} {e.value(column, **setting):.3g}, {of} {name(reference)} {median(b):.3g}"
        return min(a) > max(b), " ".join(text.split()), setting

    return check


def same(column: str, setting: Setting, other: Setting, of: str = "") -> Check:
    """Check that the medians of two settings differ by no more than a tenth of the other, or by the seeds' spread."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        a, b = e.each(column, **setting), (e.other(of) if of else e).each(column, **other)
        allowed = max(READING * median(b), spread(a), spread(b))
        text = f"{name(setting)} {median(a):.3g}, {of} {name(other)} {median(b):.3g}"
        return abs(median(a) - median(b)) <= allowed, " ".join(text.split()), setting

    return check


def difference(column: str, low: float, high: float, setting: Setting, other: Setting) -> Check:
    """Check that `column` of a setting is above another's by low to high."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        a, b = e.value(column, **setting), e.value(column, **other)
        return low <= a - b <= high, f"{name(setting)} {a:.3g} - {b:.3g} = {a - b:.3g}", setting

    return check


def rising(column: str, axis: str, values: Sequence[str] | None = None, **where: object) -> Check:
    """Check that a figure rises along an axis: every seed of the last value is above every seed of the first, and no
    step falls by more than the spread of the seeds or 1 %."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        along = e.values(axis) if values is None else values
        series = [e.each(column, **{axis: value}, **where) for value in along]
        falls = [
            median(sooner) - median(later) > max(spread(sooner), spread(later), 0.01 * median(sooner))
            for sooner, later in pairwise(series)
        ]
        steps = ", ".join(f"{median(seeds):.3g}" for seeds in series)
        text = f"{name(where)}: {steps}".removeprefix(": ")
        return min(series[-1]) > max(series[0]) and not any(falls), text, where | {axis: along[-1]}

    return check


def least(column: str, axis: str, best: Setting, **where: object) -> Check:
    """Check that every seed of a setting is below every seed of each other value of an axis."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        by_value = {value: e.each(column, **where | {axis: value}) for value in e.values(axis)}
        lowest = by_value.pop(best[axis])
        rest = ", ".join(f"{name({axis: value})} {median(seeds):.3g}" for value, seeds in by_value.items())
        return (
            max(lowest) < min(map(min, by_value.values())),
            f"{name({axis: best[axis]})} {median(lowest):.3g}; {rest}",
            best,
        )

    return check


def times_lower(column: str, factor: float, setting: Setting, other: Setting, of: str) -> Check:
    """Check that a figure of another setting, of the figure `of`, is at least this multiple of the setting's."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        low, high = e.value(column, **setting), e.other(of).value(column, **other)
        text = f"{of} {name(other)} {high:.3g} / {name(setting)} {low:.3g} = {high / low:.3g}"
        return high / low >= factor, text, setting

    return check


def share_of_best(column: str, low: float, high: float, **where: object) -> Check:
    """Check that the share of the highest value of the figure is from `low` to `high`."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        value = e.value(column, **where)
        share = value / max(e.value(column, **setting) for setting in e.settings())
        return low <= min(share, 1) <= high, f"{name(where)} {value:.3g} ({share:.0%})", where

    return check


def mitigates(setting: Setting, other: Setting) -> Check:
    """Check that the uploads' share of all goodput is higher in a setting than in the other, in every seed."""

    def check(e: Evidence) -> tuple[bool, str, Setting]:
        shares = [
            [up / (up + down) for up, down in zip(e.each(UP, **where), e.each(DOWN, **where), strict=True)]
            for where in (setting, other)
        ]
        text = ", ".join(
            f"{name(where)} up has {median(share):.0%}" for where, share in zip((setting, other), shares, strict=True)
        )
        return min(shares[0]) > max(shares[1]), text, setting

    return check


def on_air(e: Evidence, where: Setting) -> str:
    """Return facts of the sockets and the air from the records of one of the runs."""
    try:
        return _on_air(e.folders(**where)[0])
    except (LookupError, HourglassError):
        return "no records"


@cache
def _on_air(folder: Path) -> str:
    run = hourglass.load(folder)
    facts = [below_tcp(run)]
    for node, radios in run.summary.wifi.items():
        for radio in radios.values():
            mean, air_percent = radio.subframes.mean or 0, radio.air_percent or 0
            facts.append(f"{node}: aggregates of {mean:.3g}, {air_percent:.3g} % of the air")
    return ", ".join(facts)


def claim(sentence: str, *checks: Check, tolerance: str = NUMBERS, cause: str = "", excluded: str = "") -> Claim:
    """Return a claim that holds if all checks hold."""

    def judge(e: Evidence) -> Finding:
        results = [check(e) for check in checks]
        failures = [text for good, text, _ in results if not good]
        causes = {name(where): where for good, _, where in results if not good}
        details = [f"off: {'; '.join(failures)}", *(f"{text}: {on_air(e, where)}" for text, where in causes.items())]
        return Finding(not failures, "; ".join(text for _, text, _ in results), "; ".join(details) if failures else "")

    return Claim("", sentence, tolerance, judge, cause, excluded)
