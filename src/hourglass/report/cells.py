# SPDX-License-Identifier: Apache-2.0
"""The comparison as cells of text: rounded as everywhere, with the exact value and how it differs."""

from dataclasses import dataclass

from hourglass.results.compare import Cell, Row
from hourglass.results.sections import shown

NOTHING = "\u2013"
"""What stands where there is no figure."""


@dataclass(frozen=True)
class Held:
    """A figure of one run held against the first's: its text, the value for sorting, how it differs."""

    text: str
    value: float | None
    change: str = ""
    significant: bool = False
    interval: str = ""


def held_against(rows: list[Row], column: int) -> list[Held]:
    """The figures of one run or group, one per row of the comparison."""
    return [_held(row.cells[column], row.unit) for row in rows]


def _held(cell: Cell, unit: str) -> Held:
    change = "" if cell.change_percent is None else f"{round(cell.change_percent, 1) + 0.0:+.1f} %"
    interval = ""
    if cell.interval is not None:
        low, high = cell.interval
        verdict = "significant" if cell.significant else "not significant"
        interval = f"{verdict}; 95 % interval of the difference: {low:+g} to {high:+g} {unit}".strip()
    return Held(shown(cell.value, "number", NOTHING), cell.value, change, cell.significant, interval)
