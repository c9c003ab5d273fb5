# SPDX-License-Identifier: Apache-2.0
"""Assignments → scenarios, all of them before the first run, so that a wrong value is one line and costs nothing."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.campaign.expand import Assignment
from hourglass.campaign.file import BASE, Grid, text
from hourglass.contract.modules import Module
from hourglass.contract.plan_apps import Root
from hourglass.errors import InputError
from hourglass.scenario import Scenario
from hourglass.scenario.app_roots import roots


@dataclass(frozen=True)
class Cell:
    """One run of the grid, in words `name`. `key` stands for all that decides its records: two cells may share it."""

    name: str
    assignment: Assignment
    scenario_json: bytes
    kernel: str
    identity: str
    virtual_s: float

    @property
    def key(self) -> str:
        return hashlib.sha256(self.scenario_json + self.identity.encode()).hexdigest()[:16]


def scenarios(grid: Grid, kernel: str | None = None, engine: str | None = None) -> list[Scenario]:
    """The scenario of each cell, checked, with an `engine` the plan too of each cell's first seed. Raises
    `InputError` that names the key and the cell."""
    known: set[str] = set()
    found = []
    for one in grid.cells:
        setting = repr([value for key, value in one.items() if key != "seed"])
        found.append(_scenario(grid, one, kernel, None if setting in known else engine))
        known.add(setting)
    return found


def _scenario(grid: Grid, assignment: Assignment, kernel: str | None, engine: str | None) -> Scenario:
    chosen = assignment.get(BASE, grid.base)
    changes = [(key, value) for key, value in (grid.fixed | assignment).items() if key != BASE]
    try:
        found = scenario.load(_source(chosen, grid.folder), changes, kernel=kernel)
        if engine is not None:
            runner.planned(found, engine)
    except InputError as error:
        allowed = f"{error.allowed} (in {describe(grid, assignment)})"
        raise InputError(error.key, error.value, allowed, error.mistakes[1:]) from None
    return found


def _source(chosen: Any, folder: Path) -> str | Path | Mapping[str, Any]:
    """A file beside the sweep file, or what `scenario.load` takes."""
    if isinstance(chosen, str) and (folder / chosen).is_file():
        return folder / chosen
    found: str | Mapping[str, Any] = chosen
    return found


def describe(grid: Grid, assignment: Assignment) -> str:
    """The cell in words: "stack.tsq=off seed=2"."""
    return " ".join(f"{key}={text(assignment[key])}" for key in grid.keys)


def cells(
    grid: Grid, found: list[Scenario], identity_of: Callable[[str, bool, list[Root], list[Module]], str]
) -> list[Cell]:
    """The cells. `identity_of` gives an engine's identity by the name of its kernel, whether there are radios, the
    programs' roots and the modules compiled in."""
    built = [[replace(module.of_kernel(), parameters=()) for module in one.module] for one in found]
    needs = [
        (one.kernel, bool(one.testbed.wifi), repr(roots(one)), repr(modules))
        for one, modules in zip(found, built, strict=True)
    ]
    first = dict(zip(reversed(needs), reversed([*zip(found, built, strict=True)]), strict=True))
    identities = {need: identity_of(need[0], need[1], roots(one), modules) for need, (one, modules) in first.items()}
    return [
        Cell(
            describe(grid, assignment), assignment, one.unchecked().to_json(), one.kernel, identities[need],
            one.test.length + 2 * one.test.delay,
        )
        for assignment, one, need in zip(grid.cells, found, needs, strict=True)
    ]  # fmt: skip
