# SPDX-License-Identifier: Apache-2.0
"""Plans the parts of a suite as sweeps, makes the runs of all, and reads the figure of each cell from its runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from hourglass.campaign.cells import Cell as Run
from hourglass.campaign.expand import Assignment
from hourglass.campaign.file import Grid
from hourglass.campaign.store import Store
from hourglass.campaign.sweep import Progress, Silent, make, planned
from hourglass.contract import names
from hourglass.contract.figures import figures
from hourglass.errors import HourglassError, InputError
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording
from hourglass.results.stats import rounded
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.suites.file import ANY, SEED, Part, Row, Suite, Swept
from hourglass.suites.measures import MEASURES, Seen

RUNS = "runs"
OPEN_RUNS = 8
"""So many recordings are kept open: of runs that others are compared with."""

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A row's figure of one congestion control in one setting, a value for each seed. `why`: it has none."""

    cc: str
    values: tuple[float | None, ...] = ()
    runs: tuple[str, ...] = ()
    why: str = ""

    @property
    def value(self) -> float | None:
        """The median over the seeds that have one."""
        return float(median(self.known)) if self.known else None

    @property
    def known(self) -> list[float]:
        return [one for one in self.values if one is not None]

    @property
    def failed(self) -> bool:
        """Whether its runs failed."""
        return bool(self.runs) and not self.values


@dataclass(frozen=True)
class Line:
    """A row of the matrix: a figure in one setting. `cells` are those of the columns; `beside` those of columns that
    were only run to compare with."""

    part: Part
    row: Row
    setting: Setting
    label: str
    cells: Mapping[str, Cell]
    beside: Mapping[str, Cell] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """What a baseline knows it by."""
        given = ",".join(f"{key}={value}" for key, value in self.row.given.items())
        return "/".join(filter(None, (self.part.id, self.row.figure + (f"({given})" if given else ""), self.label)))


@dataclass(frozen=True)
class Studied:
    """A suite with its figures. `why`: of parts that were not run; `failed`: runs that failed, in words; `runs`: how
    many it has; `sources`: how those columns were asked for that are a user's own; `seeds`: in place of the suite's;
    `again`: further seeds of what was worse."""

    suite: Suite
    kernel: str
    quick: bool
    ccs: tuple[str, ...]
    lines: tuple[Line, ...]
    why: Mapping[str, str]
    failed: tuple[str, ...]
    runs: int
    sources: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    again: tuple[int, ...] = ()


class Study:
    """A suite on a kernel, planned: whose missing runs can be made below `out`, and more of those that are doubted.

    `ccs`: the columns, default the suite's; `sources`: files or folders of those that are a user's own, as they were
    asked for; `seeds`: in place of the suite's. Raises `InputError` for a scenario that is wrong; what a kernel has not
    is a part, or a column, that is not run."""

    def __init__(
        self,
        suite: Suite,
        out: Path,
        *,
        ccs: Sequence[str] = (),
        sources: Mapping[str, str] = MappingProxyType({}),
        kernel: str,
        quick: bool = False,
        seeds: Sequence[int] = (),
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.suite, self.kernel, self.quick, self.sources, self.seeds = suite, kernel, quick, sources, tuple(seeds)
        self.places = {cc: f"{Path(word).absolute()}{word[len(word.rstrip('/')) :]}" for cc, word in sources.items()}
        self.columns = tuple(dict.fromkeys(ccs)) or suite.ccs
        self.why = {part.id: part.not_run for part in suite.parts if part.not_run}
        self.store, self.jobs, self.progress = Store(out, "records"), jobs, progress or Silent()
        self.tables: dict[str, Table] = {}
        self.again: tuple[int, ...] = ()
        for part in (one for one in suite.parts if not one.not_run):
            wanted = _columns(suite, part, self.columns, asked=bool(ccs))
            if not wanted:
                self.why[part.id] = _nobody(part, self.columns)
                continue
            swept = part.swept(wanted, quick, seeds, self.places)
            try:
                self.tables[part.id] = Table(part, wanted, swept, self._planned(swept.grid), self.store.runs)
            except InputError as error:
                if not error.key.endswith("qdisc"):
                    raise
                self.why[part.id] = f"this version has not what it needs: {error.key} = {error.value}"

    def made(self) -> "Studied":
        """Makes the runs that are missing and reads the figures."""
        runs = {run.key: run for table in self.tables.values() for run in table.planned}
        with self.store.locked():
            make(runs.values(), self.store, jobs=self.jobs, progress=self.progress)
            failures = {key: self.store.failure(key) or "" for key in runs if not self.store.done(key)}
        for table in self.tables.values():
            table.failed = failures.keys()
        lines = [line for table in self.tables.values() for line in _lines(self.columns, table, self.tables)]
        failed = tuple(f"{runs[key].name}: {why}; log: {self.store.log(key)}" for key, why in failures.items())
        return Studied(
            self.suite, self.kernel, self.quick, self.columns, tuple(lines), self.why, failed, len(runs), self.sources,
            self.seeds, self.again,
        )  # fmt: skip

    def ask(self, doubted: Iterable[tuple[Line, str]], seeds: int, taken: Sequence[int] = ()) -> None:
        """Plans so many further seeds, none of those that are `taken`, of these cells (a line and its column), and of
        those they are compared with."""
        wanted: dict[str, list[tuple[Setting, str]]] = {}
        for line, cc in doubted:
            wanted.setdefault(line.part.id, []).append((line.setting, cc))
            if line.row.beside:
                other = str(line.setting[line.row.victim]) if line.row.victim else cc
                wanted.setdefault(line.row.beside, []).append((line.setting, other))
        last = max((seed for table in self.tables.values() for seed in table.seeds), default=1)
        self.again = tuple(islice((seed for seed in count(last + 1) if seed not in taken), seeds))
        for id, places in wanted.items():
            if (table := self.tables.get(id)) is not None:
                grid = table.part.swept(table.columns, self.quick, self.again, self.places).grid
                cells = (cell for cell in grid.cells if any(table.is_of(cell, *place) for place in places))
                table.add(self._planned(replace(grid, cells=tuple(cells))))

    def _planned(self, grid: Grid) -> list[Run]:
        return planned(grid, kernel=self.kernel, progress=self.progress)


def _columns(suite: Suite, part: Part, columns: Sequence[str], asked: bool) -> tuple[str, ...]:
    """Those that a part is run with: the asked ones that it is about, and whoever cells are compared with. What only
    the suite names has to be there."""
    found = [
        cc for cc in columns
        if (not part.ccs or cc in part.ccs) and cc not in part.without and (asked or cc in CONGESTION_CONTROLS)
    ]  # fmt: skip
    victims = [
        value
        for one in suite.parts
        for row in one.rows
        if row.victim and part.id in (row.beside, one.id)
        for value in dict.fromkeys(cell[row.victim] for cell in one.swept((ANY,)).grid.cells)
    ]
    return tuple(dict.fromkeys([*found, *(victims if found else [])]))


def _nobody(part: Part, columns: Sequence[str]) -> str:
    """Why a part has no column."""
    told = [f"{cc}: {part.without[cc]}" for cc in columns if cc in part.without]
    return "; ".join(told) or f"nothing to run: it is about {', '.join(part.ccs) or 'other congestion controls'}"


class Table:
    """The runs of a part by setting, column and seed; `folder` has those of all parts, and `failed` is not there.
    `columns`: those it is run with."""

    def __init__(self, part: Part, columns: Sequence[str], swept: Swept, found: Iterable[Run], folder: Path) -> None:
        self.part, self.columns, self.swept, self.folder = part, columns, swept, folder
        self.failed: Collection[str] = ()
        self.planned: list[Run] = []
        self.runs: dict[tuple[str, str], dict[Any, str]] = {}
        self.settings: dict[str, Setting] = {}
        self.values: dict[tuple[int, str], float | None] = {}
        self.add(found)

    def add(self, found: Iterable[Run]) -> None:
        for run in found:
            self.planned.append(run)
            setting = self.swept.setting(run.assignment)
            name = self.swept.label(setting)
            self.settings.setdefault(name, setting)
            self.runs.setdefault((name, self.swept.cc(run.assignment)), {})[run.assignment.get(SEED)] = run.key

    @property
    def seeds(self) -> set[int]:
        return {seed for runs in self.runs.values() for seed in runs if seed is not None}

    def is_of(self, cell: Assignment, setting: Setting, cc: str) -> bool:
        """Whether a cell of the grid is this column's, in the setting that agrees in what both parts have."""
        return self.swept.cc(cell) == cc and _agree(setting, self.swept.setting(cell))

    def like(self, setting: Setting, cc: str, seed: Any) -> str | None:
        """The run of a column in the setting that agrees in what both parts have; None if there is none."""
        for name, own in self.settings.items():
            if _agree(setting, own):
                key = self.runs.get((name, cc), {}).get(seed)
                return None if key in self.failed else key
        return None

    def open(self, key: str) -> Recording:
        return _opened(self.folder / key)

    def value(
        self, row: Row, tables: Mapping[str, "Table"], setting: Setting, cc: str, seed: Any, key: str
    ) -> float | None:
        """A row's figure of a run, read once."""
        place = self.part.rows.index(row), key
        if place not in self.values:
            found = _value(row, self, tables, setting, cc, seed, key)
            self.values[place] = None if found is None else rounded(found)
        return self.values[place]


def _agree(setting: Setting, own: Setting) -> bool:
    return all(setting.get(key, value) == value for key, value in own.items())


@lru_cache(maxsize=OPEN_RUNS)
def _opened(path: Path) -> Recording:
    return open_run(path)


def _lines(columns: Sequence[str], table: Table, tables: Mapping[str, Table]) -> Iterator[Line]:
    """The rows of a part's settings, a cell for each column."""
    for name, setting in table.settings.items():
        every: dict[str, list[Cell]] = {}
        for cc in dict.fromkeys(cc for place, cc in table.runs if place == name):
            every[cc] = list(_cells(table, tables, name, setting, cc))
        for place, row in enumerate(table.part.rows):
            found = {cc: cells[place] for cc, cells in every.items()}
            cells = {cc: found.get(cc) or Cell(cc, why=_left_out(table.part, cc)) for cc in columns}
            if any(cell.runs for cell in cells.values()):
                yield Line(table.part, row, setting, name, cells, {cc: c for cc, c in found.items() if cc not in cells})


def _left_out(part: Part, cc: str) -> str:
    if cc in part.without:
        return part.without[cc]
    if part.ccs and cc not in part.ccs:
        return f"this part is about {', '.join(part.ccs)}"
    return "this version has it not"


def _cells(table: Table, tables: Mapping[str, Table], name: str, setting: Setting, cc: str) -> Iterator[Cell]:
    """A column's cell of each row, in the order of the rows."""
    runs = table.runs[name, cc]
    whole = {seed: key for seed, key in runs.items() if key not in table.failed}
    for row in table.part.rows:
        if not whole:
            yield Cell(cc, runs=tuple(runs.values()), why="its run failed")
            continue
        found = [table.value(row, tables, setting, cc, seed, key) for seed, key in whole.items()]
        why = "" if any(one is not None for one in found) else "the run does not show it"
        yield Cell(cc, tuple(found), tuple(whole.values()), why)


def _value(
    row: Row, table: Table, tables: Mapping[str, Table], setting: Setting, cc: str, seed: Any, key: str
) -> float | None:
    """A row's figure of one run; None where the run does not have it."""
    run = table.open(key)
    if row.figure not in MEASURES:
        matching = names.matching(row.figure, list(figures(run.summary)))
        return None if len(matching) != 1 or matching[0].value is None else float(matching[0].value)
    beside = None
    if row.beside:
        if (other := tables.get(row.beside)) is None:
            return None
        if (alone := other.like(setting, setting[row.victim] if row.victim else cc, seed)) is None:
            return None
        beside = other.open(alone)
    seen = Seen(run, row.given, beside)
    if not seen.within:
        return None
    try:
        return MEASURES[row.figure].of(seen)
    except HourglassError:  # a table that this run has not
        return None
