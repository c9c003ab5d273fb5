# SPDX-License-Identifier: Apache-2.0
"""The comparison as cells of text: the rounded figure, its exact value and its difference."""

from dataclasses import dataclass

from hourglass.results.compare import ComparisonCell, ComparisonRow
from hourglass.results.sections import value_text

NO_VALUE = "\u2013"
"""The text of a missing figure."""


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a run compared with the first run's: its text, the value for sorting, the change."""

    text: str
    value: float | None
    change: str = ""
    significant: bool = False
    interval: str = ""


def compared_figures(rows: list[ComparisonRow], column: int) -> list[ComparedFigure]:
    """Return the figures of a run or group, one per row of the comparison."""
    return [_compared_figure(row.cells[column], row.unit) for row in rows]


def _compared_figure(cell: ComparisonCell, unit: str) -> ComparedFigure:
    change = "" if cell.change_percent is None else f"{round(cell.change_percent, 1) + 0.0:+.1f} %"
    interval = ""
    if cell.interval is not None:
        low, high = cell.interval
        verdict = "significant" if cell.significant else "not significant"
        interval = f"{verdict}; 95 % interval of the difference: {low:+g} to {high:+g} {unit}".strip()
    return ComparedFigure(value_text(cell.value, "number", NO_VALUE), cell.value, change, cell.significant, interval)
