# SPDX-License-Identifier: Apache-2.0
"""Print the figures of a study's columns next to those of the reference, and the likely causes of misses."""

from rich.text import Text

from hourglass.cli import output
from hourglass.results.stats import short
from hourglass.studies import wording
from hourglass.studies.lines import RECORDS
from hourglass.studies.study import StudyResult
from hourglass.studies.verdicts import CellVerdict
from hourglass.studies.wording import Row

STYLES = {"ok": "green", "missed": "red", "undecided": "yellow"}


def show(result: StudyResult) -> None:
    """Print a table for each column that is compared."""
    for number, column in enumerate(result.columns):
        if column != result.study.reference:
            _show_column(result, number, column)
    for line, column, causes in result.causes:
        title = ", ".join(filter(None, (line.part.id, line.label, column)))
        output.show("", f"{title}: other differences", whole_lines=True)
        output.show("\n".join(f"  {cause}" for cause in causes), whole_lines=True)


def _show_column(result: StudyResult, number: int, column: str) -> None:
    reference = result.study.reference
    table = output.bare()
    for header in ("figure", reference, column, "change, %", "95 %", "n", "verdict"):
        left = header in ("figure", "verdict")
        table.add_column(header, justify="left" if left else "right", no_wrap=True)
    records, before = [], None
    for line in result.matrix:
        verdict = line[number]
        setting = ", ".join(filter(None, (verdict.line.part.id, verdict.line.label)))
        if verdict.line.figure is RECORDS:
            records.append(f"{setting}: {verdict.cell.why}")
        elif verdict.verdict in STYLES and verdict.line.is_compared and not _is_unmoved(verdict):
            if setting != before:
                table.add_row(setting)
            before = setting
            table.add_row(*_row(result, line, verdict))
    if table.row_count:
        output.show(table)
    elif records:
        output.show("no figure moved by more than its seeds differ")
    if records:
        output.show("", *records, whole_lines=True)


def _is_unmoved(verdict: CellVerdict) -> bool:
    return bool(verdict.line.moves) and verdict.verdict == "ok"


def _row(result: StudyResult, line: Row, verdict: CellVerdict) -> tuple[str | Text, ...]:
    base = line[result.columns.index(result.study.reference)].cell.value
    gap = "-" if verdict.gap is None else wording.percent(verdict.gap)
    interval = "-" if verdict.interval is None else " to ".join(map(wording.percent, verdict.interval))
    name = verdict.line.figure.label or verdict.line.figure.name
    return (
        f"  {name}", "-" if base is None else short(base), verdict.text, gap, interval,
        str(len(verdict.cell.present)), Text(verdict.verdict, style=STYLES[verdict.verdict]),
    )  # fmt: skip
