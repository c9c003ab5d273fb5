# SPDX-License-Identifier: Apache-2.0
"""A study as one HTML file: the tables of its parts, and charts of the settings that are compared with a reference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from hourglass.report.data import compared_charts
from hourglass.report.rendering import json_text, render
from hourglass.results.run_files import SCENARIO_FILE
from hourglass.studies import wording
from hourglass.studies.reader import StudyPart
from hourglass.studies.study import StudyResult
from hourglass.studies.verdicts import CellVerdict
from hourglass.studies.wording import Row


@dataclass(frozen=True)
class PageCell:
    """A figure: its text, the word of its verdict, its details, and the first of its runs."""

    text: str
    word: str
    title: str
    link: str


@dataclass(frozen=True)
class PagePart:
    """A part of a study as the template uses it. `skipped`: the reason why it was not run."""

    id: str
    name: str
    title: str
    about: str
    skipped: str
    head: list[str]
    rows: list[tuple[str, str, list[PageCell]]]
    notes: list[str]
    causes: list[tuple[str, Sequence[str]]]
    charts: list[tuple[str, Markup]]


def page(result: StudyResult, folder: Path | None = None) -> str:
    """Return the page. `folder`: of its file; default: that of the study."""
    study = result.study
    quick = f"{'Fewer' if result.options.seeds else 'One seed and fewer'} settings: --quick. "
    lead = (
        f"{wording.about(result)}. {quick if result.options.quick else ''}{wording.counts(result)}. "
        f"Baseline: {result.baseline or 'none'}."
    )
    return render(
        "verdicts.html.j2",
        ("charts.js", "verdicts.js"),
        title=": ".join(filter(None, (study.name, study.description))),
        lead=lead,
        command=wording.command(result),
        about=study.about,
        meanings=list(wording.MEANINGS.items()),
        parts=[_part(result, part, lines, folder) for part, lines in wording.parts(result)],
        failures=[f"{failure.cell}: {failure.reason}; log: {failure.log}" for failure in result.failures],
    )


def _part(result: StudyResult, part: StudyPart, lines: Sequence[Row], folder: Path | None) -> PagePart:
    numbers = wording.shown_columns(result, lines)
    is_compared = bool(result.study.reference and lines)
    return PagePart(
        id=part.id,
        name=part.table.title,
        title=wording.title(part, result),
        about=part.table.about,
        skipped="" if lines else wording.skip_reason(part, result),
        head=["setting", "figure", *(result.columns[number] or "value" for number in numbers)],
        rows=list(_rows(result, lines, numbers, folder)),
        notes=wording.notes(lines),
        causes=[
            (" ".join(filter(None, (line.label, f"with {column}"))), causes)
            for line, column, causes in (result.causes if is_compared else ())
            if line.part.id == part.id
        ],
        charts=list(_charts(result, part.id)) if is_compared else [],
    )


def _rows(
    result: StudyResult, lines: Sequence[Row], numbers: Sequence[int], folder: Path | None
) -> Iterator[tuple[str, str, list[PageCell]]]:
    """Yield the setting, the figure and the cells of each line. Consecutive lines of a setting name it once."""
    before = None
    for line in lines:
        label = line[0].line.label
        yield ("" if label == before else label, line[0].line.title, [_cell(result, line[n], folder) for n in numbers])
        before = label


def _charts(result: StudyResult, part: str) -> Iterator[tuple[str, Markup]]:
    """Yield the label and the charts of each setting whose runs have samples, the reference first."""
    runs = result.parts[part]
    names = sorted(result.columns, key=lambda column: column != result.study.reference)
    for label in runs.settings:
        recordings = {name: [runs.open(key) for key in runs.complete(label, name).values()] for name in names}
        if drawn := compared_charts(recordings):
            yield label, json_text(drawn)


def _cell(result: StudyResult, verdict: CellVerdict, folder: Path | None) -> PageCell:
    cell = verdict.cell
    path = wording.run_path(result, cell.runs[0], folder) if cell.runs else ""
    seeds = ", ".join("-" if value is None else f"{value:g}" for value in cell.values)
    notes = [
        f"{cell.column}: {verdict.line.figure.title}", f"seeds: {seeds}" if len(cell.values) > 1 else "",
        f"criterion: {verdict.limit} ({verdict.criterion.source})" if verdict.criterion else verdict.limit,
        "" if verdict.gap is None else wording.difference(verdict),
        f"{verdict.verdict}: {verdict.reason}" if verdict.reason else "",
        f"hourglass report {path}" if path else "",
    ]  # fmt: skip
    text = verdict.text + ("" if verdict.gap is None else f" ({wording.percent(verdict.gap)} %)")
    return PageCell(text, verdict.verdict, "\n".join(filter(None, notes)), path and f"{path}/{SCENARIO_FILE}")
