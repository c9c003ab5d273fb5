# SPDX-License-Identifier: Apache-2.0
"""Show a run in a notebook: its name and the sections of its summary as HTML tables."""

from html import escape
from typing import TYPE_CHECKING

from hourglass.results.sections import Section, sections, value_text

if TYPE_CHECKING:
    from hourglass.results.recording import Recording

NOTHING = "-"


def html(run: "Recording") -> str:
    """Return the run as HTML."""
    about = f"{run.name}: {run.test.name}, Linux {run.info.kernel.release}, seed {run.info.seed}"
    tables = [
        _table(section.without_empty_columns())
        for section in sections(run.summary)
        if section.rows and not section.detail
    ]
    return "".join([f"<p><b>{escape(about)}</b><br>{escape(str(run.path))}</p>", *tables])


def _table(section: Section) -> str:
    heads = [" ".join(filter(None, (column.title, column.unit))) for column in section.columns]
    rows = [
        "".join(
            f"<td>{escape(value_text(value, column.kind, NOTHING))}</td>"
            for value, column in zip(row, section.columns, strict=True)
        )
        for row in section.rows
    ]
    title = " ".join(filter(None, (section.title or section.about, section.unit and f"({section.unit})")))
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"
