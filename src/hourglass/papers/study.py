# SPDX-License-Identifier: Apache-2.0
"""Runs a figure's sweep and judges its claims, then once more for what the papers do not tell of their testbeds. What
cannot be run says why, in the words of the check."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hourglass.campaign import cells, file, sweep
from hourglass.campaign.file import Grid
from hourglass.campaign.sweep import Progress, Result
from hourglass.errors import HourglassError, InputError, closest
from hourglass.papers import beyond, kernels, paper_a, paper_a_wifi, paper_b, paper_b_tsq, rules
from hourglass.papers.model import Claim, Evidence, Figure, Unknown, Verdict, View
from hourglass.resources import SCENARIOS

FOLDER = SCENARIOS / "papers"
FIGURES: dict[str, Figure] = {
    one.id: one
    for part in (paper_a, rules, paper_a_wifi, paper_b, paper_b_tsq, kernels, beyond)
    for one in part.FIGURES
}


@dataclass(frozen=True)
class Weighed:
    """What becomes of a figure's claims at the values of an unknown. A setting's verdicts stand together."""

    unknown: Unknown
    verdicts: list[Verdict]

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(one.setting for one in self.verdicts))


@dataclass(frozen=True)
class Studied:
    """A figure with its verdicts; `evidence` is None when it could not be run, and `reason` says why."""

    figure: Figure
    verdicts: list[Verdict]
    evidence: Evidence | None = None
    reason: str = ""
    weighed: tuple[Weighed, ...] = ()


@dataclass(frozen=True)
class Way:
    """How sweeps are made: below `out`, where all figures share their runs; `quick`: one seed."""

    out: Path
    quick: bool
    jobs: int | None
    kernel: str | None
    progress: Progress

    def made(self, name: str) -> Result:
        grid = grid_of(name, self.quick)
        runs = self.out / "runs"
        return sweep(grid, self.out / name, jobs=self.jobs, kernel=self.kernel, runs=runs, progress=self.progress)


def chosen(ids: list[str], quick: bool = False) -> list[Figure]:
    """The figures of some ids, all if there is none; `quick`: all that have claims. Raises `InputError`."""
    for one in ids:
        if one not in FIGURES:
            raise InputError("ID", one, f"no such figure. {closest(one, FIGURES)}Figures: {', '.join(FIGURES)}")
    return [FIGURES[one] for one in ids] or [one for one in FIGURES.values() if one.claims or not quick]


def grid_of(name: str, quick: bool) -> Grid:
    """A sweep of the papers; `quick`: one seed."""
    grid = file.read(FOLDER / f"{name}.toml")
    if not quick or "seed" not in grid.keys:
        return grid
    first = grid.cells[0]["seed"]
    return replace(grid, cells=tuple(one for one in grid.cells if one["seed"] == first))


def study(
    figure: Figure, out: Path, *, quick: bool, jobs: int | None, kernel: str | None, progress: Progress
) -> Studied:
    """Runs what is missing of a figure, of those it is compared with and of its unknowns below `out` (runs are shared
    by all figures), and judges its claims."""
    try:
        cells.scenarios(grid_of(figure.id, quick), kernel)
    except InputError as error:
        reason = f"this version has not what it needs: {error.key} = {error.value!r}: {_first(error.allowed)}"
        return Studied(figure, [_none(figure, claim, reason) for claim in figure.claims], None, reason)
    way = Way(out, quick, jobs, kernel, progress)
    others = {name: Evidence(way.made(name)) for name in figure.needs}
    evidence = Evidence(way.made(figure.id), others)
    verdicts = [judge(figure, claim, evidence) for claim in figure.claims]
    weighed = tuple(Weighed(one, list(weigh(figure, one, evidence, way))) for one in figure.unknowns)
    return Studied(figure, verdicts, evidence, "", weighed)


def weigh(figure: Figure, unknown: Unknown, evidence: Evidence, way: Way) -> Iterator[Verdict]:
    """The verdicts on a figure's claims at each value of an unknown."""
    seen = _swept(figure, unknown, evidence, way) if unknown.sweep else [(unknown.called, evidence.seen(unknown.view))]
    for called, data in seen:
        for claim in figure.claims:
            if not claim.apart and claim.id in (unknown.claims or (claim.id,)):
                yield replace(judge(figure, claim, data), setting=called)


def _swept(figure: Figure, unknown: Unknown, evidence: Evidence, way: Way) -> list[tuple[str, Evidence]]:
    """What each value of an unknown is called, and its runs; once more in each of the figure's other views."""
    swept = Evidence(way.made(unknown.sweep), evidence.others)
    same = {name: Evidence(way.made(sweep)) for name, sweep in unknown.others if name in figure.needs}
    views = [("", View()), *((one.called, one.view) for one in figure.unknowns if not one.sweep)]
    found = []
    for called, view in views:
        for only in swept.combinations(unknown.axes):
            there = replace(view, only=only)
            others = dict(swept.seen(there).others) | {name: one.seen(there) for name, one in same.items()}
            label = ", ".join(word for word in (swept.label(**only), called) if word)
            found.append((label, Evidence(swept.result, others, there)))
    return found


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
    because = found.mechanism
    if not found.holds and claim.version:
        because = f"{claim.version}. {because}".removesuffix(". ")
    return Verdict(figure.id, claim, "holds" if found.holds else "differs", found.measured, because)
