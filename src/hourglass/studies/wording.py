# SPDX-License-Identifier: Apache-2.0
"""The texts that all renderers of a study share."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hourglass.studies.reader import StudyPart
from hourglass.studies.study import StudyResult
from hourglass.studies.verdicts import CellVerdict

Row = list[CellVerdict]
FEW_PERCENT = 10.0
"""Below it, hundredths are shown."""

MEANINGS = {
    "ok": "meets its criterion, or is as the reference",
    "missed": "misses its criterion, or differs from the reference",
    "undecided": "the runs do not decide",
    "regressed": "worse than the baseline",
    "failed": "its runs failed",
    "skipped": "not run, or not shown by the run",
    "": "no criterion",
}
"""The verdicts and their meanings, in the order of a key."""


def counts(result: StudyResult) -> str:
    """Return "12 ok, 3 missed, 2 regressed; 90 figures without a criterion"."""
    judged = (verdict for verdict in result.verdicts if verdict.verdict or not verdict.line.is_compared)
    number = Counter[str](verdict.verdict for verdict in judged)
    parts = [f"{number[word]} {word}" for word in MEANINGS if word and (number[word] or word in ("ok", "missed"))]
    free = f"; {number['']} figures without a criterion" if number[""] else ""
    return ", ".join(parts) + free


def about(result: StudyResult) -> str:
    """Return the kernel and the number of runs."""
    quick = ", --quick" if result.options.quick else ""
    seeds = result.repeated
    repeated = f"; suspected regressions were rerun with seeds {seeds[0]} to {seeds[-1]}" if seeds else ""
    releases = [f"{column}: Linux {kernel.release}" for column, kernel in result.kernels.items()]
    kernels = ", ".join(releases) if result.study.reference and releases else f"Linux {result.kernel}"
    return f"{kernels}{quick}, {len({cell.key for cell in result.cells})} runs{repeated}"


def command(result: StudyResult) -> str:
    """Return the command that makes the result again."""
    options, axis = result.options, result.study.axis
    if result.study.command:
        return f"hourglass {result.study.command}"
    values = [options.sources.get(column, column) for column in result.columns]
    columns = [f"--{axis}" if axis == "cc" else "--columns", ",".join(values)]
    seeds = "-".join(map(str, sorted({options.seeds[0], options.seeds[-1]}))) if options.seeds else ""
    parts = ["hourglass study", result.study.source, "--kernel", result.kernel]
    parts += columns if tuple(values) != result.study.columns else []
    parts += ["--quick"] if options.quick else []
    return " ".join([*parts, *(["--seeds", seeds] if seeds else [])])


def run_path(result: StudyResult, key: str, folder: Path | None = None) -> str:
    """Return the path of a run from a folder, by default that of the study."""
    return f"{os.path.relpath(result.runs, folder or result.out)}/{key}"


def percent(value: float) -> str:
    """Return a difference with the digits that matter."""
    return f"{value:+.2f}" if abs(value) < FEW_PERCENT else f"{value:+.0f}"


def difference(verdict: CellVerdict) -> str:
    """Return "+1.20 % of the reference, 95 % interval +0.90 to +1.50"."""
    interval = "" if verdict.interval is None else f", 95 % interval {' to '.join(map(percent, verdict.interval))}"
    return "" if verdict.gap is None else f"{percent(verdict.gap)} % of the reference{interval}"


def parts(result: StudyResult) -> Iterator[tuple[StudyPart, list[Row]]]:
    """Yield each part with its lines, in the file's order; a part without lines was not run."""
    for part in result.study.parts:
        yield part, [line for line in result.matrix if line[0].line.part.id == part.id]


def title(part: StudyPart, result: StudyResult) -> str:
    """Return the title of a part; of a study without parts its description."""
    return part.table.title if part.id else result.study.description or result.study.name


def skip_reason(part: StudyPart, result: StudyResult) -> str:
    """Return the reason why a part was not run."""
    return result.skipped.get(part.id, "no setting is left")


def shown_columns(result: StudyResult, lines: Sequence[Row]) -> list[int]:
    """Return the columns of a part that have runs."""
    return [number for number in range(len(result.columns)) if any(line[number].cell.runs for line in lines)]


def notes(lines: Sequence[Row]) -> list[str]:
    """Return the sources of the criteria, the mechanisms of misses, and the reasons for columns that are left out."""
    judged = [verdict for line in lines for verdict in line if verdict.criterion is not None]
    bounds: dict[tuple[str, str], list[str]] = {}
    misses: dict[tuple[str, str], list[str]] = {}
    for verdict in judged:
        figure, criterion = verdict.line.figure.title, verdict.criterion
        assert criterion is not None
        bounds.setdefault((figure, criterion.source), []).append(str(criterion.bound))
        if verdict.verdict == "missed" and criterion.missed:
            misses.setdefault((figure, criterion.missed), []).append(verdict.cell.column)
    listed = [
        f"{figure}{f' {options[0]}' if len(set(options)) == 1 else ''}: {source}"
        for (figure, source), options in bounds.items()
    ]
    listed += [
        f"{figure}, missed by {', '.join(dict.fromkeys(names))}: {why}" for (figure, why), names in misses.items()
    ]
    omitted: dict[str, list[str]] = {}
    for verdict in lines[0] if lines else ():
        if not verdict.cell.runs:
            omitted.setdefault(verdict.cell.why, []).append(verdict.cell.column)
    return [*dict.fromkeys(listed), *(f"{', '.join(names)}: {why}" for why, names in omitted.items())]
