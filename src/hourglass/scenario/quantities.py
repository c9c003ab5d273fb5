# SPDX-License-Identifier: Apache-2.0
"""Parse quantities as users write them ("100mbit", "10ms", "64KiB", "0.1%") to integers, exactly, and print them.

Rates are bit/s, times ns, sizes bytes, shares parts per billion. Rates use tc's suffixes with SI factors. Sizes
distinguish KB (1000) and KiB (1024). All arithmetic uses `Fraction`: a text that is not a whole number of the base unit
is refused, not rounded.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

NS_PER_S = 10**9
PPB_PER_PERCENT = 10**7
_TEXT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,12})?)([a-zA-Z%]{1,4})", re.ASCII)


@dataclass(frozen=True)
class QuantityKind:
    """One kind of quantity. `units`: suffix → base units, the largest first; `bare`: plain integers are base units.
    `called`: its name in the reference."""

    name: str
    base: str
    units: dict[str, int]
    example: str
    bare: bool = False
    called: str = ""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its text."""
        suffixes = "|".join(self.units)
        text = rf"^[0-9]{{1,20}}(\.[0-9]{{1,12}})?({suffixes})$"
        return {"type": "string", "pattern": text, "examples": [self.example.strip('"')]}


RATE = QuantityKind(
    "rate", "bit/s", {"tbit": 10**12, "gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}, '"100mbit"', True, "rate"
)
TIME = QuantityKind("time", "ns", {"s": NS_PER_S, "ms": 10**6, "us": 10**3, "ns": 1}, '"10ms"', called="time")
FINE_TIME = QuantityKind("time", "ps", {"ns": 1000, "ps": 1}, '"100ps"', called="time")
SIZE = QuantityKind(
    "size", "B", {"MiB": 2**20, "MB": 10**6, "KiB": 2**10, "KB": 10**3, "B": 1}, '"64KiB"', called="size"
)  # fmt: skip
SHARE = QuantityKind("share", "ppb", {"%": PPB_PER_PERCENT}, '"0.1%"', called="percentage")


@dataclass(frozen=True)
class Bounds:
    """The integers in [low, high] of a quantity's base unit, and 0 if `zero`."""

    quantity: QuantityKind
    low: int
    high: int
    zero: bool = False

    def allowed(self) -> str:
        """Return the allowed values in words: "a rate like "100mbit" (tbit, gbit, mbit, kbit, bit), from 1bit to
        1tbit"."""
        kind = self.quantity
        suffixes = "" if len(kind.units) == 1 else f" ({', '.join(kind.units)})"
        zero_or = "0 or " if self.zero and self.low > 0 else ""
        span = f"from {show(self.low, kind)} to {show(self.high, kind)}"
        return f"{zero_or}a {kind.name} like {kind.example}{suffixes}, {span}"

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the permitted values; the bounds of texts are left out."""
        integer = {"type": "integer", "minimum": 0} if self.quantity.bare else {"const": 0}
        zero = self.quantity.bare or self.zero or self.low == 0
        return {"anyOf": [self.quantity.schema(), integer]} if zero else self.quantity.schema()

    def parse(self, value: object) -> int:
        """Return the value in base units. Raises ValueError with the permitted values."""
        number = self._number(value)
        if number is None or number.denominator != 1:
            raise ValueError(f"must be {self.allowed()}")
        result = int(number)
        if not (self.low <= result <= self.high or (self.zero and result == 0)):
            raise ValueError(f"must be {self.allowed()}")
        return result

    def _number(self, value: object) -> Fraction | None:
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return Fraction(value) if self.quantity.bare or value == 0 else None
        match = _TEXT.fullmatch(value) if isinstance(value, str) else None
        factor = self.quantity.units.get(match[2]) if match else None
        return Fraction(match[1]) * factor if match and factor else None


def show(number: int, quantity: QuantityKind) -> str:
    """Return the number with the largest suffix that keeps it whole: 10000000 ns → "10ms". `parse` is the inverse."""
    if quantity is SHARE:
        return f"{_decimal(number, PPB_PER_PERCENT)}%"
    suffix = next((s for s, factor in quantity.units.items() if number and number % factor == 0), None)
    if suffix is None:
        return f"0{next(iter(quantity.units)) if quantity is TIME else list(quantity.units)[-1]}"
    return f"{number // quantity.units[suffix]}{suffix}"


def _decimal(number: int, per: int) -> str:
    """Return number / per as a decimal without trailing zeros; `per` is a power of ten."""
    integer, remainder = divmod(number, per)
    return f"{integer}.{remainder:0{len(str(per)) - 1}d}".rstrip("0").rstrip(".")


def parse_seconds(value: object, low: Fraction, high: Fraction) -> int | float:
    """Return a number of seconds, or a time with a suffix, as a number of seconds: an int when whole, else a float.

    Raises ValueError when it is not in [low, high] or not a whole number of ns.
    """
    allowed = f"a number of seconds, from {float(low):g} to {float(high):g}, in whole ns"
    number = _exact(value)
    if number is None or not low <= number <= high or (number * NS_PER_S).denominator != 1:
        raise ValueError(f"must be {allowed}")
    return int(number) if number.denominator == 1 else float(number)


def _exact(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return Fraction(repr(value)) if isfinite(value) else None
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    factor = TIME.units.get(match[2]) if match else None
    return Fraction(match[1]) * factor / NS_PER_S if match and factor else None


def seconds_ns(seconds: int | float) -> int:
    """Return seconds as checked by `parse_seconds`, in ns, exactly: 0.2 → 200000000."""
    return int(Fraction(repr(seconds)) * NS_PER_S)
