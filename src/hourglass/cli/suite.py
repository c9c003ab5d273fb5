# SPDX-License-Identifier: Apache-2.0
"""`hourglass suite`: an exam of congestion controls, as one page."""

import sys
from pathlib import Path

from hourglass import files
from hourglass.cli import output
from hourglass.cli.errors import MISSED
from hourglass.cli.progress import shown
from hourglass.cli.sweep import SOME_FAILED
from hourglass.contract.kernels import DEFAULT
from hourglass.errors import InputError
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.suites import baseline, file, text
from hourglass.suites.judge import FURTHER, doubted, judge
from hourglass.suites.page import page
from hourglass.suites.study import Studied, Study
from hourglass.suites.text import Matrix

SUITES = Path("suites")
"""Where suites go that are given no place, below the current directory; they share their runs."""
MOST_TOLD = 20


def run_suite(
    source: str,
    ccs: str | None,
    kernel: str | None,
    quick: bool,
    seeds: str | None,
    out: Path | None,
    jobs: int | None,
    before: Path | None,
    update: bool,
    junit: Path | None,
    json: bool,
) -> int:
    """Runs the suite, writes its page, prints what came out. The exit status: 1 when a cell is worse, 3 when runs
    failed."""
    suite = file.read(source)
    asked = [one.strip() for one in ccs.split(",")] if ccs is not None else []
    if not all(asked):
        raise InputError("--cc", ccs, "congestion controls with commas between, like cubic,bbr")
    if before is not None and baseline.read(before, suite.name) is None and not update:
        raise InputError("--baseline", str(before), "there is no such file; --update-baseline makes it")
    columns = [_column(one) for one in asked]
    for column, word in zip(columns, asked, strict=True):
        others = [one for one, name in zip(asked, columns, strict=True) if name == column and one != word]
        if others or (column != word and column in CONGESTION_CONTROLS):
            raise InputError("--cc", word, f"its column would be called {column!r}, as that of {[*others, column][0]}")
    sources = {column: word for column, word in zip(columns, asked, strict=True) if column != word}
    chosen = _seeds(seeds) if seeds is not None else baseline.SEEDS if update else ()
    folder = out or SUITES
    with shown() as progress:
        study = Study(
            suite, folder, ccs=columns, sources=sources, kernel=kernel or DEFAULT, quick=quick, seeds=chosen, jobs=jobs,
            progress=progress,
        )  # fmt: skip
        studied = study.made()
        place = before or baseline.place(studied)
        known = baseline.read(place, suite.name)
        if update:
            baseline.write(place, studied, known)
            known = baseline.read(place, suite.name)
        matrix = judge(studied, known)
        if not update and (again := doubted(matrix)):
            study.ask(again, FURTHER, baseline.SEEDS)
            studied = study.made()
            matrix = judge(studied, known)
    words = f"{place.name}" if known is not None else "none"
    _write(studied, matrix, words, folder)
    if junit is not None:
        from hourglass.testing import junit as form

        form.write(junit, text.verdicts(studied, matrix))
    if json:
        output.show_json(text.data(studied, matrix))
    else:
        _show(studied, matrix, words, folder)
    for one in studied.failed:
        print(f"hourglass: failed: {one}", file=sys.stderr)
    worse = any(one.worse for line in matrix for one in line)
    return MISSED if worse else SOME_FAILED if studied.failed else 0


def _column(word: str) -> str:
    """What a column is called: a congestion control of a user's own by its file or folder."""
    return Path(word).stem if word.endswith(".c") or "/" in word else word


def _seeds(text: str) -> tuple[int, ...]:
    """The seeds of `3` or `11-15`."""
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or not int(first) <= int(last or first) < 10**6:
        raise InputError("--seeds", text, "a seed, or a range of them, like 11-15")
    return tuple(range(int(first), int(last or first) + 1))


def _write(studied: Studied, matrix: Matrix, before: str, folder: Path) -> None:
    name = studied.suite.name
    with files.writing(folder, "the page"):
        files.write(folder / f"{name}.html", page(studied, matrix, before).encode())
        files.write(folder / f"{name}.md", text.markdown(studied, matrix).encode())


def _show(studied: Studied, matrix: Matrix, before: str, folder: Path) -> None:
    """The misses and what is worse, a line each; then the counts."""
    told = [one for line in matrix for one in line if one.worse] + [
        one for line in matrix for one in line if one.word == "missed" and not one.worse
    ]
    for one in told[:MOST_TOLD]:
        word = "worse" if one.worse else "missed"
        unit = f" {one.line.row.unit}" if one.line.row.unit and one.cell.value is not None else ""
        why = "; ".join(filter(None, (one.worse, one.limit and f"mark: {one.limit}")))
        where = " / ".join(filter(None, (one.line.part.id, one.line.label, one.line.row.says)))
        output.show(f"{word:7} {one.cell.cc:10} {where}: {one.text}{unit} ({why})", whole_lines=True)
    if len(told) > MOST_TOLD:
        output.show(f"… and {len(told) - MOST_TOLD} more")
    for id, why in studied.why.items():
        output.show(f"not run {id}: {why}", whole_lines=True)
    output.show("", f"{text.about(studied)}: {text.counts(matrix)}", whole_lines=True)
    output.show(f"baseline {before}", whole_lines=True)
    output.show(f"page     {folder / f'{studied.suite.name}.html'}", whole_lines=True)
