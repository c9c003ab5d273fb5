# SPDX-License-Identifier: Apache-2.0
"""The conductor of a sweep: reads and checks everything, has the missing runs made, writes the table.

It can be stopped at any moment, by whatever means: runs are complete or not there, and the next call makes the rest.
Failed runs are tried again by the next call.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from hourglass.campaign import cells as cell_
from hourglass.campaign import cluster, file, pool, table
from hourglass.campaign.cells import Cell
from hourglass.campaign.file import Grid
from hourglass.campaign.store import KEEPS, Keep, Store
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.results.files import TABLE_FILE
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording

SWEEPS = Path("sweeps")
"""Where sweeps go that are given no place, below the current directory."""


class Progress(Protocol):
    """What is told while a sweep goes on, from the thread that called `sweep`."""

    def kernel(self, fraction: float, step: str) -> None:
        """A kernel is being built: how far it is (0 to 1) and what is being done."""

    def begin(self, there: int, total: int, jobs: int | None) -> None:
        """Of `total` runs `there` are already made; `jobs` at a time, None on a cluster."""

    def done(self, cell: str, failure: str | None) -> None:
        """One more run has ended, with its failure if it failed."""


class Silent:
    """Progress nobody looks at."""

    def kernel(self, fraction: float, step: str) -> None:
        pass

    def begin(self, there: int, total: int, jobs: int | None) -> None:
        pass

    def done(self, cell: str, failure: str | None) -> None:
        pass


@dataclass(frozen=True)
class Failure:
    """A cell whose run failed: in words, the reason, and its log."""

    cell: str
    reason: str
    log: Path


@dataclass(frozen=True)
class Result:
    """A sweep that is over: how many runs this call `made`, how many of those it tried `failed`, how many were
    `there`."""

    grid: Grid
    out: Path
    runs: Path
    cells: list[Cell]
    failures: list[Failure]
    made: int
    failed: int
    there: int

    @property
    def path(self) -> Path:
        """The Parquet file."""
        return self.out / TABLE_FILE

    @cached_property
    def table(self) -> pl.DataFrame:
        return table.read(self.path)

    def run(self, **wanted: Any) -> Recording:
        """The first run whose cell has these values; dots of a key are written as two underscores: stack__tsq="off"."""
        values = {key.replace("__", "."): value for key, value in wanted.items()}
        for cell in self.cells:
            if all(cell.assignment.get(key) == value for key, value in values.items()):
                return open_run(self.runs / cell.key)
        raise InputError("run", values, "no such cell in this sweep")


def sweep(
    source: str | Path | Mapping[str, Any] | Grid,
    out: Path | None = None,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    keep: Keep = "records",
    engine: str = engines.DEFAULT,
    kernel: str | None = None,
    runs: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Makes all runs of a sweep file (or a table of the same keys) that are not there, and the table of all.

    `jobs`: local processes, default one per CPU we may use, and one where time is real. `dask`: address of a cluster
    that is to do it instead. `engine`: one of `engine.engines.ENGINES`.
    `kernel` replaces the kernel of all runs; `runs` is a folder of runs that sweeps share, default `out`/runs. Raises
    `InputError` before the first run if any run's scenario is wrong; runs that fail do not raise: `Result.failures`.
    """
    progress = progress or Silent()
    if keep not in KEEPS:
        raise InputError("keep", keep, f"one of {', '.join(KEEPS)}")
    able = engines.chosen(engine, kernel).capabilities
    grid = source if isinstance(source, Grid) else file.read(source)
    cells = planned(grid, engine=engine, kernel=kernel, progress=progress)
    store = Store(out or SWEEPS / grid.name, keep, runs)
    with store.locked():
        at_once = 1 if jobs is None and not able.virtual_time else jobs
        missing = make(cells, store, jobs=at_once, dask=dask, engine=engine, progress=progress)
        table.write(_table(grid, cells, store), store.table)
        failures = [
            Failure(cell.name, store.failure(cell.key) or "", store.log(cell.key))
            for cell in cells
            if store.summary(cell.key) is None
        ]
    there = len({cell.key for cell in cells}) - len(missing)
    failed = sum(store.summary(key) is None for key in missing)
    return Result(grid, store.out, store.runs, cells, failures, len(missing) - failed, failed, there)


def planned(grid: Grid, *, engine: str = engines.DEFAULT, kernel: str | None = None, progress: Progress) -> list[Cell]:
    """The runs that a sweep has, made or not. Raises `InputError` if any run's scenario is wrong."""
    return cell_.cells(
        grid,
        cell_.scenarios(grid, kernel, engine),
        lambda name, radios, roots, modules: engines.identity(
            engine, name, radios, roots, progress.kernel, modules=modules
        ),
    )


def make(
    cells: Iterable[Cell],
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    engine: str = engines.DEFAULT,
    progress: Progress,
) -> set[str]:
    """Makes the runs that are not there, in a store that is locked: the keys of those that were tried."""
    if jobs is not None and jobs < 1:
        raise InputError("jobs", jobs, "at least 1")
    every = {cell.key: cell for cell in cells}
    missing = {key: cell for key, cell in every.items() if not store.done(key)}
    at_once = None if dask else min(jobs or len(os.sched_getaffinity(0)), max(1, len(missing)))
    progress.begin(len(every) - len(missing), len(every), at_once)

    def finished(key: str, failure: str | None) -> None:
        if failure is None:
            store.settle(key)
        elif store.failure(key) is None:
            store.fail(key, failure)
        progress.done(missing[key].name, failure)

    tasks = [_task(cell, engine, store) for cell in missing.values()]
    if tasks and dask:
        cluster.run(tasks, dask, store, finished)
    elif tasks:
        assert at_once is not None
        pool.run(tasks, at_once, finished)
    return set(missing)


def _task(cell: Cell, engine: str, store: Store) -> dict[str, Any]:
    return {
        "key": cell.key,
        "scenario": cell.scenario_json.decode(),
        "engine": engine,
        "identity": cell.identity,
        "keep": store.keep,
        "place": str(store.place(cell.key).resolve()),
    }


def _table(grid: Grid, cells: list[Cell], store: Store) -> Any:
    rows = []
    for cell in cells:
        summary = store.summary(cell.key)
        about = {"run": cell.key, "status": "failed" if summary is None else "done"}
        if summary is None:
            about["error"] = store.failure(cell.key) or "not made"
        rows.append((cell.assignment, about, table.metrics(summary) if summary else {}))
    return table.build(grid, rows)
