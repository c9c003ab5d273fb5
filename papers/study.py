# SPDX-License-Identifier: Apache-2.0
"""Run a figure's study and judge its claims, then again for the settings that the papers do not state."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hourglass
from hourglass.errors import HourglassError, InputError, closest
from hourglass.studies.study import StudyResult
from papers import beyond, kernel_changes, paper_a, paper_a_wifi, paper_b, paper_b_tsq, rules
from papers.contrasts import CONTRASTS
from papers.model import Claim, Evidence, FailedRuns, PaperFigure, Verdict

FOLDER = Path(__file__).parent / "studies"
FIGURES: dict[str, PaperFigure] = {
    figure.id: figure
    for part in (paper_a, rules, paper_a_wifi, paper_b, paper_b_tsq, kernel_changes, beyond)
    for figure in part.FIGURES
}
GROUPS = tuple(dict.fromkeys(figure.group for figure in FIGURES.values()))


@dataclass(frozen=True)
class JudgedFigure:
    """A figure with its verdicts, those at each value of an unstated setting, and those for the contrasts. `evidence`
    is None if it could not be run, and `reason` says why."""

    figure: PaperFigure
    verdicts: list[Verdict]
    evidence: Evidence | None = None
    reason: str = ""
    unknowns: tuple[Verdict, ...] = ()
    contrasts: tuple[Verdict, ...] = ()


class PaperRuns:
    """The runs of all figures in `out`, which share them. `options`: those of `hourglass.study`. `releases`: of the
    kernels, by their names."""

    def __init__(self, out: Path, **options: Any) -> None:
        self.out, self.options = out, options
        self.releases: dict[str, str] = {}

    def result(self, name: str) -> StudyResult:
        """Make the missing runs of a study of the papers. Raises `InputError` if this version cannot make them."""
        result = hourglass.study(FOLDER / f"{name}.toml", self.out / name, runs=self.out / "runs", **self.options)
        for cell in result.cells:
            if cell.kernel not in self.releases and (run := result.runs / cell.key).is_dir():
                self.releases[cell.kernel] = hourglass.load(run).info.kernel.release.partition("-")[0]
        return result


def selected(names: list[str], quick: bool = False) -> list[PaperFigure]:
    """Return figures by their ids or groups, default all; `quick`: all that have claims. Raises `InputError`."""
    for name in names:
        if name not in FIGURES and name.lower() not in GROUPS:
            options = [*GROUPS, *FIGURES]
            raise InputError("FIGURE", name, f"no such figure. {closest(name, options)}Known: {', '.join(options)}")
    groups = {name.lower() for name in names}
    return [
        figure
        for figure in FIGURES.values()
        if (figure.id in names or figure.group in groups if names else figure.claims or not quick)
    ]


def judge_figure(figure: PaperFigure, runs: PaperRuns) -> JudgedFigure:
    """Make the missing runs of a figure and of those it is compared with. Judge its claims, all of them again for each
    unknown, and again for its contrast."""
    try:
        result = runs.result(figure.id)
        compared = {name: Evidence(runs.result(name)) for name in figure.needs}
    except InputError as error:
        allowed = error.allowed.split(" (in ")[0]
        reason = f"not supported by this version: {error.key} = {error.value!r}: {allowed}"
        skipped = [Verdict(figure.id, claim, "skipped", "-", reason) for claim in figure.claims]
        return JudgedFigure(figure, skipped, None, reason)
    evidence = Evidence(result, compared).viewed(figure.view)
    verdicts = [judge(figure, claim, evidence) for claim in figure.claims]
    unknowns = tuple(
        replace(judge(figure, claim, evidence.viewed(unknown.view)), setting=unknown.label)
        for unknown in figure.unknowns
        for claim in figure.claims
    )
    contrasts = tuple(
        judge(figure, claim, evidence.contrasted(CONTRASTS[claim.id]))
        for claim in figure.claims
        if claim.id in CONTRASTS
    )
    return JudgedFigure(figure, verdicts, evidence, "", unknowns, contrasts)


def judge(figure: PaperFigure, claim: Claim, evidence: Evidence) -> Verdict:
    """Return the verdict on a claim. Failed runs affect only the claims about them."""
    try:
        finding = claim.judge(evidence)
    except FailedRuns as error:
        return Verdict(figure.id, claim, "failed", "-", str(error))
    except (LookupError, HourglassError, ArithmeticError) as error:
        return Verdict(figure.id, claim, "skipped", "-", f"the runs do not show it: {error}")
    reason = finding.mechanism
    if not finding.holds and claim.cause:
        reason = f"{claim.cause}. {reason}".removesuffix(". ")
    return Verdict(figure.id, claim, "ok" if finding.holds else "missed", finding.measured, reason)
