# SPDX-License-Identifier: Apache-2.0
"""What sentences about figures of a table can mean, as checks that claims are made of.

Tolerances, and why they are what they are:

* "N Mbit/s" is within 20 % and "N ms" within a factor of 2, where a sentence names a number and nothing else: adapter,
  USB and air of the testbed are not known closer than that.
* "More", "less", "rises" and "best" are differences beyond the spread of the seeds: every seed of one setting is above
  every seed of the other.
* "The same" is within 10 %, what is read off a chart, or within the spread of the seeds where that is more.
* A bound that is read off a chart ("below 10 ms") has 10 % of slack for the reading.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

from hourglass.errors import HourglassError
from hourglass.papers.model import DOWN, UP, Claim, Evidence, Finding, Where, spread
from hourglass.papers.samples import below_tcp

Check = Callable[[Evidence], tuple[bool, str, Where]]
"""Whether it is so, what was found, and in which runs to look for the cause."""

READING = 0.1
"""What a number can be off that is read off a chart."""
FAIR = 1.5
"""Up and down within this factor are fair: of 100 Mbit/s, 40 and 60."""
NUMBERS = "rates 20 %, times a factor of 2"
BEYOND = "beyond the spread of the seeds"
SAME = "within 10 %, or the spread of the seeds"


def name(where: Where) -> str:
    """A setting in words; of a qdisc's line its kind."""
    return " ".join(str(value).split(" ")[0] for value in where.values())


def near(column: str, value: float, **where: object) -> Check:
    """Within 20 % for rates, within a factor of 2 for times."""
    factor = 1.2 if column in (UP, DOWN) else 2
    return between(value / factor, value * factor, column, where)


def within(column: str, value: float, share: float, **where: object) -> Check:
    """Within a share of a value."""
    return between(value * (1 - share), value * (1 + share), column, where)


def below(column: str, value: float, **where: object) -> Check:
    """Below a bound that was read off a chart."""
    return between(-inf, value * (1 + READING), column, where)


def above(column: str, value: float, **where: object) -> Check:
    """Above a bound that was read off a chart."""
    return between(value * (1 - READING), inf, column, where)


def between(low: float, high: float, column: str, where: Where) -> Check:
    def check(e: Evidence) -> tuple[bool, str, Where]:
        found = e.value(column, **where)
        return low <= found <= high, f"{name(where)} {found:.3g}".strip(), where

    return check


def fair(**where: object) -> Check:
    def check(e: Evidence) -> tuple[bool, str, Where]:
        up, down = e.value(UP, **where), e.value(DOWN, **where)
        return max(up, down) < FAIR * min(up, down), f"{name(where)} {up:.3g} up {down:.3g} down", where

    return check


def unfair(**where: object) -> Check:
    """Down is above up by more than what is fair."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        up, down = e.value(UP, **where), e.value(DOWN, **where)
        return down >= FAIR * up, f"{name(where)} {up:.3g} up {down:.3g} down", where

    return check


def more(column: str, than: str, one: Where, other: Where | None = None, of: str = "") -> Check:
    """`column` of every seed of one setting is more than `than` of every seed of another (default: the same setting);
    `of`: the figure whose run the other is."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        behind = one if other is None else other
        a, b = e.each(column, **one), (e.other(of) if of else e).each(than, **behind)
        words = f"{name(one)} {e.value(column, **one):.3g}, {of} {name(behind)} {middle(b):.3g}"
        return min(a) > max(b), " ".join(words.split()), one

    return check


def middle(values: list[float]) -> float:
    """The median of what is not empty."""
    found = sorted(values)
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


def same(column: str, one: Where, other: Where, of: str = "", share: float = READING) -> Check:
    """The medians of two settings differ by no more than a share of the other, or by the seeds' spread."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        a, b = e.each(column, **one), (e.other(of) if of else e).each(column, **other)
        allowed = max(share * middle(b), spread(a), spread(b))
        words = f"{name(one)} {middle(a):.3g}, {of} {name(other)} {middle(b):.3g}"
        return abs(middle(a) - middle(b)) <= allowed, " ".join(words.split()), one

    return check


def by(column: str, low: float, high: float, one: Where, other: Where) -> Check:
    """`column` of one setting is above another's by low to high."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        a, b = e.value(column, **one), e.value(column, **other)
        return low <= a - b <= high, f"{name(one)} {a:.3g} - {b:.3g} = {a - b:.3g}", one

    return check


def rising(column: str, axis: str, values: Sequence[str] | None = None, **where: object) -> Check:
    """Along an axis: every seed of its last value is above every seed of its first, and no step falls by more than the
    spread of the seeds or 1 %."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        along = e.values(axis) if values is None else values
        found = [e.each(column, **{axis: value}, **where) for value in along]
        falls = [
            middle(sooner) - middle(later) > max(spread(sooner), spread(later), 0.01 * middle(sooner))
            for sooner, later in pairwise(found)
        ]
        steps = ", ".join(f"{middle(one):.3g}" for one in found)
        words = f"{name(where)}: {steps}".removeprefix(": ")
        return min(found[-1]) > max(found[0]) and not any(falls), words, where | {axis: along[-1]}

    return check


def least(column: str, axis: str, best: Where, **where: object) -> Check:
    """Every seed of one setting is below every seed of each other value of an axis."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        found = {value: e.each(column, **where | {axis: value}) for value in e.values(axis)}
        own = found.pop(best[axis])
        rest = ", ".join(f"{name({axis: value})} {middle(one):.3g}" for value, one in found.items())
        return max(own) < min(map(min, found.values())), f"{name({axis: best[axis]})} {middle(own):.3g}; {rest}", best

    return check


def share_of_best(column: str, low: float, high: float, **where: object) -> Check:
    """The share of the highest that any run of the figure has, from `low` to `high`."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        own = e.value(column, **where)
        share = own / max(e.value(column, **one) for one in e.settings())
        return low <= min(share, 1) <= high, f"{name(where)} {own:.3g} ({share:.0%})", where

    return check


def mitigates(one: Where, other: Where) -> Check:
    """The uploads' share of all goodput is higher in one setting than in the other, in every seed."""

    def check(e: Evidence) -> tuple[bool, str, Where]:
        shares = [
            [up / (up + down) for up, down in zip(e.each(UP, **where), e.each(DOWN, **where), strict=True)]
            for where in (one, other)
        ]
        words = ", ".join(
            f"{name(where)} up has {middle(of):.0%}" for where, of in zip((one, other), shares, strict=True)
        )
        return min(shares[0]) > max(shares[1]), words, one

    return check


def on_air(e: Evidence, where: Where) -> str:
    """What the records of one of the runs say of its sockets and its air."""
    try:
        run = e.runs(**where)[0]
        told = [below_tcp(run)]
    except (LookupError, HourglassError):
        return "no records"
    for node, radios in run.summary.wifi.items():
        for radio in radios.values():
            told.append(f"{node}: aggregates of {radio.subframes.mean or 0:.3g}, {radio.air_percent:.3g} % of the air")
    return ", ".join(told)


def claim(says: str, *checks: Check, tolerance: str = NUMBERS, version: str = "", apart: str = "") -> Claim:
    """It holds when all the checks do."""

    def judge(e: Evidence) -> Finding:
        found = [check(e) for check in checks]
        wrong = [words for good, words, _ in found if not good]
        causes = {name(where): where for good, _, where in found if not good}
        how = [f"off: {'; '.join(wrong)}", *(f"{words}: {on_air(e, where)}" for words, where in causes.items())]
        return Finding(not wrong, "; ".join(words for _, words, _ in found), "; ".join(how) if wrong else "")

    return Claim("", says, tolerance, judge, version, apart)
