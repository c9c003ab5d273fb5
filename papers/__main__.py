# SPDX-License-Identifier: Apache-2.0
"""Run `python -m papers`: make the figures' runs, print the verdicts, draw the pictures, write the pages."""

import argparse
import shutil
from pathlib import Path

from rich.console import Console
from rich.status import Status

from hourglass.errors import InputError, program
from papers import pages, stamp
from papers.draw import draw
from papers.study import FIGURES, GROUPS, JudgedFigure, PaperRuns, judge_figure, selected

OUT = Path("runs/papers")


class PaperProgress:
    """Shows the progress of a study on a status line."""

    def __init__(self, status: Status) -> None:
        self.status, self.complete, self.total = status, 0, 0

    def kernel(self, fraction: float, step: str) -> None:
        """Show the build of a kernel."""
        self.status.update(f"kernel: {fraction:.0%} {step}")

    def begin(self, existing: int, total: int, jobs: int | None) -> None:
        """Show the number of existing runs."""
        self.complete, self.total = existing, total
        self.status.update(f"{self.complete} of {self.total} runs")

    def done(self, cell: str, failure: str | None) -> None:
        """Show that another run has ended."""
        self.complete += 1
        self.status.update(f"{self.complete} of {self.total} runs")
        if failure is not None:
            self.status.console.print(f"failed: {cell}: {failure}", markup=False, highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m papers", description="Reproduce the papers' figures and check their claims."
    )
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help=f"{', '.join(GROUPS)}, or a figure like {next(iter(FIGURES))}"
    )
    parser.add_argument("--quick", action="store_true", help="one seed per setting, and only figures with claims")
    parser.add_argument("--kernel", metavar="NAME", help="a kernel other than the paper's")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"for runs and pages; default: {OUT}")
    parser.add_argument("--pages", type=Path, metavar="DIR", help="copy the pages and their pictures to DIR")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="simultaneous runs; default: one per CPU")
    options = parser.parse_args(arguments)
    program(lambda: reproduce(options))


def reproduce(options: argparse.Namespace) -> None:
    """Judge the figures in their order, then write the pages."""
    figures = selected(options.figures, options.quick)
    commit = stamp.head() if options.pages is not None else ""
    if commit is None:
        raise InputError("--pages", str(options.pages), "the sources have uncommitted changes; commit them first")
    if options.jobs is not None and options.jobs < 1:
        raise InputError("--jobs", options.jobs, "at least 1")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", str(options.out), str(error.strerror)) from None
    judged: list[JudgedFigure] = []
    with Console(stderr=True).status("") as status:
        runs = PaperRuns(options.out, quick=options.quick, jobs=options.jobs, kernel=options.kernel,
                         progress=PaperProgress(status))  # fmt: skip
        for figure in figures:
            judged.append(judge_figure(figure, runs))
            evidence = judged[-1].evidence
            if evidence is not None and not evidence.table.is_empty():
                draw(figure, evidence, options.out / f"{figure.id}.png")
            print("\n".join([f"{figure.id}  {figure.title}", *lines(judged[-1])]), flush=True)
    command = " ".join(["python -m papers", *options.figures, *(["--quick"] if options.quick else [])])
    for path in write(judged, command, options.out):
        print(f"page     {path}")
        if options.pages is not None:
            options.pages.mkdir(parents=True, exist_ok=True)
            path.write_text(stamped(path, commit, runs.releases, options.quick), "utf-8")
            for file in (path, *(options.out / f"{part.figure.id}.png" for part in judged)):
                if file.is_file():
                    shutil.copy(file, options.pages)
    if verdicts := [verdict for part in judged for verdict in part.verdicts]:
        print(pages.counts(verdicts))


def stamped(path: Path, commit: str, releases: dict[str, str], quick: bool) -> str:
    """Return a page with its stamp. `releases`: of the kernels of all runs."""
    inputs = stamp.of_page(path.stem)
    names = stamp.kernels(inputs) & releases.keys() or releases.keys()
    ordered = sorted((releases[name] for name in names), key=lambda release: [*map(int, release.split("."))])
    seeds = "1" if quick else stamp.seeds(inputs)
    return stamp.stamped(path.read_text("utf-8"), commit, ordered, seeds, stamp.digest(inputs))


def lines(judged: JudgedFigure) -> list[str]:
    """Return the verdicts of a figure as lines, and those that differ at the settings of an unknown."""
    text = []
    for verdict in judged.verdicts:
        claim = verdict.claim
        word = "excluded" if claim.excluded else verdict.word
        text.append(f"  {word:8}  {claim.sentence} ({claim.tolerance})")
        text += [
            f"  {'':8}  {note}" for note in (f"measured: {verdict.measured}", claim.excluded, verdict.reason) if note
        ]
    for setting in dict.fromkeys(verdict.setting for verdict in judged.unknowns):
        at_setting = [verdict for verdict in judged.unknowns if verdict.setting == setting]
        words = {verdict.claim.id: verdict.word for verdict in judged.verdicts}
        changes = [
            f"{verdict.claim.id} {verdict.word}" for verdict in at_setting if verdict.word != words[verdict.claim.id]
        ]
        text.append(f"  {setting}: {', '.join(changes) or 'the same verdicts'}")
    return text if judged.figure.claims else [f"  {pages.table(judged).lead}"]


def write(judged: list[JudgedFigure], command: str, folder: Path) -> list[Path]:
    """Write the pages and return their paths."""
    paths = []
    for page, parts in pages.pages(judged):
        paths.append(folder / f"{page.name}.md")
        paths[-1].write_text(pages.markdown(page, parts, command, folder), "utf-8")
    return paths


if __name__ == "__main__":
    main()
