# SPDX-License-Identifier: Apache-2.0
"""The figures of a study: a line for each setting and figure, a cell for each column, a value for each seed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from hourglass.contract import names
from hourglass.contract.figures import figures
from hourglass.errors import HourglassError
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.stats import rounded
from hourglass.studies.axes import Assignment
from hourglass.studies.cells import GridCell
from hourglass.studies.columns import ColumnGrid
from hourglass.studies.file import EVERY, StudyFigure
from hourglass.studies.grid import SEED
from hourglass.studies.measures import MEASURES, MeasureContext
from hourglass.studies.moves import ColumnMoves, FigureMove, moves
from hourglass.studies.reader import StudyPart

OPEN_RUNS = 8
"""The number of recordings that stay open: of runs that others are compared with."""

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class FigureCell:
    """A figure of one column in one setting: a value for each seed. `why`: the reason for no value. `mean`: replaces
    the median."""

    column: str
    values: tuple[float | None, ...] = ()
    runs: tuple[str, ...] = ()
    why: str = ""
    mean: float | None = None

    @property
    def value(self) -> float | None:
        """The median of the seeds that have a value."""
        return self.mean if self.mean is not None else float(median(self.present)) if self.present else None

    @property
    def present(self) -> list[float]:
        """The values of the seeds that have one."""
        return [value for value in self.values if value is not None]

    @property
    def failed(self) -> bool:
        """Tell if its runs failed."""
        return bool(self.runs) and not self.values


class MovedFigure(StudyFigure):
    """A figure of "*". It may have no name in the summary of a run."""

    unit_text: str = ""

    @property
    def unit(self) -> str:
        """The unit of the figure."""
        return self.unit_text


RECORDS = MovedFigure.model_construct(name="records", label="seeds with the same records")
"""The first line of "*"."""


@dataclass(frozen=True)
class FigureLine:
    """A figure in one setting. `cells` are those of the columns; `references` those of columns that were run only for
    comparison. `moves`: the figures of "*" by column."""

    part: StudyPart
    figure: StudyFigure
    setting: Setting
    label: str
    cells: Mapping[str, FigureCell]
    references: Mapping[str, FigureCell] = field(default_factory=dict)
    moves: Mapping[str, FigureMove] = field(default_factory=dict)

    @property
    def is_compared(self) -> bool:
        """Tell if the reference judges the figure."""
        return bool(self.moves or self.figure.tolerance or self.figure is RECORDS)

    @property
    def id(self) -> str:
        """Return the name of the line in baselines."""
        parameters = ",".join(f"{key}={value}" for key, value in self.figure.parameters.items())
        figure = self.figure.name + (f"({parameters})" if parameters else "")
        return "/".join(filter(None, (self.part.id, figure, self.label)))

    @property
    def title(self) -> str:
        """Return the label of the figure with its unit."""
        return ", ".join(filter(None, (self.figure.title, self.figure.unit)))


class PartRuns:
    """The runs of a part by setting, column and seed. `folder`: of the runs of all parts; `failed`: keys of runs that
    failed."""

    def __init__(
        self, part: StudyPart, columns: Sequence[str], grid: ColumnGrid, listed: Iterable[GridCell], folder: Path
    ) -> None:
        self.part, self.columns, self.grid, self.folder = part, columns, grid, folder
        self.failed: Collection[str] = ()
        self.planned: list[GridCell] = []
        self.runs: dict[tuple[str, str], dict[Any, str]] = {}
        self.settings: dict[str, Setting] = {}
        self.values: dict[tuple[int, str], float | None] = {}
        self.moves: dict[tuple[str, ...], ColumnMoves] = {}
        self.add(listed)

    def add(self, listed: Iterable[GridCell]) -> None:
        """Add runs."""
        for run in listed:
            self.planned.append(run)
            setting = self.grid.setting(run.assignment)
            label = self.grid.label(setting)
            self.settings.setdefault(label, setting)
            self.runs.setdefault((label, self.grid.column(run.assignment)), {})[run.assignment.get(SEED)] = run.key

    @property
    def seeds(self) -> set[int]:
        """The seeds of all runs."""
        return {seed for runs in self.runs.values() for seed in runs if seed is not None}

    def has_setting(self, cell: Assignment, setting: Setting) -> bool:
        """Tell if a cell of the grid is in the setting, as far as both parts have its axes."""
        return _matches(setting, self.grid.setting(cell))

    def same_setting(self, setting: Setting, column: str, seed: Any) -> str | None:
        """Return the run of a column in the setting that agrees in the axes of both parts; None if there is none."""
        for label, candidate in self.settings.items():
            if _matches(setting, candidate):
                key = self.runs.get((label, column), {}).get(seed)
                return None if key in self.failed else key
        return None

    def open(self, key: str) -> Recording:
        """Open a run."""
        return _opened(self.folder / key)

    def value(
        self, figure: StudyFigure, parts: Mapping[str, "PartRuns"], setting: Setting, column: str, seed: Any, key: str
    ) -> float | None:
        """Return a figure of a run; it is computed once."""
        index = self.part.figures.index(figure), key
        if index not in self.values:
            value = _value(figure, self, parts, setting, column, seed, key)
            self.values[index] = None if value is None else rounded(value)
        return self.values[index]

    def complete(self, label: str, column: str) -> dict[Any, str]:
        """Return the complete runs of a column in a setting by their seeds."""
        return {seed: key for seed, key in self.runs.get((label, column), {}).items() if key not in self.failed}

    def moves_of(self, label: str, column: str, reference: str) -> ColumnMoves:
        """Return a column compared with the reference; it is computed once."""
        first, second = self.complete(label, reference), self.complete(label, column)
        seeds = [seed for seed in first if seed in second]
        keys = (*(first[seed] for seed in seeds), *(second[seed] for seed in seeds))
        if keys not in self.moves:
            self.moves[keys] = moves(
                [(open_run(self.folder / first[seed]), open_run(self.folder / second[seed])) for seed in seeds]
            )
        return self.moves[keys]

    def _every(self, label: str, setting: Setting, columns: Sequence[str], reference: str) -> Iterator[FigureLine]:
        """Yield the lines of "*": the number of seeds with the same records as the reference, then all figures of the
        columns whose records differ."""
        runs = {column: tuple(self.runs.get((label, column), {}).values()) for column in columns}
        done = {column: tuple(self.complete(label, column).values()) for column in columns}
        compared = {
            column: self.moves_of(label, column, reference)
            for column in columns if column != reference and done[column] and done[reference]
        }  # fmt: skip
        records = {column: FigureCell(column, runs=runs[column], why="its run failed") for column in columns}
        records |= {
            column: FigureCell(column, (float(result.same),), done[column], result.text)
            for column, result in compared.items()
        }
        if done[reference]:
            records[reference] = FigureCell(reference, (float(len(done[reference])),), done[reference])
        yield FigureLine(self.part, RECORDS, setting, label, records)
        by_label: dict[str, dict[str, FigureMove]] = {}
        for column, result in compared.items():
            for move in result.figures:
                by_label.setdefault(move.label, {})[column] = move
        for title, of_columns in by_label.items():
            first = next(iter(of_columns.values()))
            figure = MovedFigure.model_construct(name=first.name, label=title, unit_text=first.unit)
            cells = {column: FigureCell(column, why="the same records") for column in columns}
            cells[reference] = FigureCell(reference, first.reference, done[reference], mean=first.means[0])
            cells |= {
                column: FigureCell(column, move.values, done[column], mean=move.means[1])
                for column, move in of_columns.items()
            }
            yield FigureLine(self.part, figure, setting, label, cells, moves=of_columns)

    def lines(
        self, columns: Sequence[str], parts: Mapping[str, "PartRuns"], reference: str = ""
    ) -> Iterator[FigureLine]:
        """Yield the lines of the part's settings, with a cell for each column."""
        for label, setting in self.settings.items():
            cells_by_column: dict[str, list[FigureCell]] = {}
            for column in dict.fromkeys(column for labelled, column in self.runs if labelled == label):
                cells_by_column[column] = list(self._cells(parts, label, setting, column))
            for number, figure in enumerate(self.part.figures):
                if figure.name == EVERY:
                    yield from self._every(label, setting, columns, reference)
                    continue
                computed = {column: listed[number] for column, listed in cells_by_column.items()}
                cells = {
                    column: computed.get(column) or FigureCell(column, why=self.reason(column)) for column in columns
                }
                if any(cell.runs for cell in cells.values()):
                    other_cells = {column: cell for column, cell in computed.items() if column not in cells}
                    yield FigureLine(self.part, figure, setting, label, cells, other_cells)

    def _cells(
        self, parts: Mapping[str, "PartRuns"], label: str, setting: Setting, column: str
    ) -> Iterator[FigureCell]:
        """Yield a column's cell of each figure."""
        runs, complete = self.runs[label, column], self.complete(label, column)
        for figure in self.part.figures:
            if not complete or figure.name == EVERY:
                yield FigureCell(column, runs=tuple(runs.values()), why="its run failed")
                continue
            values = [self.value(figure, parts, setting, column, seed, key) for seed, key in complete.items()]
            why = "" if any(value is not None for value in values) else "the run does not show it"
            yield FigureCell(column, tuple(values), tuple(complete.values()), why)

    def reason(self, column: str) -> str:
        """Return the reason why a column has no runs."""
        table = self.part.table
        if column in table.without:
            return table.without[column]
        if table.columns and column not in table.columns:
            return f"this part is about {', '.join(table.columns)}"
        return "not supported by this kernel"


def _matches(setting: Setting, candidate: Setting) -> bool:
    return all(setting.get(key, value) == value for key, value in candidate.items())


@lru_cache(maxsize=OPEN_RUNS)
def _opened(path: Path) -> Recording:
    return open_run(path)


def _value(
    figure: StudyFigure,
    runs: PartRuns,
    parts: Mapping[str, PartRuns],
    setting: Setting,
    column: str,
    seed: Any,
    key: str,
) -> float | None:
    """Return a figure of one run; None if the run lacks it."""
    run = runs.open(key)
    if figure.name not in MEASURES:
        matching = names.matching(figure.name, list(figures(run.summary)))
        return None if len(matching) != 1 or matching[0].value is None else float(matching[0].value)
    alone = None
    if figure.alone:
        if (part := parts.get(figure.alone)) is None:
            return None
        victim = setting[figure.victim] if figure.victim else column
        if (key_alone := part.same_setting(setting, victim, seed)) is None:
            return None
        alone = part.open(key_alone)
    context = MeasureContext(run, figure.parameters, alone)
    if not context.in_load:
        return None
    try:
        return MEASURES[figure.name].of(context)
    except HourglassError:  # a table that this run lacks
        return None
