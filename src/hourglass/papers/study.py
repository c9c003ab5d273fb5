# SPDX-License-Identifier: Apache-2.0
"""Runs a figure's sweep and judges its claims. What cannot be run yet says why, in the words of the check."""

from dataclasses import dataclass, replace
from pathlib import Path

from hourglass.campaign import cells, file, sweep
from hourglass.campaign.file import Grid
from hourglass.campaign.sweep import Progress
from hourglass.errors import HourglassError, InputError, closest
from hourglass.papers import beyond, paper_a, paper_b, rules
from hourglass.papers.model import Claim, Evidence, Figure, Verdict
from hourglass.resources import SCENARIOS

FOLDER = SCENARIOS / "papers"
FIGURES: dict[str, Figure] = {
    one.id: one for one in (*paper_a.FIGURES, *rules.FIGURES, *paper_b.FIGURES, *beyond.FIGURES)
}


@dataclass(frozen=True)
class Studied:
    """A figure with its verdicts; `evidence` is None when it could not be run, and `reason` says why."""

    figure: Figure
    verdicts: list[Verdict]
    evidence: Evidence | None = None
    reason: str = ""


def chosen(ids: list[str], quick: bool = False) -> list[Figure]:
    """The figures of some ids, all if there is none; `quick`: all that have claims. Raises `InputError`."""
    for one in ids:
        if one not in FIGURES:
            raise InputError("ID", one, f"no such figure. {closest(one, FIGURES)}Figures: {', '.join(FIGURES)}")
    return [FIGURES[one] for one in ids] or [one for one in FIGURES.values() if one.claims or not quick]


def grid_of(figure: Figure, quick: bool) -> Grid:
    """The figure's sweep; `quick`: one seed."""
    grid = file.read(FOLDER / f"{figure.id}.toml")
    if not quick or "seed" not in grid.keys:
        return grid
    first = grid.cells[0]["seed"]
    return replace(grid, cells=tuple(one for one in grid.cells if one["seed"] == first))


def study(
    figure: Figure, out: Path, *, quick: bool, jobs: int | None, kernel: str | None, progress: Progress
) -> Studied:
    """Runs what is missing of a figure below `out` (runs are shared by all figures) and judges its claims."""
    grid = grid_of(figure, quick)
    try:
        cells.scenarios(grid, kernel)
    except InputError as error:
        reason = f"this version has not what it needs: {error.key} = {error.value!r}: {_first(error.allowed)}"
        return Studied(figure, [_none(figure, claim, reason) for claim in figure.claims], None, reason)
    result = sweep(grid, out / figure.id, jobs=jobs, kernel=kernel, runs=out / "runs", progress=progress)
    evidence = Evidence(result)
    return Studied(figure, [judge(figure, claim, evidence) for claim in figure.claims], evidence)


def _first(allowed: str) -> str:
    return allowed.split(" (in ")[0]


def _none(figure: Figure, claim: Claim, reason: str) -> Verdict:
    return Verdict(figure.id, claim, "cannot be had", "-", reason)


def judge(figure: Figure, claim: Claim, evidence: Evidence) -> Verdict:
    """The verdict on one claim. Runs that failed take theirs with them, and nothing else."""
    try:
        found = claim.judge(evidence)
    except (LookupError, HourglassError, ArithmeticError) as error:
        return _none(figure, claim, f"the runs do not show it: {error}")
    return Verdict(figure.id, claim, "holds" if found.holds else "differs", found.measured, found.mechanism)
