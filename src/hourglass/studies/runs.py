# SPDX-License-Identifier: Apache-2.0
"""Plan and make the runs of a study, on this machine or on a Dask cluster.

It can be stopped at any moment: runs are complete or absent, and the next call makes the rest. Failed runs are tried
again by the next call.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from hourglass.engine import engines
from hourglass.host import hardware, sandbox
from hourglass.scenario import Scenario
from hourglass.studies import cells as grid_cells
from hourglass.studies import cluster, pool, table
from hourglass.studies.cells import GridCell
from hourglass.studies.grid import Grid
from hourglass.studies.store import Store


class StudyProgress(Protocol):
    """The callbacks of a study, called from its thread."""

    def kernel(self, fraction: float, step: str) -> None:
        """A kernel is being built: the fraction (0 to 1) and the current step."""

    def begin(self, existing: int, total: int, jobs: int | None) -> None:
        """Of `total` runs `existing` are complete; `jobs` at a time, None on a cluster."""

    def done(self, cell: str, failure: str | None) -> None:
        """One more run has ended, with its failure if it failed."""


@runtime_checkable
class PlanProgress(Protocol):
    """A further callback, which progress may have."""

    def plan(self, scenarios: Sequence[tuple[str, Scenario]]) -> None:
        """These scenarios will be run, and nothing was built for them. Each has its file, or "" without one."""


class SilentStudy:
    """Progress that is not shown."""

    def kernel(self, fraction: float, step: str) -> None:
        pass

    def begin(self, existing: int, total: int, jobs: int | None) -> None:
        pass

    def done(self, cell: str, failure: str | None) -> None:
        pass


def planned(
    grid: Grid, *, engine: str = engines.DEFAULT, kernel: str | None = None, like: str = "", progress: StudyProgress
) -> list[GridCell]:
    """Return the runs of a grid. `like`: the engine whose links guests have. Raises `InputError` if any run's scenario
    is wrong."""
    scenarios = grid_cells.scenarios(grid, kernel, engine, like)
    if isinstance(progress, PlanProgress):
        progress.plan([*zip(grid_cells.sources(grid), scenarios, strict=True)])
    return grid_cells.cells(
        grid,
        scenarios,
        engine,
        lambda name, kernel_name, radios, roots, modules: engines.identity(
            name, kernel_name, radios, roots, progress.kernel, modules=modules
        ),
        like,
    )


def make(
    listed: Iterable[GridCell],
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    attempted: Collection[str] = (),
    workers: pool.WorkerPool | None = None,
    progress: StudyProgress,
) -> set[str]:
    """Make the missing runs, with `force` all runs, in a locked store, except those that were `attempted` before.
    `workers`: a pool that stays. Return the keys of the attempted ones."""
    every = {cell.key: cell for cell in listed}
    missing = {key: cell for key, cell in every.items() if key not in attempted and (force or not store.done(key))}
    if jobs is None and not all(engines.get(cell.engine).capabilities.virtual_time for cell in missing.values()):
        jobs = 1
    at_once = None if dask else min(jobs or hardware.cpus(), max(1, len(missing)))
    progress.begin(len(every) - len(missing), len(every), at_once)

    def finished(key: str, failure: str | None) -> None:
        if failure is None:
            store.settle(key)
        elif store.failure(key) is None:
            store.fail(key, failure)
        progress.done(missing[key].name, failure)

    tasks = [task(cell, store) for cell in missing.values()]
    if tasks and dask:
        cluster.run(tasks, dask, store, finished)
    elif tasks:
        assert at_once is not None
        (pool.run if workers is None else workers.run)(tasks, at_once, finished)
    return set(missing)


def task(cell: GridCell, store: Store) -> dict[str, Any]:
    """Return a run as a worker's task."""
    return {
        "key": cell.key,
        "scenario": cell.scenario_json.decode(),
        "engine": cell.engine,
        "like": cell.like,
        "identity": cell.identity,
        "keep": store.keep,
        "place": str(store.directory(cell.key).resolve()),
        "sandbox": sandbox.is_required(),
    }


def write_table(grid: Grid, listed: Iterable[GridCell], store: Store) -> Path:
    """Write the table of a grid's runs."""
    rows = []
    for cell in listed:
        summary = store.summary(cell.key)
        about = {"run": cell.key, "status": "failed" if summary is None else "done"}
        if summary is None:
            about["error"] = store.failure(cell.key) or "not made"
        rows.append((cell.assignment, about, table.metrics(summary) if summary else {}))
    table.write(table.build(grid, rows), store.table)
    return store.table
