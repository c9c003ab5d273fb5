# SPDX-License-Identifier: Apache-2.0
"""Bounds of figures, as `[check]`, `hourglass check` and tests write them: `ping.icmp.p99 < 20ms`.

| bound | met when the figure is |
|---|---|
| `< 20ms`, `<= 20ms`, `> 20ms`, `>= 20ms` | below, at most, above, at least |
| `== 0` | the same number |
| `10ms..20ms`, `10..20 ms` | in the range, ends included |

A unit must convert to the figure's unit. You may omit it for 0 and for figures without a unit. Numbers are compared as
decimals. A name that omits keys bounds every matching figure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hourglass.contract import names
from hourglass.errors import InputError, closest

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(rf"({_NUMBER}) *([^\s\d.+-][^\s]*|1/s|1/min|)", re.ASCII)
_COMPARISON = re.compile(r"(<=|>=|==|<|>) *(.*)", re.DOTALL)
_NAMED = re.compile(rf"(.+?) *((?:<=|>=|==|<|>).*|(?<= ){_NUMBER}[^.]*\.\..*)", re.DOTALL)

EXAMPLES: Final = 'a bound like "< 20ms", ">= 90mbit", "== 0" or "10ms..20ms"'

_TIMES_S: Final = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)}
_RATES: Final = {"bit": Fraction(1, 10**6), "kbit": Fraction(1, 1000), "Mbit": Fraction(1), "Gbit": Fraction(1000)}
SHARE: Final = "share"
"""The suffix of figures that are a share of 1. Their bounds may be in percent."""


def factors(unit: str, name: str = "") -> dict[str, Fraction]:
    """Return the units that convert to a figure's unit, each with its factor. `name`: the figure's name."""
    if unit in _TIMES_S:
        return {symbol: size / _TIMES_S[unit] for symbol, size in _TIMES_S.items()}
    if unit == "Mbit/s":
        return dict(_RATES)
    if unit == "%":
        return {"%": Fraction(1)}
    if unit == "" and any(word.endswith(SHARE) for word in names.split(name)):
        return {"": Fraction(1), "%": Fraction(1, 100)}
    return {"": Fraction(1)} | ({unit: Fraction(1)} if unit else {})


def fitting(unit: str, name: str = "") -> str:
    """Return the allowed units as text."""
    fit = factors(unit, name)
    symbols = [symbol for symbol in fit if symbol]
    return ", ".join(symbols) + (", or none" if symbols and "" in fit else "") if symbols else "none"


def converted(number: Fraction, symbol: str, unit: str, name: str) -> Fraction | None:
    """Return a number converted to the figure's unit, or None if its unit does not convert."""
    bare_symbol = symbol.removesuffix("/s") if unit == "Mbit/s" else symbol
    alike = {candidate.lower(): factor for candidate, factor in factors(unit, name).items()}
    factor = alike.get(bare_symbol.replace("µ", "u").lower())
    if factor is None and not symbol and number == 0:
        return Fraction(0)
    return None if factor is None else number * factor


@dataclass(frozen=True)
class Bound:
    """A valid bound. `text`: as the user wrote it. `least`, `most`: the limits in the figure's `unit`, each with a flag
    that says whether the limit itself is allowed."""

    name: str
    text: str
    unit: str
    least: tuple[Fraction, bool] | None
    most: tuple[Fraction, bool] | None

    def holds(self, value: float | None) -> bool:
        """Return whether the value meets the bound. A missing or non-finite value never does."""
        if value is None or value != value or value in (float("inf"), float("-inf")):
            return False
        number = Fraction(repr(value))
        above = self.least is None or number > self.least[0] or (self.least[1] and number == self.least[0])
        below = self.most is None or number < self.most[0] or (self.most[1] and number == self.most[0])
        return above and below

    def __str__(self) -> str:
        return f"{self.name} {self.text}"


def parse(name: str, text: object) -> Bound:
    """Parse the bound of a figure. Raises `InputError` for an unknown name, for a text that is not a bound, and for a
    unit that does not convert to the figure's."""
    return of_unit(name, text, names.unit(name))


def of_unit(name: str, text: object, unit: str) -> Bound:
    """Parse the bound of a figure that no run has, with this unit."""
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
        raise InputError(name, text, "a range must go from the lower to the higher end; swap them")
    return Bound(name, f"{low.strip()}..{high.strip()}", unit, (least_limit, True), (most_limit, True))


def _limit(name: str, text: str, written: str, unit: str) -> Fraction:
    """Return a quantity as a number in the figure's unit."""
    match = _QUANTITY.fullmatch(written.strip())
    if not match:
        raise InputError(name, text, EXAMPLES)
    limit = converted(Fraction(match[1]), match[2], unit, name)
    if limit is None:
        problem = f"{match[2]!r} does not fit" if match[2] else "a unit is missing"
        figure_unit = f"the figure is in {unit}" if unit else "the figure has no unit"
        hint = closest(match[2], factors(unit))
        raise InputError(name, text, f"{problem}: {figure_unit}. {hint}Units: {fitting(unit, name)}")
    return limit


def read(text: str) -> Bound:
    """Parse a bound that includes its figure: "ping.icmp.p99 < 20ms". Raises `InputError`."""
    match = _NAMED.fullmatch(" ".join(text.split()))
    if not match:
        allowed = 'must be a figure and its bound, like "ping.icmp.p99 < 20ms" or "totals.fairness 0.9..1"'
        raise InputError("bound", text, allowed)
    return parse(match[1], match[2])


def read_all(bounds: Mapping[str, str] | Sequence[str]) -> list[Bound]:
    """Parse bounds: {figure: bound}, texts that include their figures, or one text. Raises `InputError`."""
    if isinstance(bounds, Mapping):
        return [parse(name, text) for name, text in bounds.items()]
    return [read(text) for text in ([bounds] if isinstance(bounds, str) else bounds)]
