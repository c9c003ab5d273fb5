# SPDX-License-Identifier: Apache-2.0
"""Plans the parts of a suite as sweeps, makes the runs of all, and reads the figure of each cell from its runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from hourglass.campaign.cells import Cell as Run
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
    many it has; `sources`: where the columns are that are a user's own."""

    suite: Suite
    kernel: str
    quick: bool
    ccs: tuple[str, ...]
    lines: tuple[Line, ...]
    why: Mapping[str, str]
    failed: tuple[str, ...]
    runs: int
    sources: Mapping[str, Path] = field(default_factory=dict)


def study(
    suite: Suite,
    out: Path,
    *,
    ccs: Sequence[str] = (),
    sources: Mapping[str, Path] = MappingProxyType({}),
    kernel: str,
    quick: bool = False,
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Studied:
    """Makes the runs that are missing below `out` and reads their figures. `ccs`: the columns, default the suite's;
    `sources`: where those are that are a user's own; `seeds`: in place of the suite's.

    Raises `InputError` for a scenario that is wrong; what a kernel has not is a part, or a column, that is not run."""
    columns = tuple(dict.fromkeys(ccs)) or suite.ccs
    why = {part.id: part.not_run for part in suite.parts if part.not_run}
    todo: dict[str, tuple[Part, Swept, list[Run]]] = {}
    told = progress or Silent()
    for part in (one for one in suite.parts if not one.not_run):
        wanted = _columns(suite, part, columns, asked=bool(ccs))
        if not wanted:
            why[part.id] = _nobody(part, columns)
            continue
        swept = part.swept(wanted, quick, seeds, sources)
        try:
            todo[part.id] = part, swept, planned(swept.grid, kernel=kernel, progress=told)
        except InputError as error:
            if not error.key.endswith("qdisc"):
                raise
            why[part.id] = f"this version has not what it needs: {error.key} = {error.value}"
    store = Store(out, "records")
    runs = {run.key: run for _, _, found in todo.values() for run in found}
    with store.locked():
        make(runs.values(), store, jobs=jobs, progress=told)
        failures = {key: store.failure(key) or "" for key in runs if not store.done(key)}
    tables = {id: Table(part, swept, found, store.runs, failures.keys()) for id, (part, swept, found) in todo.items()}
    lines = [line for table in tables.values() for line in _lines(columns, table, tables)]
    failed = tuple(f"{runs[key].name}: {why}; console log: {store.log(key)}" for key, why in failures.items())
    return Studied(suite, kernel, quick, columns, tuple(lines), why, failed, len(runs), sources)


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
    """The runs of a part by setting, column and seed; `folder` has those of all parts, and `failed` is not there."""

    def __init__(self, part: Part, swept: Swept, found: Sequence[Run], folder: Path, failed: Collection[str]) -> None:
        self.part, self.folder, self.failed = part, folder, failed
        self.runs: dict[tuple[str, str], dict[Any, str]] = {}
        self.settings: dict[str, Setting] = {}
        for run in found:
            setting = swept.setting(run.assignment)
            name = swept.label(setting)
            self.settings.setdefault(name, setting)
            self.runs.setdefault((name, swept.cc(run.assignment)), {})[run.assignment.get(SEED)] = run.key

    def like(self, setting: Setting, cc: str, seed: Any) -> str | None:
        """The run of a column in the setting that agrees in what both parts have; None if there is none."""
        for name, own in self.settings.items():
            if all(setting.get(key, value) == value for key, value in own.items()):
                key = self.runs.get((name, cc), {}).get(seed)
                return None if key in self.failed else key
        return None

    def open(self, key: str) -> Recording:
        return _opened(self.folder / key)


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
        values = [_value(row, table, tables, setting, cc, seed, key) for seed, key in whole.items()]
        found = [None if one is None else rounded(one) for one in values]
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
    try:
        return MEASURES[row.figure].of(Seen(run, row.given, beside))
    except HourglassError:  # a table that this run has not
        return None
