# SPDX-License-Identifier: Apache-2.0
"""Judge the cells of a study by their criteria, by the reference and by a baseline.

| verdict | meaning |
|---|---|
| `ok` | the figure meets its criterion, or differs from the reference by no more than its tolerance or its seeds |
| `missed` | it does not |
| `undecided` | the interval of its difference from the reference is on both sides of the tolerance |
| `failed` | its runs failed |
| `skipped` | there is no run, or the run does not show the figure; the cell says why |
| `regressed` | it is worse than the baseline |

A cell without a criterion or a tolerance has no verdict: the figure is reported.

*With a tolerance*, the median of a column's seeds counts. Its interval (`results.intervals.order_interval`) is between
two of its runs in order, since in real time other work on the machine disturbs runs. The verdict follows from the whole
interval, in % of the reference's median. `moves.py` judges the figures of "*".

*Regressed*: the criterion was met in the baseline and is missed; or the baseline has a figure and the study has none. A
figure with a known direction also regressed if it is worse than the worst seed of the baseline. A miss that the
baseline contains is `missed` and does not count (`CellVerdict.counts`). A miss in a line that the baseline lacks
counts. A value within the baseline's spread is never a regression. Without a criterion, neither is a value within 10 %
of the worst seed, or within `GRAINS`.

Among a thousand cells, a few are beyond all these limits by chance. `suspects` are therefore rerun with further seeds,
in all columns of their settings. They are regressions only if the median of all seeds still is.

A column that the baseline lacks cannot regress: its misses do not count. Without a baseline every miss counts.

These tolerances are Hourglass's. "At most the harm to itself" (Ware et al.) has no tolerance in the paper. With one run
each, half of all equal pairs would miss it. The tolerance is the largest of 10 %, the spread of the victim's seeds, and
a grain. It is the same for all columns of a line.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high
from typing import Literal

import polars as pl

from hourglass.results.intervals import order_interval
from hourglass.results.stats import short
from hourglass.studies.file import SELF, Criterion
from hourglass.studies.lines import RECORDS, FigureCell, FigureLine

VerdictWord = Literal["ok", "missed", "undecided", "failed", "skipped", "regressed", ""]
Baseline = Mapping[str, Mapping[str, Sequence[float | None]]]
"""By line and column the values of the seeds."""

NEAR = 0.1
GRAINS = {"ms": 1.0, "s": 0.1, "Mbit/s": 0.1, "%": 0.1, "": 0.02, "segments": 1.0}
"""By unit the change that is not a regression: ping intervals, bins, chance."""
FURTHER_SEEDS = 4
"""The number of further seeds for suspected regressions."""
FEW, CHANCE = 10, 0.1
"""Beyond both this number and this share of the cells, chance is no explanation, and nothing is rerun."""

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class CellVerdict:
    """A cell with its verdict. `limit`: the bound as text; `reason`: the reason of a regression, or why there is no
    figure; `counts`: it decides the exit status. `gap` and `interval` are in % of the reference."""

    line: FigureLine
    cell: FigureCell
    verdict: VerdictWord
    criterion: Criterion | None = None
    limit: str = ""
    reason: str = ""
    counts: bool = False
    gap: float | None = None
    interval: Interval = None

    @property
    def text(self) -> str:
        """The figure as text."""
        if self.cell.value is None:
            return "-"
        return f"{self.cell.value:g}" if self.line.figure is RECORDS else short(self.cell.value)


def as_table(verdicts: Iterable[CellVerdict]) -> pl.DataFrame:
    """Return a row for each verdict. `value`: the median of the seeds."""
    rows = [
        (each.line.part.id, each.line.label, each.line.figure.name, each.line.figure.unit, each.cell.column,
         each.cell.value, each.verdict, each.reason)
        for each in verdicts
    ]  # fmt: skip
    names = ("part", "setting", "figure", "unit", "column", "value", "verdict", "reason")
    return pl.DataFrame(rows, {name: pl.Float64 if name == "value" else pl.String for name in names}, orient="row")


Matrix = list[list[CellVerdict]]
"""The verdicts of each line, in the order of the columns."""


def judge(
    lines: Sequence[FigureLine], columns: Sequence[str], axis: str, reference: str, baseline: Baseline | None
) -> Matrix:
    """Return the verdicts of all cells."""
    of_baseline = None if baseline is None else {column for cells in baseline.values() for column in cells}
    return [
        [
            _compared(line, line.cells[column], reference)
            if line.is_compared
            else _judged(line, line.cells[column], axis, baseline, of_baseline)
            for column in columns
        ]
        for line in lines
    ]


def suspects(matrix: Matrix) -> list[tuple[FigureLine, str]]:
    """Return the regressed cells, each its line and its column, whose settings need further seeds."""
    cells = [verdict for line in matrix for verdict in line if verdict.cell.runs and not verdict.line.is_compared]
    suspected = [(verdict.line, verdict.cell.column) for verdict in cells if verdict.counts]
    return suspected if len(suspected) <= max(FEW, CHANCE * len(cells)) else []


def _compared(line: FigureLine, cell: FigureCell, reference: str) -> CellVerdict:
    """Return the verdict on a cell by the reference."""
    if not cell.runs or cell.failed:
        return CellVerdict(line, cell, "failed" if cell.failed else "skipped", reason=cell.why)
    if cell.column == reference:
        return CellVerdict(line, cell, "")
    if (move := line.moves.get(cell.column)) is not None:
        limit, missed = f"as {reference}, within the seeds", move.verdict == "missed"
        return CellVerdict(line, cell, move.verdict, None, limit, "", missed, move.change, move.interval)
    if line.figure is RECORDS:
        same = cell.value == line.cells[reference].value
        return CellVerdict(line, cell, "ok" if same else "", None, f"as {reference}", cell.why)
    base, allowed = line.cells[reference].value, line.figure.check_tolerance()
    limit = f"within {allowed:g} % of {reference}"
    if cell.value is None or not base:
        why = cell.why or f"{reference} has {'no such figure' if base is None else '0'}"
        return CellVerdict(line, cell, "skipped", None, limit, why)
    bounds = order_interval(cell.present)
    interval = None if bounds is None else (100 * (bounds[0] - base) / base, 100 * (bounds[1] - base) / base)
    word = of_interval(interval, allowed)
    gap = 100 * (cell.value - base) / base
    return CellVerdict(line, cell, word, None, limit, "", word == "missed", gap, interval)


def of_interval(interval: Interval, allowed: float) -> VerdictWord:
    """Return the verdict on an interval of the difference, in %."""
    if interval is None:
        return "undecided"
    low, high = interval
    if -allowed <= low and high <= allowed:
        return "ok"
    return "missed" if low > allowed or high < -allowed else "undecided"


def _judged(
    line: FigureLine,
    cell: FigureCell,
    axis: str,
    baseline: Baseline | None,
    of_baseline: set[str] | None,
) -> CellVerdict:
    setting = {**line.setting, axis: cell.column}
    criterion = next((candidate for candidate in line.figure.criteria if candidate.applies(setting)), None)
    verdict = _verdict(line, cell, criterion, cell.value)
    limit = _limit(line, criterion)
    if not cell.runs or verdict == "failed":
        return CellVerdict(line, cell, verdict, criterion, limit, cell.why)
    before = None if baseline is None else baseline.get(line.id, {}).get(cell.column)
    if before is None:
        new = verdict == "missed" and (of_baseline is None or cell.column in of_baseline)
        why = "a miss that the baseline lacks" if new and of_baseline is not None else cell.why
        return CellVerdict(line, cell, verdict, criterion, limit, why, new)
    if regression := _regression(line, cell, criterion, verdict, before):
        return CellVerdict(line, cell, "regressed", criterion, limit, regression, True)
    return CellVerdict(line, cell, verdict, criterion, limit, cell.why)


def _verdict(line: FigureLine, cell: FigureCell, criterion: Criterion | None, value: float | None) -> VerdictWord:
    """Return the verdict on a value, the cell's or the baseline's."""
    if value is None:
        return "failed" if cell.failed else "missed" if criterion is not None and cell.runs else "skipped"
    if criterion is None:
        return ""
    if (bound := line.figure.bound_of(criterion)) is not None:
        return "ok" if bound.holds(value) else "missed"
    victim = _victim(line)
    if victim is None or victim.value is None:
        return ""
    return "ok" if value <= victim.value + _allowance(line, victim) else "missed"


def _victim(line: FigureLine) -> FigureCell | None:
    """Return the victim's cell: its harm to itself."""
    column = str(line.setting[line.figure.victim])
    return line.cells.get(column) or line.references.get(column)


def _limit(line: FigureLine, criterion: Criterion | None) -> str:
    if criterion is None:
        return ""
    if criterion.bound != SELF:
        return str(criterion.bound)
    name, victim = line.setting[line.figure.victim], _victim(line)
    if victim is None or victim.value is None:
        return f"at most -, the harm of {name} to itself"
    return f"at most {short(victim.value)}, the harm of {name} to itself, plus {short(_allowance(line, victim))}"


def _allowance(line: FigureLine, victim: FigureCell) -> float:
    """Return the allowed excess over the victim's figure, in the figure's unit."""
    assert victim.value is not None, "a victim without a figure"
    return max(NEAR * victim.value, max(victim.present) - min(victim.present), GRAINS.get(line.figure.unit, 0.0))


def _regression(
    line: FigureLine,
    cell: FigureCell,
    criterion: Criterion | None,
    verdict: VerdictWord,
    before: Sequence[float | None],
) -> str:
    """Return the reason why a cell is worse than the baseline; empty if it is not."""
    earlier = sorted(value for value in before if value is not None)
    if cell.value is None:
        return f"none; {short(median_high(earlier))} before" if earlier else ""
    if not earlier:
        return ""
    beyond = max(earlier[0] - cell.value, cell.value - earlier[-1])
    if beyond <= earlier[-1] - earlier[0]:
        return ""
    if verdict == "missed" and _verdict(line, cell, criterion, median(earlier)) == "ok":
        return f"missed; {short(median(earlier))} before"
    nearest = earlier[0] if cell.value < earlier[0] else earlier[-1]
    if beyond <= max(NEAR * abs(nearest), GRAINS.get(line.figure.unit, 0.0)):
        return ""
    better = "more" if cell.value > earlier[-1] else "less"
    return f"{short(nearest)} before" if line.figure.direction in {"more", "less"} - {better} else ""
