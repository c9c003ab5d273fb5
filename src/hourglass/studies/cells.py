# SPDX-License-Identifier: Apache-2.0
"""Make the scenarios of all cells before the first run, so that a wrong value is one line and costs nothing."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.plan.apps import Root
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.scenario import Scenario
from hourglass.scenario.app_roots import roots
from hourglass.studies.axes import Assignment
from hourglass.studies.grid import BASE, ENGINE, Grid, text

IdentityOf = Callable[[str, str, bool, list[Root], list[KernelModule]], str]
"""Returns the identity of an engine: its name, the kernel, whether there are radios, the programs' roots, the modules
that are compiled in."""


@dataclass(frozen=True)
class GridCell:
    """One run of a grid. `name`: the values of its axes. `key` stands for all that decides its records: two cells may
    share it. `like`: the engine whose links the guest uses."""

    name: str
    assignment: Assignment
    scenario_json: bytes
    kernel: str
    identity: str
    virtual_s: float
    engine: str = engines.DEFAULT
    like: str = ""

    @property
    def key(self) -> str:
        """Return the name of the run's directory."""
        return hashlib.sha256(self.scenario_json + f"{self.identity}{self.like}".encode()).hexdigest()[:16]


def scenarios(grid: Grid, kernel: str | None = None, engine: str | None = None, like: str = "") -> list[Scenario]:
    """Return the checked scenario of each cell. With an `engine`, the plan of each setting's first seed is checked as
    well. Raises `InputError` that names the key and the cell."""
    checked: set[str] = set()
    loaded = []
    for assignment in grid.cells:
        setting = repr([value for key, value in assignment.items() if key != "seed"])
        planned_by = None if setting in checked or engine is None else assignment.get(ENGINE, engine)
        loaded.append(_scenario(grid, assignment, kernel, planned_by, like))
        checked.add(setting)
    return loaded


def _scenario(grid: Grid, assignment: Assignment, kernel: str | None, engine: str | None, like: str) -> Scenario:
    base = assignment.get(BASE, grid.base)
    changes = [(key, value) for key, value in (grid.fixed | assignment).items() if key not in (BASE, ENGINE)]
    try:
        loaded = scenario.load(_source(base, grid.folder), changes, kernel=kernel, folder=grid.folder)
        if engine is not None:
            runner.planned(loaded, engine, engines.capabilities(engine, links_of(loaded, engine, like)))
    except InputError as error:
        allowed = f"{error.allowed} (in {describe(grid, assignment)})"
        raise InputError(error.key, error.value, allowed, error.mistakes[1:]) from None
    return loaded


def is_guest(engine: str) -> bool:
    """Tell if an engine runs plans in a guest."""
    return engines.get(engine).capabilities.virtual_time


def links_of(loaded: Scenario, engine: str, like: str) -> str:
    """Return the engine whose links a plan has instead of those of `engine`: only a guest's, and only without NICs of a
    machine."""
    return like if is_guest(engine) and not any(node.real for node in loaded.testbed.node) else ""


def _source(base: Any, folder: Path) -> str | Path | Mapping[str, Any]:
    """Return a file next to the study's, or the value that `scenario.load` accepts."""
    if isinstance(base, str) and (folder / base).is_file():
        return folder / base
    source: str | Mapping[str, Any] = base
    return source


def sources(grid: Grid) -> list[str]:
    """Return the file of each cell's scenario, its name if it is built in, "" for a table."""
    bases = (_source(cell.get(BASE, grid.base), grid.folder) for cell in grid.cells)
    return [str(source) if isinstance(source, str | Path) else "" for source in bases]


def describe(grid: Grid, assignment: Assignment) -> str:
    """Return the cell as text: "stack.tsq=off seed=2"."""
    return " ".join(f"{key}={text(assignment[key])}" for key in grid.keys)


def cells(grid: Grid, loaded: list[Scenario], engine: str, identity_of: IdentityOf, like: str = "") -> list[GridCell]:
    """Return the cells. `engine`: of those for which it is not an axis."""
    identities: dict[tuple[str, ...], str] = {}
    listed = []
    for assignment, scenario_of_cell in zip(grid.cells, loaded, strict=True):
        name = assignment.get(ENGINE, engine)
        modules = [replace(module.of_kernel(), parameters=()) for module in scenario_of_cell.module]
        radios, programs = bool(scenario_of_cell.testbed.wifi), roots(scenario_of_cell)
        need = (name, scenario_of_cell.kernel, repr(radios), repr(programs), repr(modules))
        if need not in identities:
            identities[need] = identity_of(name, scenario_of_cell.kernel, radios, programs, modules)
        listed.append(
            GridCell(
                describe(grid, assignment),
                assignment,
                scenario_of_cell.unchecked().to_json(),
                scenario_of_cell.kernel,
                identities[need],
                scenario_of_cell.test.length + 2 * scenario_of_cell.test.delay,
                name,
                links_of(scenario_of_cell, name, like),
            )
        )
    return listed
