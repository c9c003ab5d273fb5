# SPDX-License-Identifier: Apache-2.0
"""Read `--over`: the keys of a scenario that `tune` and `search` vary, each with its values.

| word | values |
|---|---|
| `stack.cc=cubic,bbr` | a list; each value as in `--set` |
| `testbed.link.0.rate=1mbit..100mbit` | all values from a low to a high end, both included |
| `stack.qdisc,stack.tsq` | the defaults of known keys (`DEFAULTS`), also of a node or a device |

A range above 0 is traversed by factors, one from 0 by steps. Its values have three significant digits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10
from typing import Any

from hourglass.errors import InputError, closest
from hourglass.scenario.load import parse_override
from hourglass.scenario.quantities import RATE, SHARE, SIZE, TIME, QuantityKind, show

OPTION = "--over"
DIGITS = 3
"""The significant digits of a value in a range."""
DEFAULTS = {
    "stack.cc": "cubic,reno,bbr",
    "stack.qdisc": "pfifo_fast,fq,fq_codel,cake",
    "stack.tsq": "default,off,1ms,4ms",
    "stack.gso": "default,250us,1ms",
    "stack.pacing.ss": "120..400",
    "stack.pacing.ca": "100..200",
    "stack.sysctl.net.ipv4.tcp_ecn": "0,1",
    "stack.sysctl.net.ipv4.tcp_notsent_lowat": "16384,131072,4294967295",
    "stack.sysctl.net.ipv4.tcp_tso_rtt_log": "0,9",
    "stack.sysctl.net.ipv4.tcp_min_tso_segs": "1,2,8",
    "testbed.link.rate": "1mbit..1gbit",
    "testbed.link.delay": "100us..200ms",
    "testbed.link.jitter": "0ms..20ms",
    "testbed.link.loss": "0%..5%",
    "testbed.link.reorder": "0%..5%",
    "testbed.link.duplicate": "0%..5%",
    "testbed.shaper.rate": "1mbit..1gbit",
    "test.upload_streams": "1..16",
}
"""The values of a key without any; a node, a device, and the number of a table in a list are left out."""
_NODE = re.compile(r"(?<=^stack)\.(?!(?:cc|tsq|gso|pacing|qdisc|sysctl)\b)[^.]+(?:\.device\.[^.]+)?")
_ITEM = re.compile(r"\.\d+(?=\.)")
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,12})?"
_RANGE = re.compile(rf"({_NUMBER})([a-zA-Z%]*)\.\.({_NUMBER})([a-zA-Z%]*)", re.ASCII)
_KINDS = (RATE, TIME, SIZE, SHARE)


@dataclass(frozen=True)
class OverChoice:
    """A key with a list of values."""

    key: str
    values: tuple[Any, ...]

    def values_of(self, _most: int) -> tuple[Any, ...]:
        """Return all values."""
        return self.values


@dataclass(frozen=True)
class OverRange:
    """A key with all values from `low` to `high`, in base units of `kind`; None: numbers, integers if `is_integer`."""

    key: str
    low: Fraction
    high: Fraction
    kind: QuantityKind | None
    is_integer: bool

    def at(self, share: float) -> Any:
        """Return the value at a share of the range, from 0 to 1: by factors if the low end is above 0."""
        low, high = float(self.low), float(self.high)
        number = low * (high / low) ** share if low > 0 else low + (high - low) * share
        exact = self.low if share <= 0 else self.high if share >= 1 else _rounded(number)
        exact = min(max(exact, self.low), self.high)
        if self.kind is not None:
            return show(round(exact), self.kind)
        return round(exact) if self.is_integer else float(exact)

    def values_of(self, most: int) -> tuple[Any, ...]:
        """Return at most this many values, evenly spread over the range, with both ends."""
        return tuple(dict.fromkeys(self.at(number / (most - 1)) for number in range(most)))


OverKey = OverChoice | OverRange


def read_over(words: Sequence[str], option: str = OPTION) -> list[OverKey]:
    """Return the keys of all options of this name, in their order. Raises `InputError`."""
    keys: list[OverKey] = []
    for word in words:
        key, equals, values = word.partition("=")
        pairs = (
            [(key.strip(), values.strip())]
            if equals
            else [(name, default_values(option, name)) for name in _names(word)]
        )
        if "," in pairs[0][0]:
            raise InputError(option, word, "has keys with and without values; give each its own option")
        for name, text in pairs:
            if any(each.key == name for each in keys):
                raise InputError(option, word, f"{name} occurs twice")
            keys.append(_read(option, name, text))
    if not keys:
        raise InputError(option, "", "needs a key, like stack.qdisc or stack.cc=cubic,bbr")
    return keys


def _names(word: str) -> list[str]:
    return [name.strip() for name in word.split(",")]


def default_values(option: str, key: str) -> str:
    """Return the values of a known key as text. Raises `InputError`."""
    plain = _ITEM.sub("", _NODE.sub("", key))
    if plain not in DEFAULTS:
        keys = f"Known: {', '.join(DEFAULTS)}"
        raise InputError(option, key, f"needs values, like {key}=A,B or {key}=1..9. {closest(plain, DEFAULTS)}{keys}")
    return DEFAULTS[plain]


def _read(option: str, key: str, text: str) -> OverKey:
    word = f"{key}={text}"
    if match := _RANGE.fullmatch(text):
        return read_range(option, key, word, *match.groups())
    values = [parse_override(f"{key}={value}")[1] for value in split_values(text)]
    if not text or "" in values:
        raise InputError(option, word, "must be KEY=A,B,... or KEY=LOW..HIGH, like stack.cc=cubic,bbr")
    if any(value == other and type(value) is type(other) for at, value in enumerate(values) for other in values[:at]):
        raise InputError(option, word, "contains a value twice")
    return OverChoice(key, tuple(values))


def split_values(text: str) -> Iterator[str]:
    """Yield the parts between commas, except commas in brackets or quotes."""
    depth, quoted, part = 0, False, ""
    for character in text:
        quoted ^= character == '"'
        depth += 0 if quoted else (character in "{[") - (character in "}]")
        if character == "," and not depth and not quoted:
            yield part.strip()
            part = ""
        else:
            part += character
    yield part.strip()


def read_range(option: str, key: str, word: str, low: str, low_unit: str, high: str, high_unit: str) -> OverRange:
    """Return the range of a key, from its two numbers and units. Raises `InputError`."""
    unit = low_unit or high_unit
    kind = next((kind for kind in _KINDS if high_unit in kind.units), None)
    if unit and (kind is None or unit not in kind.units):
        units = ", ".join(unit for kind in _KINDS for unit in kind.units)
        raise InputError(option, word, f"both ends need units of one kind: {units}")
    ends = [Fraction(low) * (kind.units[unit] if kind else 1), Fraction(high) * (kind.units[high_unit] if kind else 1)]
    if ends[0] >= ends[1]:
        raise InputError(option, word, "must go from a lower to a higher end")
    is_integer = kind is not None or all("." not in end for end in (low, high))
    return OverRange(key, ends[0], ends[1], kind, is_integer)


def _rounded(number: float) -> Fraction:
    """Return a number with three significant digits, exactly."""
    if number <= 0:
        return Fraction(0)
    place = DIGITS - 1 - floor(log10(number))
    scale = Fraction(10) ** place
    return Fraction(round(Fraction(number) * scale)) / scale
