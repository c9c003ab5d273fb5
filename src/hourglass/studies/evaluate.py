# SPDX-License-Identifier: Apache-2.0
"""Evaluate an expression on runs of scenarios, each with one of several controls.

A value is stored next to its run (`runs/KEY/search.json`), and the records are deleted then. So a search that was
killed continues by starting over: the same proposals find their values, and nothing is run twice.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hourglass import files
from hourglass.errors import HourglassError, InputError
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.scenario.source_files import with_marks
from hourglass.studies import runs
from hourglass.studies.cells import GridCell
from hourglass.studies.expression import Expression
from hourglass.studies.grid import SEED, Grid
from hourglass.studies.pool import WorkerPool
from hourglass.studies.runs import SilentStudy, StudyProgress
from hourglass.studies.score import ENVIRONMENT
from hourglass.studies.store import Store, prune

VALUES_FILE = "search.json"
CRASHES = ("guest-panic", "guest-spins", "guest-deadlocks")
"""Codes of failures that a control causes: the worst of all values."""
CRASHED = float("-inf")


@dataclass(frozen=True)
class Trial:
    """A scenario's table with a control and a seed."""

    table: Mapping[str, Any]
    control: Any
    seed: int


@dataclass
class Evaluator:
    """Makes runs and evaluates them. `key`: the key of the control. `made`: the number of runs; `keys`: those of all
    evaluated runs, also of earlier ones; `refusals`: why scenarios have no value."""

    expression: Expression
    key: str
    store: Store
    kernel: str | None
    engine: str
    jobs: int | None
    dask: str | None
    workers: WorkerPool
    progress: StudyProgress
    completed: int = 0
    keys: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)

    def values(self, trials: Sequence[Trial]) -> list[float | None]:
        """Return the value of each trial: None if it was refused or does not show it, `CRASHED` if the guest crashed.
        Makes missing runs in parallel, one per CPU."""
        cells = [self._reported(trial) for trial in trials]
        self.keys |= {cell.key for cell in cells if cell is not None}
        missing = {cell.key: cell for cell in cells if cell is not None and not self._is_known(cell.key)}
        self._make(list(missing.values()))
        return [None if cell is None else self._value(cell) for cell in cells]

    def recording(self, trial: Trial) -> Recording:
        """Return the run of a trial with its records, which stay."""
        cell = self.cell(trial)
        self._make([cell])
        if not self.store.done(cell.key):
            raise HourglassError(f"{cell.name}: {self.store.failure(cell.key)}")
        run = open_run(self.store.directory(cell.key))
        self._store(cell.key, self.expression.value(run))
        return run

    def _reported(self, trial: Trial) -> GridCell | None:
        try:
            return self.cell(trial)
        except InputError as error:
            self.refusals.append(str(error).splitlines()[0])
            return None

    def cell(self, trial: Trial) -> GridCell:
        """Return the run of a trial. Raises `InputError` if its scenario is refused."""
        fixed = {self.key: with_marks(trial.control)}
        grid = Grid(str(trial.table.get("name", "")), "", trial.table, fixed, (SEED,), ({SEED: trial.seed},))
        (cell,) = runs.planned(grid, engine=self.engine, kernel=self.kernel, progress=self.progress)
        return cell

    def _make(self, cells: Sequence[GridCell]) -> None:
        quiet = _Quiet(self.progress)
        results = runs.make(cells, self.store, jobs=self.jobs, dask=self.dask, workers=self.workers, progress=quiet)
        self.completed += len(results)

    def _is_known(self, key: str) -> bool:
        return self._stored(key) is not None or self.store.failure_code(key) in CRASHES

    def _stored(self, key: str) -> dict[str, float | None] | None:
        """Return the stored values of a run if this expression is among them."""
        try:
            values: dict[str, float | None] = json.loads(self._path(key).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return values if self.expression.text in values else None

    def _path(self, key: str) -> Path:
        return self.store.directory(key) / VALUES_FILE

    def _value(self, cell: GridCell) -> float | None:
        if (values := self._stored(cell.key)) is not None:
            return values[self.expression.text]
        if not self.store.done(cell.key):
            code = self.store.failure_code(cell.key)
            if code in CRASHES:
                return CRASHED
            if code in ENVIRONMENT:
                raise HourglassError(f"{cell.name}: {self.store.failure(cell.key)}")
            self.refusals.append(str(self.store.failure(cell.key)))
            return None
        directory = self.store.directory(cell.key)
        value = self.expression.value(open_run(directory))
        self._store(cell.key, value)
        prune(directory)
        return value

    def _store(self, key: str, value: float | None) -> None:
        files.write(self._path(key), json.dumps({self.expression.text: value}).encode())


class _Quiet(SilentStudy):
    """Forwards the builds of kernels, but not the counts of each batch."""

    def __init__(self, progress: StudyProgress) -> None:
        self.kernel = progress.kernel  # type: ignore[method-assign]
