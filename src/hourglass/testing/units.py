# SPDX-License-Identifier: Apache-2.0
"""Quantities for comparisons with figures: `20 * ms`, `90 * Mbit`, `5 * percent`. The units are those of bounds."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Quantity:
    """A number and its unit, as bounds write it."""

    number: float
    unit: str

    def __str__(self) -> str:
        return f"{self.number:.6g} {self.unit}".strip()

    __repr__ = __str__

    def __mul__(self, times: float) -> "Quantity":
        return Quantity(self.number * times, self.unit)

    __rmul__ = __mul__

    def __truediv__(self, by: float) -> "Quantity":
        return Quantity(self.number / by, self.unit)

    def exactly(self, unit: str, name: str) -> Fraction | None:
        """Return the number in the unit of a figure of that name; None if it does not fit."""
        from hourglass.contract.bounds import converted

        return converted(Fraction(repr(self.number)), self.unit, unit, name)


ns, us, ms, s = (Quantity(1, unit) for unit in ("ns", "us", "ms", "s"))
kbit, Mbit, Gbit = (Quantity(1, unit) for unit in ("kbit", "Mbit", "Gbit"))
percent = Quantity(1, "%")
