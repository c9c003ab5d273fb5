# SPDX-License-Identifier: Apache-2.0
"""Cells → words. A cell is judged by the mark that somebody else has set, and by what the kernel gave before.

| word | |
|---|---|
| passed | it keeps its mark |
| missed | it does not |
| shown | nobody has set a mark: the figure stands for itself |
| none | there is no figure, and the cell says why |

*Worse*, whatever its word: a mark was kept in the baseline and is missed; or there was a figure and is none; or the
figure, whose direction is known, is worse than the worst seed of the baseline. A miss of which no baseline knows
counts as worse too: it is new. What is as near to the baseline's seeds as they are to each other is never
worse; without a mark, nor is what is within 10 % of the worst seed, or within what is told of it (`GRAINS`).

Among a thousand cells, a few are beyond all that by chance. What is worse is therefore asked again with further seeds
(`doubted`), and is worse when the median of them all is.

These tolerances are ours. "At most what it does to itself" (Ware et al.) has none in the paper: with one run each the
rule would fail half of all equal pairs, so that it is missed beyond 10 %, the spread of the seeds, or a grain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high
from typing import Literal

from hourglass.results.stats import short
from hourglass.suites.file import SELF, Mark
from hourglass.suites.study import Cell, Line, Studied

Word = Literal["passed", "missed", "shown", "none"]
Baseline = Mapping[str, Mapping[str, Sequence[float | None]]]
"""By line and column the values of the seeds."""

SAME = 0.1
GRAINS = {"ms": 1.0, "s": 0.1, "Mbit/s": 0.1, "%": 0.1, "": 0.02, "segments": 1.0}
"""By unit what a figure can change by without a word: ping intervals, bins, chance."""


FURTHER = 4
"""So many seeds are asked besides where a cell is worse."""
FEW, CHANCE = 10, 0.1
"""Where more cells are worse, and a larger share of them, that is no chance, and nothing is asked again."""


@dataclass(frozen=True)
class Judged:
    """A cell with its word. `limit`: what it had to keep, in words; `worse`: why it counts as a
    regression."""

    line: Line
    cell: Cell
    word: Word
    mark: Mark | None = None
    limit: str = ""
    worse: str = ""

    @property
    def text(self) -> str:
        """The figure as it is told."""
        return "-" if self.cell.value is None else short(self.cell.value)


def judge(studied: Studied, baseline: Baseline | None) -> list[list[Judged]]:
    """A list of cells for each line, in the order of the columns."""
    return [[_judged(line, line.cells[cc], baseline) for cc in studied.ccs] for line in studied.lines]


def doubted(matrix: Sequence[Sequence[Judged]]) -> list[tuple[Line, str]]:
    """The cells, each its line and its column, that are to be asked again."""
    cells = [one for line in matrix for one in line if one.cell.runs]
    worse = [(one.line, one.cell.cc) for one in cells if one.worse]
    return worse if len(worse) <= max(FEW, CHANCE * len(cells)) else []


def _judged(line: Line, cell: Cell, baseline: Baseline | None) -> Judged:
    mark = next((one for one in line.row.marks if one.concerns(cell.cc, line.setting)), None)
    limit = _limit(line, mark)
    word = _word(line, cell, mark, cell.value)
    known = None if baseline is None else baseline.get(line.id, {}).get(cell.cc)
    return Judged(line, cell, word, mark, limit, _worse(line, cell, mark, word, known))


def _reference(line: Line) -> Cell | None:
    """The victim's cell: what it does to itself."""
    victim = str(line.setting[line.row.victim])
    return line.cells.get(victim) or line.beside.get(victim)


def _limit(line: Line, mark: Mark | None) -> str:
    if mark is None:
        return ""
    if mark.keep != SELF:
        return mark.keep
    own = _reference(line)
    told = "-" if own is None or own.value is None else short(own.value)
    return f"at most {told}, what {line.setting[line.row.victim]} does to itself"


def _word(line: Line, cell: Cell, mark: Mark | None, value: float | None) -> Word:
    """Of a value, be it the cell's or the baseline's."""
    if mark is None:
        return "shown" if value is not None else "none"
    if value is None:
        return "missed" if cell.runs and not cell.failed else "none"
    if mark.bound is not None:
        return "passed" if mark.bound.holds(value) else "missed"
    own = _reference(line)
    if own is None or own.value is None:
        return "shown"
    spread = max((max(one.known) - min(one.known) for one in (own, cell) if one.known), default=0.0)
    slack = max(SAME * own.value, spread, GRAINS.get(line.row.unit, 0.0))
    return "passed" if value <= own.value + slack else "missed"


def _worse(line: Line, cell: Cell, mark: Mark | None, word: Word, known: Sequence[float | None] | None) -> str:
    if not cell.runs:
        return ""
    if known is None:
        return "a miss that no baseline knows" if word == "missed" else ""
    before = sorted(one for one in known if one is not None)
    if cell.value is None:
        return f"none; {short(median_high(before))} before" if before else ""
    if not before:
        return ""
    beyond = max(before[0] - cell.value, cell.value - before[-1])
    if beyond <= before[-1] - before[0]:
        return ""
    if word == "missed" and _word(line, cell, mark, median(before)) == "passed":
        return f"missed; {short(median(before))} before"
    nearest = before[0] if cell.value < before[0] else before[-1]
    if beyond <= max(SAME * abs(nearest), GRAINS.get(line.row.unit, 0.0)):
        return ""
    better = "more" if cell.value > before[-1] else "less"
    return f"{short(nearest)} before" if line.row.better in {"more", "less"} - {better} else ""
