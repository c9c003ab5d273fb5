# SPDX-License-Identifier: Apache-2.0
"""Run a study: plan its parts, make the missing runs, judge the figures, and rerun suspected regressions."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import count, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from hourglass import files
from hourglass.contract.kernels import DEFAULT, nearest
from hourglass.contract.run_json import Kernel
from hourglass.engine import engines
from hourglass.errors import InputError, closest
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.run_files import RUNS_FOLDER, TABLE_FILE
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.scenario.blame import several
from hourglass.scenario.source_files import UserText
from hourglass.studies import baseline as baselines
from hourglass.studies import table
from hourglass.studies.axes import Assignment
from hourglass.studies.causes import causes_of
from hourglass.studies.cells import GridCell, is_guest, scenarios
from hourglass.studies.columns import ANY_COLUMN, ColumnGrid, named
from hourglass.studies.grid import ENGINE, SEED, Grid, text
from hourglass.studies.lines import FigureLine, PartRuns
from hourglass.studies.reader import Study, StudyPart, read, with_settings
from hourglass.studies.runs import SilentStudy, StudyProgress, make, planned, write_table
from hourglass.studies.store import KEEPS, Keep, Store
from hourglass.studies.verdicts import FURTHER_SEEDS, Baseline, CellVerdict, Matrix, as_table, judge, suspects

STUDIES = Path("studies")
"""The default folder of studies. They share the runs in it."""


@dataclass(frozen=True)
class RunFailure:
    """A cell whose run failed: its name, the reason, its log, and the error's code."""

    cell: str
    reason: str
    log: Path
    code: str = ""


@dataclass(frozen=True)
class StudyOptions:
    """The options of a study. `columns`: replace the file's; `sources`: by column a file or folder that stands for it.
    `seeds`: replace the file's. `quick`: one seed and fewer settings. `force`: make complete runs again."""

    columns: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    kernel: str | None = None
    engine: str = engines.DEFAULT
    quick: bool = False
    seeds: tuple[int, ...] = ()
    force: bool = False


@dataclass(frozen=True, repr=False)
class StudyResult:
    """A study with its runs and verdicts. `skipped`: by part the reason why it was not run. `completed`, `failed`,
    `cached`: the numbers of new, failed and reused runs of this call. `repeated`: the further seeds of suspected
    regressions. `baseline`: the name of its file, empty without one."""

    study: Study
    options: StudyOptions
    out: Path
    runs: Path
    parts: Mapping[str, PartRuns]
    skipped: Mapping[str, str]
    failures: list[RunFailure]
    matrix: Matrix
    completed: int
    failed: int
    cached: int
    repeated: tuple[int, ...] = ()
    baseline: str = ""

    @property
    def made(self) -> int:
        """Return `completed`, which has this name up to 0.2."""
        return self.completed

    @property
    def there(self) -> int:
        """Return `cached`, which has this name up to 0.2."""
        return self.cached

    @property
    def kernel(self) -> str:
        """The kernel of the runs; that of the first if they differ."""
        return self.cells[0].kernel if self.cells else self.options.kernel or DEFAULT

    @property
    def columns(self) -> tuple[str, ...]:
        """The values of the compared axis."""
        return self.options.columns or self.study.columns

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of the first complete run of each column, of a study with a reference."""
        if not self.study.reference:
            return {}
        kernels: dict[str, Kernel] = {}
        for part in self.parts.values():
            for (_, column), runs in part.runs.items():
                complete = (key for key in runs.values() if key not in part.failed)
                if column not in kernels and (key := next(complete, None)) is not None:
                    kernels[column] = part.open(key).info.kernel
        return kernels

    @cached_property
    def causes(self) -> list[tuple[FigureLine, str, list[str]]]:
        """The likely causes of misses by a tolerance: a line of the setting, its column, the causes."""
        listed = []
        for part in self.parts.values():
            lines = [line for line in self.matrix if line[0].line.part is part.part]
            for label in dict.fromkeys(line[0].line.label for line in lines):
                for number, column in enumerate(self.columns):
                    verdicts = [line[number] for line in lines if line[0].line.label == label]
                    if column != self.study.reference and (names := causes_of(part, verdicts, self.study.reference)):
                        listed.append((verdicts[0].line, column, names))
        return listed

    @property
    def lines(self) -> list[FigureLine]:
        """The figures by setting."""
        return [line[0].line for line in self.matrix]

    @property
    def verdicts(self) -> list[CellVerdict]:
        """The verdicts of all cells that were run."""
        return [verdict for line in self.matrix for verdict in line if verdict.cell.runs]

    @property
    def missed(self) -> bool:
        """Tell if a verdict decides the exit status."""
        return any(verdict.counts for verdict in self.verdicts)

    @property
    def cells(self) -> list[GridCell]:
        """The runs of all parts."""
        return [cell for part in self.parts.values() for cell in part.planned]

    @property
    def grid(self) -> Grid:
        """The grid of a study without parts."""
        (part,) = self.parts.values()
        return part.grid.grid

    @property
    def path(self) -> Path:
        """The Parquet file of a study without parts."""
        return self.out / TABLE_FILE

    @cached_property
    def table(self) -> pl.DataFrame:
        """The table of a study without parts: a row for each cell."""
        return table.read(self.path)

    @cached_property
    def verdict_table(self) -> pl.DataFrame:
        """The verdicts as a table: a row for each figure, setting and column that was run."""
        return as_table(self.verdicts)

    def run(self, **axes: Any) -> Recording:
        """Return the run of the one cell with these values; write a key's dots as two underscores: stack__tsq="off".

        Raises `InputError` if no cell has them, or several.
        """
        values, cells = self._matching(axes)
        if len({cell.key for cell in cells}) == 1:
            return open_run(self.runs / cells[0].key)
        rest = [key for key in self.grid.keys if key not in values]
        raise InputError(
            "run",
            values,
            f"{len(cells)} cells have these values; add {several(rest)}, or take all with .matching(…)"
            if cells
            else f"no such cell in this study. Its axes: {'; '.join(map(self._axis, self.grid.keys))}",
        )

    def matching(self, **axes: Any) -> list[Recording]:
        """Return the runs of all cells that have these values, in the table's order, without those that failed."""
        failed = {failure.cell for failure in self.failures}
        keys = dict.fromkeys(cell.key for cell in self._matching(axes)[1] if cell.name not in failed)
        return [open_run(self.runs / key) for key in keys]

    def _matching(self, axes: Mapping[str, Any]) -> tuple[dict[str, Any], list[GridCell]]:
        values = {key.replace("__", "."): value for key, value in axes.items()}
        for key in values:
            if key not in self.grid.keys:
                keys = self.grid.keys
                raise InputError("run", key, f"is not an axis. {closest(key, keys)}Axes: {several(keys)}")
        return values, [
            cell for cell in self.cells if all(cell.assignment[key] == value for key, value in values.items())
        ]

    def _axis(self, key: str) -> str:
        return f"{key} = {several(dict.fromkeys(text(cell.assignment[key]) for cell in self.cells))}"

    def __repr__(self) -> str:
        return f"<study {self.study.name}: {self.counts}, in {self.out}>"

    def _repr_html_(self) -> str:
        tables = [*([self.table] if self.path.is_file() else []), self.verdict_table]
        return f"<p>{escape(repr(self))}</p>{''.join(each._repr_html_() for each in tables if not each.is_empty())}"

    @property
    def counts(self) -> str:
        """The runs as text: "2 made, 1 failed, 4 cached"."""
        failed = f"{self.failed} failed, " if self.failed else ""
        return f"{self.completed} made, {failed}{self.cached} cached"


def study(
    source: str | Path | Mapping[str, Any] | Study,
    out: Path | None = None,
    *,
    columns: Sequence[str] = (),
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    kernel: str | None = None,
    engine: str = engines.DEFAULT,
    quick: bool = False,
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    dask: str | None = None,
    keep: Keep = "records",
    baseline: Path | None = None,
    update_baseline: bool = False,
    runs: Path | None = None,
    force: bool = False,
    progress: StudyProgress | None = None,
) -> StudyResult:
    """Make the missing runs of a study (a built-in's name, a file, a table of the same keys) and judge its figures.

    `out`: the folder; default: `studies/NAME`, with the runs of all studies in `studies/runs`. `columns`: replace the
    values of the compared axis; a file or folder has a column of its name. `overrides`: keys of all scenarios, as those
    of `run`. `kernel` replaces the kernel of all runs; `seeds` replace the file's; `quick`: one seed and fewer
    settings. `jobs`: local processes, default one per CPU, and one where time is real. `dask`: the address of a cluster
    that makes the runs instead. `keep`: "records" or "summary". `baseline`: its file, default that of the kernel next
    to the study's file; `update_baseline` writes it. `runs`: a folder of runs that studies share. `force`: make
    complete runs again.

    Raises `InputError` before the first run if any run's scenario is wrong. Runs that fail do not raise:
    `StudyResult.failures`.
    """
    if keep not in KEEPS:
        raise InputError("keep", keep, f"must be one of {', '.join(KEEPS)}")
    engines.get(engine, kernel)
    checked = with_settings(read(source), overrides)
    if keep == "summary" and checked.reference:
        raise InputError("keep", keep, "must be records: a comparison with a reference needs them")
    names, sources = named(columns, checked.axis)
    if names and checked.reference and checked.reference not in names:
        raise InputError("--columns", ",".join(names), f"must contain the reference, {checked.reference}")
    if baseline is not None and baselines.read(baseline, checked.name) is None and not update_baseline:
        raise InputError("--baseline", str(baseline), "no such file; --update-baseline writes it")
    if update_baseline and not seeds:
        seeds = baselines.SEEDS
    options = StudyOptions(tuple(dict.fromkeys(names)), sources, kernel, engine, quick, tuple(seeds), force)
    shared = STUDIES / RUNS_FOLDER if out is None else None
    planning = StudyRuns(checked, out or STUDIES / checked.name, options, keep=keep, runs=runs or shared,
                         jobs=jobs, dask=dask, progress=progress)  # fmt: skip
    path = baseline or checked.baselines / f"{checked.name}-{planning.kernel}.json"
    result = planning.make(baselines.read(path, checked.name))
    if update_baseline:
        baselines.write(path, checked.name, result.kernel, result.lines, baselines.read(path, checked.name))
    while planning.add_round(result.matrix):
        result = planning.make(baselines.read(path, checked.name))
    before = baselines.read(path, checked.name)
    if update_baseline:
        result = planning.make(before)
    elif further := suspects(result.matrix):
        planning.add_seeds(further, FURTHER_SEEDS)
        result = planning.make(before)
    return replace(result, baseline=path.name if before is not None else "")


class StudyRuns:
    """The planned runs of a study. Raises `InputError` for a wrong scenario; a part or column that the kernel does not
    support is skipped."""

    def __init__(
        self,
        study: Study,
        out: Path,
        options: StudyOptions,
        *,
        keep: Keep = "records",
        runs: Path | None = None,
        jobs: int | None = None,
        dask: str | None = None,
        progress: StudyProgress | None = None,
    ) -> None:
        if jobs is not None and jobs < 1:
            raise InputError("jobs", jobs, "must be at least 1")
        self.study, self.options, self.jobs, self.dask = study, options, jobs, dask
        self.paths = {
            column: UserText(f"{Path(word).absolute()}{word[len(word.rstrip('/')) :]}")
            for column, word in options.sources.items()
        }
        self.store, self.progress = Store(out, keep, runs), progress or SilentStudy()
        self.columns = options.columns or study.columns
        self.skipped = {part.id: part.table.not_run for part in study.parts if part.table.not_run}
        self.parts: dict[str, PartRuns] = {}
        self.repeated: tuple[int, ...] = ()
        self.attempted: set[str] = set()
        self.guest_kernel = options.kernel
        self.waiting: list[tuple[PartRuns, Grid]] = []
        if study.axis == ENGINE and not options.kernel:
            self.guest_kernel = nearest(platform.release())
        for part in (part for part in study.parts if not part.table.not_run):
            columns = self._columns(part)
            if not columns:
                self.skipped[part.id] = _reason(part, self.columns)
                continue
            grid = study.column_grid(part, columns, options.quick, options.seeds, self.paths)
            try:
                self.parts[part.id] = self._part(part, columns, grid)
            except InputError as error:
                if not part.id or not error.key.endswith("qdisc"):
                    raise
                self.skipped[part.id] = f"not supported by this kernel: {error.key} = {error.value}"

    def _columns(self, part: StudyPart) -> tuple[str, ...]:
        """Return the columns that a part is run with: those that it is about, and the victims that cells are compared
        with. Congestion controls that only the file names must exist in the kernel."""
        axis = self.study.axis
        if not axis:
            return ("",)
        is_supported = axis != "cc" or bool(self.options.columns)
        columns = [
            column for column in self.columns
            if (not part.table.columns or column in part.table.columns) and column not in part.table.without
            and (is_supported or column in CONGESTION_CONTROLS)
        ]  # fmt: skip
        victims = [
            value
            for other in self.study.parts
            for figure in other.figures
            if figure.victim and part.id in (figure.alone, other.id)
            for value in dict.fromkeys(
                cell[figure.victim] for cell in self.study.column_grid(other, (ANY_COLUMN,)).grid.cells
            )
        ]
        return tuple(dict.fromkeys([*columns, *(victims if columns else [])]))

    def _part(self, part: StudyPart, columns: tuple[str, ...], grid: ColumnGrid) -> PartRuns:
        """Plan the first runs of a part. Guests that are compared with remote machines wait for these: they have the
        kernel that is nearest to theirs."""
        first = self._first_round(part, grid)
        waiting: Grid | None = None
        if self.study.axis == ENGINE and not self.options.kernel and self._is_remote:
            scenarios(first, self.guest_kernel, self.options.engine)
            remote = [cell for cell in first.cells if not is_guest(cell[ENGINE])]
            guests = [cell for cell in first.cells if is_guest(cell[ENGINE])]
            first, waiting = replace(first, cells=tuple(remote)), replace(first, cells=tuple(guests))
        runs = PartRuns(part, columns, grid, self._planned(first), self.store.runs)
        if waiting is not None:
            self.waiting.append((runs, waiting))
        return runs

    @property
    def _is_remote(self) -> bool:
        return any(engines.get(column).capabilities.nic == "real" for column in self.columns)

    def _first_round(self, part: StudyPart, grid: ColumnGrid) -> Grid:
        """Return the grid with the first seeds of each column, if seeds are added until all figures are decided."""
        seeds = part.table.seeds
        if seeds is None or not seeds.until:
            return grid.grid
        listed = self.options.seeds or seeds.range
        first = {
            column: listed[: seeds.reference if column == self.study.reference else seeds.least]
            for column in grid.columns.values()
        }
        return replace(
            grid.grid, cells=tuple(cell for cell in grid.grid.cells if cell[SEED] in first[grid.column(cell)])
        )

    def add_round(self, matrix: Matrix) -> bool:
        """Plan one more seed for each column of a setting that has an undecided figure. Tell if there is any."""
        undecided = [verdict for line in matrix for verdict in line if verdict.verdict == "undecided"]
        added = False
        for id, runs in self.parts.items():
            if runs.part.table.seeds is None or not runs.part.table.seeds.until:
                continue
            undecided_cells = {(each.line.label, each.cell.column) for each in undecided if each.line.part.id == id}
            next_cells: dict[tuple[str, str], Assignment] = {}
            for cell in runs.grid.grid.cells:
                position = runs.grid.label(runs.grid.setting(cell)), runs.grid.column(cell)
                if position in undecided_cells and cell[SEED] not in runs.runs[position]:
                    next_cells.setdefault(position, cell)
            if next_cells:
                runs.add(self._planned(replace(runs.grid.grid, cells=tuple(next_cells.values()))))
                added = True
        return added

    def _planned(self, grid: Grid) -> list[GridCell]:
        return planned(
            grid, engine=self.options.engine, kernel=self.guest_kernel, like=self._like, progress=self.progress
        )

    @property
    def _like(self) -> str:
        """The engine with veth pairs that guests are compared with, and whose links they have."""
        if self.study.axis != ENGINE or self.study.wire:
            return ""
        return next((column for column in self.columns if engines.get(column).capabilities.nic == "veth"), "")

    def plan_waiting(self) -> bool:
        """Plan the guests that wait for the kernel of the remote machines. Tell if there are any."""
        keys = (cell.key for runs, _ in self.waiting for cell in runs.planned if self.store.summary(cell.key))
        if (key := next(keys, None)) is None:
            return False
        summary = self.store.summary(key)
        assert summary is not None
        self.guest_kernel = nearest(summary.kernel)
        for runs, grid in self.waiting:
            runs.add(self._planned(grid))
        self.waiting = []
        return True

    @property
    def kernel(self) -> str:
        """The kernel of the first run."""
        planned_cells = (cell for part in self.parts.values() for cell in part.planned)
        return next((cell.kernel for cell in planned_cells), self.options.kernel or DEFAULT)

    def make(self, baseline: Baseline | None) -> StudyResult:
        """Make the missing runs, read the figures and judge them."""
        with self.store.locked(), files.writing(self.store.out, "the study"):
            self._make_missing()
            if self.plan_waiting():
                self._make_missing()
            listed = [cell for part in self.parts.values() for cell in part.planned]
            failed = {cell.key for cell in listed if self.store.summary(cell.key) is None}
            if list(self.parts) == [""]:
                write_table(self.parts[""].grid.grid, listed, self.store)
        for part in self.parts.values():
            part.failed = failed
        names: Iterable[GridCell] = listed if list(self.parts) == [""] else {cell.key: cell for cell in listed}.values()
        store = self.store
        failures = [
            RunFailure(cell.name, store.failure(cell.key) or "", store.log(cell.key), store.failure_code(cell.key))
            for cell in names
            if cell.key in failed
        ]
        reference = self.study.reference
        lines = [line for part in self.parts.values() for line in part.lines(self.columns, self.parts, reference)]
        matrix = judge(lines, self.columns, self.study.axis, reference, baseline)
        completed = self.attempted - failed
        cached = len({cell.key for cell in listed}) - len(self.attempted)
        return StudyResult(
            self.study, self.options, self.store.out, self.store.runs, self.parts, self.skipped, failures, matrix,
            len(completed), len(self.attempted & failed), cached, self.repeated,
        )  # fmt: skip

    def _make_missing(self) -> None:
        listed = [cell for part in self.parts.values() for cell in part.planned]
        self.attempted |= make(
            listed, self.store, jobs=self.jobs, dask=self.dask, force=self.options.force, attempted=self.attempted,
            progress=self.progress,
        )  # fmt: skip

    def add_seeds(self, cells: Sequence[tuple[FigureLine, str]], number: int) -> None:
        """Plan further seeds, none of a baseline's, for the settings of these cells (a line and its column) and of
        their references. All columns of a setting get the same seeds."""
        settings: dict[str, list[Mapping[str, Any]]] = {}
        for line, _ in cells:
            settings.setdefault(line.part.id, []).append(line.setting)
            for figure in line.part.figures:
                if figure.alone:
                    settings.setdefault(figure.alone, []).append(line.setting)
        last = max((seed for part in self.parts.values() for seed in part.seeds), default=1)
        self.repeated = tuple(islice((seed for seed in count(last + 1) if seed not in baselines.SEEDS), number))
        for id, listed in settings.items():
            if (runs := self.parts.get(id)) is not None:
                columns = tuple(runs.columns)
                grid = self.study.column_grid(runs.part, columns, self.options.quick, self.repeated, self.paths).grid
                selected = (cell for cell in grid.cells if any(runs.has_setting(cell, setting) for setting in listed))
                runs.add(self._planned(replace(grid, cells=tuple(selected))))


def _reason(part: StudyPart, columns: Sequence[str]) -> str:
    """Return the reason why a part has no column."""
    reasons = [f"{column}: {part.table.without[column]}" for column in columns if column in part.table.without]
    return "; ".join(reasons) or f"nothing to run: it is about {', '.join(part.table.columns) or 'other columns'}"
