# SPDX-License-Identifier: Apache-2.0
"""A study as one Markdown page."""

from hourglass.studies import wording
from hourglass.studies.study import StudyResult
from hourglass.studies.verdicts import CellVerdict


def markdown(result: StudyResult) -> str:
    """Return the page."""
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# Study {result.study.name}", ""]
    lead = f"{result.study.description}. Made by `{wording.command(result)}` ({wording.about(result)})."
    lines += [f"{lead} {wording.counts(result)}.", ""]
    lines += [result.study.about, ""] if result.study.about else []
    for part, rows in wording.parts(result):
        lines += [f"## {wording.title(part, result)}", "", *([part.table.about, ""] if part.table.about else [])]
        if not rows:
            lines += [f"Not run: {wording.skip_reason(part, result)}.", ""]
            continue
        numbers = wording.shown_columns(result, rows)
        head = ["setting", "figure", *(result.columns[number] or "value" for number in numbers)]
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for row in rows:
            verdicts = [row[number] for number in numbers]
            limit = _common_limit(verdicts)
            title = f"{row[0].line.title}: {limit}" if limit else row[0].line.title
            cells = [_cell(verdict, limit) for verdict in verdicts]
            lines.append("| " + " | ".join([row[0].line.label, title, *cells]) + " |")
        listed = wording.notes(rows)
        lines += ["", *(f"* {note}" for note in listed), *([""] if listed else [])]
    return "\n".join(lines).rstrip("\n") + "\n"


def _common_limit(verdicts: list[CellVerdict]) -> str:
    """Return the limit that all cells with a criterion have, or an empty string."""
    limits = {verdict.limit for verdict in verdicts if verdict.criterion is not None}
    return limits.pop() if len(limits) == 1 else ""


def _cell(verdict: CellVerdict, common_limit: str) -> str:
    if not verdict.cell.runs or verdict.verdict in ("skipped", "failed"):
        return verdict.verdict if verdict.cell.runs else "-"
    if verdict.gap is not None:
        text = f"{verdict.text} ({wording.percent(verdict.gap)} %)"
        return f"{text} ok" if verdict.verdict == "ok" else f"**{text}** {verdict.verdict}"
    if verdict.verdict in ("", "ok"):
        return f"{verdict.text} {verdict.verdict}".strip()
    limit = "" if verdict.limit == common_limit else verdict.limit
    why = verdict.reason if verdict.verdict == "regressed" else limit
    return f"**{verdict.text}** {verdict.verdict}{f' ({why})' if why else ''}"
