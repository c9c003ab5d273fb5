# SPDX-License-Identifier: Apache-2.0
"""Compare all figures of two columns of a setting, seed by seed: the figures that moved, and the first packet that
differs.

Runs are exact. So a setting that the difference between the columns does not affect has the same records, byte by byte.
Otherwise a figure has moved under two conditions. The 95 % interval of the difference of its means, bootstrapped over
seeds, excludes 0 (`results.groups`). And its change is printed as more than +0.0 %: seeds that agree to the last digit
have no spread at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hourglass.results.compare import ComparisonCell, compare
from hourglass.results.diff import PacketDifference, diff
from hourglass.results.groups import SeedGroup, compare_groups
from hourglass.results.recording import Recording

MIN_CHANGE_PERCENT = 0.05
"""A smaller change is printed as +0.0."""


@dataclass(frozen=True)
class FigureMove:
    """A figure of both columns: the values of the seeds, and the means. `change` and `interval` are in % of the
    reference."""

    label: str
    name: str
    unit: str
    reference: tuple[float | None, ...]
    values: tuple[float | None, ...]
    means: tuple[float | None, float | None]
    change: float | None
    interval: tuple[float, float] | None
    verdict: Literal["ok", "missed"]


@dataclass(frozen=True)
class ColumnMoves:
    """The pairs of runs with equal seeds, the number of those with the `same` records, and the figures if any pair
    differs. `first`: the first packet that differs, with the first such `seed`."""

    pairs: int
    same: int
    figures: tuple[FigureMove, ...] = ()
    seed: int | None = None
    first: PacketDifference | None = None

    @property
    def text(self) -> str:
        """The numbers of pairs with the same records, and the first packet that differs, as text."""
        if self.same == self.pairs:
            return "the same records"
        same = f"{self.same} of {self.pairs} seeds have the same records"
        return f"{same}; the first difference with seed {self.seed} {self.first.text}" if self.first else same


def moves(pairs: Sequence[tuple[Recording, Recording]]) -> ColumnMoves:
    """Compare runs of a column with those of the reference, which come first in each pair."""
    different = [pair for pair in pairs if pair[0].info.digest != pair[1].info.digest]
    same, number = len(pairs) - len(different), len(pairs)
    if not different:
        return ColumnMoves(number, same)
    runs = [run for side in zip(*pairs, strict=True) for run in side]
    single = compare(runs)
    sides = [SeedGroup("", list(range(start, start + number)), runs[start].test.name) for start in (0, number)]
    figures = []
    for row, of_sides in zip(single, compare_groups(single, sides), strict=True):
        values = [cell.value for cell in row.cells]
        first, second = of_sides.cells
        figures.append(
            FigureMove(
                row.figure, row.name or row.figure, row.unit, tuple(values[:number]), tuple(values[number:]),
                (first.value, second.value), second.change_percent, _percent(second, first.value),
                "missed" if has_moved(second) else "ok",
            )
        )  # fmt: skip
    difference = diff(*different[0])
    return ColumnMoves(number, same, tuple(figures), different[0][0].info.seed, difference.packet)


def has_moved(cell: ComparisonCell) -> bool:
    """Tell if the figure of the second column differs, and is printed with a difference."""
    return cell.significant and (cell.change_percent is None or abs(cell.change_percent) >= MIN_CHANGE_PERCENT)


def _percent(cell: ComparisonCell, base: float | None) -> tuple[float, float] | None:
    if cell.interval is None or not base:
        return None
    return 100 * cell.interval[0] / base, 100 * cell.interval[1] / base
