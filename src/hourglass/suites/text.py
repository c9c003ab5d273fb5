# SPDX-License-Identifier: Apache-2.0
"""What a suite found, as data (`--json`), as Markdown, and as verdicts for JUnit XML."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hourglass.contract.summary import Check
from hourglass.suites.file import Part
from hourglass.suites.judge import Judged
from hourglass.suites.study import Studied
from hourglass.testing.judge import Verdict

Matrix = Sequence[Sequence[Judged]]
"""A list of cells for each line."""

WORDS = {"passed": "{}", "missed": "**{}** missed", "shown": "{}", "none": "-"}


def counts(matrix: Matrix) -> str:
    """ "12 marks kept, 3 missed; 90 figures without a mark; 2 regressions" """
    cells = [one for line in matrix for one in line]
    found = Counter(one.word for one in cells)
    worse = sum(bool(one.worse) for one in cells)
    return (
        f"{found['passed']} marks kept, {found['missed']} missed; {found['shown']} figures without a mark; "
        f"{worse} regressions"
    )


def about(studied: Studied) -> str:
    """On what it was run."""
    quick = ", --quick" if studied.quick else ""
    seeds = "" if not studied.again else f"{studied.again[0]} to {studied.again[-1]}"
    again = f"; what was worse at first was asked again with seeds {seeds}" if seeds else ""
    return f"Linux {studied.kernel}{quick}, {studied.runs} runs{again}"


def command(studied: Studied) -> str:
    """What makes it again."""
    words = [studied.sources.get(cc, cc) for cc in studied.ccs]
    asked = [] if (*words,) == studied.suite.ccs else ["--cc", ",".join(words)]
    quick = ["--quick"] if studied.quick else []
    seeds = ["--seeds", "-".join(map(str, sorted({studied.seeds[0], studied.seeds[-1]})))] if studied.seeds else []
    return " ".join(["hourglass suite", studied.suite.source, "--kernel", studied.kernel, *asked, *quick, *seeds])


def parts(studied: Studied, matrix: Matrix) -> Iterator[tuple[Part, list[Sequence[Judged]]]]:
    """Each part with its lines, in the file's order; without lines it was not run."""
    for part in studied.suite.parts:
        yield part, [line for line in matrix if line and line[0].line.part.id == part.id]


def columns(studied: Studied, lines: Sequence[Sequence[Judged]]) -> list[int]:
    """The places of the columns in which a part has anything."""
    return [place for place in range(len(studied.ccs)) if any(line[place].cell.runs for line in lines)]


def left_out(lines: Sequence[Sequence[Judged]]) -> list[str]:
    """Which columns a part has not, and why."""
    found: dict[str, list[str]] = {}
    for judged in lines[0] if lines else ():
        if not judged.cell.runs:
            found.setdefault(judged.cell.why, []).append(judged.cell.cc)
    return [f"{', '.join(ccs)}: {why}" for why, ccs in found.items()]


def notes(lines: Sequence[Sequence[Judged]]) -> list[str]:
    """Whose the marks are, and what is known of those that are missed; a line each."""
    every = [one for line in lines for one in line if one.mark is not None]
    marks: dict[tuple[str, str], list[str]] = {}
    for one in every:
        if one.mark:
            marks.setdefault((one.line.row.says, one.mark.source), []).append(one.mark.keep)
    found = [
        f"{says}{f' {keeps[0]}' if len(set(keeps)) == 1 else ''}: {source}" for (says, source), keeps in marks.items()
    ]
    missed: dict[tuple[str, str], list[str]] = {}
    for one in every:
        if one.mark and one.word == "missed" and one.mark.missed:
            missed.setdefault((one.line.row.says, one.mark.missed), []).append(one.cell.cc)
    found += [f"{says}, missed by {', '.join(dict.fromkeys(ccs))}: {why}" for (says, why), ccs in missed.items()]
    return list(dict.fromkeys(found))


def name(judged: Judged) -> str:
    """What a line is called."""
    unit = f", {judged.line.row.unit}" if judged.line.row.unit else ""
    return f"{judged.line.row.says}{unit}"


def data(studied: Studied, matrix: Matrix) -> dict[str, Any]:
    """The object of `--json`."""
    return {
        "schema": 1,
        "suite": studied.suite.name,
        "kernel": studied.kernel,
        "quick": studied.quick,
        "ok": not studied.failed and not any(one.worse for line in matrix for one in line),
        "again": list(studied.again),
        "not_run": dict(studied.why),
        "failed": list(studied.failed),
        "lines": [
            {
                "id": line[0].line.id, "part": line[0].line.part.id, "setting": line[0].line.label,
                "figure": line[0].line.row.figure, "unit": line[0].line.row.unit,
                "cells": {one.cell.cc: _cell(one) for one in line if one.cell.runs},
            }
            for line in matrix
        ],
    }  # fmt: skip


def _cell(one: Judged) -> dict[str, Any]:
    return {
        "value": one.cell.value, "seeds": list(one.cell.values), "word": one.word, "mark": one.limit,
        "source": one.mark.source if one.mark else "", "worse": one.worse, "why": one.cell.why,
        "runs": [f"runs/{key}" for key in one.cell.runs],
    }  # fmt: skip


def markdown(studied: Studied, matrix: Matrix) -> str:
    """One page."""
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# Suite {studied.suite.name}", ""]
    lines += [f"{studied.suite.description}. Made by `{command(studied)}` ({about(studied)}). {counts(matrix)}.", ""]
    lines += [studied.suite.about, ""] if studied.suite.about else []
    for part, own in parts(studied, matrix):
        lines += [f"## {part.title}", "", *([part.about, ""] if part.about else [])]
        if not own:
            lines += [f"Not run: {studied.why.get(part.id, 'nothing is left of it')}.", ""]
            continue
        places = columns(studied, own)
        head = ["setting", "figure", *(studied.ccs[place] for place in places)]
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for line in own:
            cells = [_told(line[place]) for place in places]
            lines.append("| " + " | ".join([line[0].line.label, name(line[0]), *cells]) + " |")
        told = [*notes(own), *left_out(own)]
        lines += ["", *(f"* {one}" for one in told), *([""] if told else [])]
    return "\n".join(lines).rstrip("\n") + "\n"


def _told(one: Judged) -> str:
    if one.word == "none" and one.cell.runs:
        return "none"
    passed = " kept" if one.word == "passed" else ""
    missed = f" ({one.limit})" if one.word == "missed" and one.mark and one.mark.bound else ""
    worse = f" (worse: {one.worse})" if one.worse else ""
    return WORDS[one.word].format(one.text) + passed + missed + worse


def verdicts(studied: Studied, matrix: Matrix) -> list[Verdict]:
    """A verdict for each column, a check for each of its cells; not kept is what is worse."""
    found = []
    for place, cc in enumerate(studied.ccs):
        cells = [line[place] for line in matrix if line[place].cell.runs]
        found.append(Verdict(f"{studied.suite.name}.{studied.kernel}.{cc}", None, [_check(one) for one in cells]))
    return found


def _check(one: Judged) -> Check:
    bound = one.limit or "as before"
    reason = one.worse or one.cell.why
    ok = not one.worse and not one.cell.failed
    if one.worse:
        reason = f"{reason}; run: {' '.join(map(str, one.cell.runs))}"
    return Check(figure=one.line.id, bound=bound, value=one.cell.value, unit=one.line.row.unit, ok=ok, reason=reason)
