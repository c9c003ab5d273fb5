# SPDX-License-Identifier: Apache-2.0
"""The matrix of a suite as one HTML file without script: a cell leads to its run, its title says its mark."""

import html
from collections.abc import Sequence

from hourglass.suites import text
from hourglass.suites.judge import Judged
from hourglass.suites.study import RUNS, Studied
from hourglass.suites.text import Matrix

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 110rem; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .12rem .55rem; border: 1px solid #d8d8d8; text-align: right; white-space: nowrap; }
th { background: #f2f2f2; position: sticky; top: 0; } td:nth-child(-n+2), th:nth-child(-n+2) { text-align: left; }
td a { color: inherit; text-decoration: none; } td a:hover { text-decoration: underline; }
.passed { background: #d5efd9; color: #10491d; } .missed { background: #fbdcd8; color: #8a1208; }
.worse { background: #b3160b; color: #fff; font-weight: 600; } .none { color: #888; background: #f7f7f7; }
p { max-width: 60rem; } li { max-width: 60rem; color: #444; } .not-run { color: #8a5a00; } h2 { margin-top: 2rem; }
nav a { margin-right: 1rem; } .key td { border: 0; }
"""
KEY = (
    ("passed", "keeps a mark that somebody else has set"),
    ("missed", "misses it, as the baseline does"),
    ("worse", "worse than the baseline, or a miss of which none knows"),
    ("shown", "no mark: a figure that stands for itself"),
    ("none", "not run, or not shown by the run"),
)


def page(studied: Studied, matrix: Matrix, before: str) -> str:
    """The page. `before`: what the baseline is, in words."""
    title = f"{studied.suite.name}: {studied.suite.description}"
    few = "fewer settings" if studied.seeds else "one seed and fewer settings"
    quick = f"{few}: what --quick runs. " if studied.quick else ""
    lead = f"{text.about(studied)}. {quick}{text.counts(matrix)}. Baseline: {before}."
    body = [f"<h1>{_safe(title)}</h1><p>{_safe(lead)}</p><p><code>{_safe(text.command(studied))}</code></p>"]
    body += [f"<p>{_safe(studied.suite.about)}</p>"] if studied.suite.about else []
    body.append(_key())
    body.append(
        "<nav>" + "".join(f'<a href="#{one.id}">{_safe(one.title)}</a>' for one in studied.suite.parts) + "</nav>"
    )
    for part, lines in text.parts(studied, matrix):
        body.append(f'<h2 id="{part.id}">{_safe(part.title)}</h2>')
        body += [f"<p>{_safe(part.about)}</p>"] if part.about else []
        if not lines:
            body.append(f'<p class="not-run">Not run: {_safe(studied.why.get(part.id, "nothing is left of it"))}.</p>')
            continue
        body.append(_table(studied, lines))
        told = [*text.notes(lines), *text.left_out(lines)]
        body += [f"<ul>{''.join(f'<li>{_safe(one)}</li>' for one in told)}</ul>"] if told else []
    body += (
        [f"<h2>Runs that failed</h2><ul>{''.join(f'<li>{_safe(one)}</li>' for one in studied.failed)}</ul>"]
        if studied.failed
        else []
    )
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_safe(title)}</title>'
    return f"{head}<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"


def _safe(words: str) -> str:
    return html.escape(words)


def _key() -> str:
    rows = "".join(f'<tr><td class="{word}">1.23</td><td>{_safe(told)}</td></tr>' for word, told in KEY)
    return f'<table class="key">{rows}</table>'


def _table(studied: Studied, lines: Sequence[Sequence[Judged]]) -> str:
    places = text.columns(studied, lines)
    head = "".join(f"<th>{_safe(word)}</th>" for word in ("setting", "figure", *(studied.ccs[one] for one in places)))
    rows, before = [], None
    for line in lines:
        label = line[0].line.label
        first = _safe(label) if label != before else ""
        before = label
        cells = "".join(_cell(line[place]) for place in places)
        rows.append(f"<tr><td>{first}</td><td>{_safe(text.name(line[0]))}</td>{cells}</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _cell(one: Judged) -> str:
    """The figure in the colour of its word, with a link to the first of its runs."""
    seeds = ", ".join("-" if value is None else f"{value:g}" for value in one.cell.values)
    told = [
        f"{one.cell.cc}: {one.line.row.says}", f"seeds: {seeds}" if len(one.cell.values) > 1 else "",
        f"mark: {one.limit} ({one.mark.source})" if one.mark else "", f"worse: {one.worse}" if one.worse else "",
        one.cell.why,
        f"hourglass report {RUNS}/{one.cell.runs[0]}" if one.cell.runs else "",
    ]  # fmt: skip
    title = html.escape("\n".join(filter(None, told)), quote=True)
    shown = _safe(one.text)
    if one.cell.runs:
        shown = f'<a href="{RUNS}/{one.cell.runs[0]}/scenario.json">{shown}</a>'
    return f'<td class="{"worse" if one.worse else one.word}" title="{title}">{shown}</td>'
