# SPDX-License-Identifier: Apache-2.0
"""`hourglass paper`: figures of the papers, run and judged claim by claim."""

import shutil
from pathlib import Path

from hourglass.cli import output, pictures
from hourglass.cli.progress import shown
from hourglass.papers import report, study
from hourglass.papers.study import Studied

PAPERS = Path("papers")
"""Where figures go that are given no place, below the current directory."""


def run_papers(
    ids: list[str], quick: bool, kernel: str | None, out: Path | None, jobs: int | None, pages: Path | None
) -> None:
    """Runs the figures, prints the verdicts, writes the report."""
    pictures.plots()
    from hourglass.papers.draw import draw

    folder = out or PAPERS
    studied: list[Studied] = []
    for figure in study.chosen(ids, quick):
        with shown() as progress:
            found = study.study(figure, folder, quick=quick, jobs=jobs, kernel=kernel, progress=progress)
        studied.append(found)
        folder.mkdir(parents=True, exist_ok=True)
        if found.evidence is not None and not found.evidence.table.is_empty():
            draw(figure, found.evidence, folder / f"{figure.id}.png")
        output.show(f"{figure.id}  {figure.title}", whole_lines=True)
        _tell(found)
        if not figure.claims:
            output.show(f"  {report.table(found)[2]}", whole_lines=True)
    _write(studied, folder, " ".join(["hourglass paper", *ids, *(["--quick"] if quick else [])]))
    if pages is not None:
        _copy(studied, folder, pages)
    every = [verdict for one in studied for verdict in one.verdicts]
    if every:
        output.show(report.counts(every), whole_lines=True)
    output.show(f"report   {folder / 'report.html'}", whole_lines=True)


def _tell(found: Studied) -> None:
    """The verdicts of a figure, and with which settings of an unknown a sentence that differs holds."""
    for one in found.verdicts:
        word = "not counted" if one.claim.apart else one.word
        lines = [
            f"  {word:13}  {one.claim.says} ({one.claim.tolerance})",
            f"  {'':13}  measured: {one.measured}",
            *(f"  {'':13}  {told}" for told in (one.claim.apart, one.because) if told),
        ]
        output.show("\n".join(lines), whole_lines=True)
    for id, says, setting, measured, _ in report.conditions([found]).rows:
        output.show(f"  {'would hold':13}  {id} {says}: {setting}; {measured}", whole_lines=True)


def _write(studied: list[Studied], folder: Path, how: str) -> None:
    for page, own in report.pages(studied):
        (folder / f"{page.name}.md").write_text(report.markdown(page, own, how, folder), "utf-8")
    (folder / "report.html").write_text(report.whole(studied, folder), "utf-8")


def _copy(studied: list[Studied], folder: Path, pages: Path) -> None:
    """The pages of the papers and their pictures, for the documentation."""
    pages.mkdir(parents=True, exist_ok=True)
    for page, _ in report.pages(studied):
        shutil.copy(folder / f"{page.name}.md", pages)
    for one in studied:
        if (picture := folder / f"{one.figure.id}.png").is_file():
            shutil.copy(picture, pages)
