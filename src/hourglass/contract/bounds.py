# SPDX-License-Identifier: Apache-2.0
"""Bounds of figures, the one language of `[check]`, `hourglass check` and tests: `ping.icmp.p99 < 20ms`.

| written | holds when the figure is |
|---|---|
| `< 20ms`, `<= 20ms`, `> 20ms`, `>= 20ms` | below, at most, above, at least |
| `== 0` | the same number |
| `10ms..20ms`, `10..20 ms` | in the range, ends included |

A unit is one of those the figure's own can be converted from; it may be left out of 0, and of what has none. Numbers
are compared as they are written, as decimals. A name that leaves out keys bounds each figure that it stands for.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hourglass.contract import names
from hourglass.errors import InputError, closest

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(rf"({_NUMBER}) *([^\s\d.+-][^\s]*|1/s|)", re.ASCII)
_COMPARISON = re.compile(r"(<=|>=|==|<|>) *(.*)", re.DOTALL)
_NAMED = re.compile(rf"(.+?) *((?:<=|>=|==|<|>).*|(?<= ){_NUMBER}[^.]*\.\..*)", re.DOTALL)

EXAMPLES: Final = 'a bound like "< 20ms", ">= 90mbit", "== 0" or "10ms..20ms"'

_TIMES_S: Final = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)}
_RATES: Final = {"bit": Fraction(1, 10**6), "kbit": Fraction(1, 1000), "Mbit": Fraction(1), "Gbit": Fraction(1000)}
SHARE: Final = "share"
"""How the last word of a share of 1 ends, which may be bounded in percent."""


def factors(unit: str, name: str = "") -> dict[str, Fraction]:
    """The units that fit a figure's, and how much of the figure's each is. `name`: the figure's."""
    if unit in _TIMES_S:
        return {one: size / _TIMES_S[unit] for one, size in _TIMES_S.items()}
    if unit == "Mbit/s":
        return dict(_RATES)
    if unit == "%":
        return {"%": Fraction(1)}
    if unit == "" and any(word.endswith(SHARE) for word in names.split(name)):
        return {"": Fraction(1), "%": Fraction(1, 100)}
    return {"": Fraction(1)} | ({unit: Fraction(1)} if unit else {})


def fitting(unit: str, name: str = "") -> str:
    """The units that fit, in words."""
    fit = factors(unit, name)
    given = [one for one in fit if one]
    return ", ".join(given) + (", or none" if given and "" in fit else "") if given else "none"


def converted(number: Fraction, given: str, unit: str, name: str) -> Fraction | None:
    """A number with a unit in a figure's own; None if they do not fit."""
    short = given.removesuffix("/s") if unit == "Mbit/s" else given
    alike = {one.lower(): factor for one, factor in factors(unit, name).items()}
    factor = alike.get(short.replace("µ", "u").lower())
    if factor is None and not given and number == 0:
        return Fraction(0)
    return None if factor is None else number * factor


@dataclass(frozen=True)
class Bound:
    """A checked bound. `text`: as it is written; `least`, `most`: the limits in the figure's `unit`, each with whether
    it is allowed itself."""

    name: str
    text: str
    unit: str
    least: tuple[Fraction, bool] | None
    most: tuple[Fraction, bool] | None

    def holds(self, value: float | None) -> bool:
        """Never for what is not known."""
        if value is None or value != value or value in (float("inf"), float("-inf")):
            return False
        number = Fraction(repr(value))
        above = self.least is None or number > self.least[0] or (self.least[1] and number == self.least[0])
        below = self.most is None or number < self.most[0] or (self.most[1] and number == self.most[0])
        return above and below

    def __str__(self) -> str:
        return f"{self.name} {self.text}"


def parse(name: str, text: object) -> Bound:
    """The bound of a figure. Raises `InputError` for a name no run can have, for what is no bound, and for a unit that
    does not fit the figure's."""
    return of_unit(name, text, names.unit(name))


def of_unit(name: str, text: object, unit: str) -> Bound:
    """The same of a figure that is no run's own, but in this unit."""
    written = " ".join(text.split()) if isinstance(text, str) else ""
    if match := _COMPARISON.fullmatch(written):
        sign, limit = match[1], _limit(name, written, match[2], unit)
        allowed = sign in ("<=", ">=", "==")
        least = (limit, allowed) if sign in (">", ">=", "==") else None
        most = (limit, allowed) if sign in ("<", "<=", "==") else None
        return Bound(name, f"{sign} {match[2].strip()}", unit, least, most)
    low, dots, high = written.partition("..")
    if not dots:
        raise InputError(name, text, EXAMPLES)
    most_limit = _limit(name, written, high, unit)
    bare = re.fullmatch(_NUMBER, low.strip())
    shared = _QUANTITY.fullmatch(high.strip())
    least_limit = _limit(name, written, low + (shared[2] if bare and shared else ""), unit)
    if least_limit > most_limit:
        raise InputError(name, text, "a range from the lower to the higher end")
    return Bound(name, f"{low.strip()}..{high.strip()}", unit, (least_limit, True), (most_limit, True))


def _limit(name: str, text: str, written: str, unit: str) -> Fraction:
    """A number and its unit, in the figure's own unit."""
    match = _QUANTITY.fullmatch(written.strip())
    if not match:
        raise InputError(name, text, EXAMPLES)
    limit = converted(Fraction(match[1]), match[2], unit, name)
    if limit is None:
        given = f"{match[2]!r} does not fit" if match[2] else "a unit is missing"
        what = f"the figure is in {unit}" if unit else "the figure has no unit"
        raise InputError(name, text, f"{given}: {what}. {closest(match[2], factors(unit))}Units: {fitting(unit, name)}")
    return limit


def read(text: str) -> Bound:
    """A bound with its name before it: "ping.icmp.p99 < 20ms". Raises `InputError`."""
    match = _NAMED.fullmatch(" ".join(text.split()))
    if not match:
        allowed = 'a figure and its bound, like "ping.icmp.p99 < 20ms" or "totals.fairness 0.9..1"'
        raise InputError("bound", text, allowed)
    return parse(match[1], match[2])
