# SPDX-License-Identifier: Apache-2.0
"""What was found, as Markdown with pictures beside it, and as one HTML file that holds them."""

import base64
import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hourglass.papers import paper_b
from hourglass.papers.beyond import COMPARED, QUANTITIES, side_by_side
from hourglass.papers.model import Verdict
from hourglass.papers.study import Studied


@dataclass(frozen=True)
class Page:
    """One page: its file's name without suffix, its title, and what is to be known before the figures."""

    name: str
    title: str
    notes: tuple[str, ...] = ()


PAGES = {
    "A": Page(
        "paper-a",
        "Paper A: The New TCP Modules on the Block: A Performance Evaluation of TCP Pacing and TCP Small Queues (2021)",
    ),
    "B": Page("paper-b", "Paper B: Towards 1 ms WLAN Latency (2018)", paper_b.DIFFERENCES),
    "beyond": Page("beyond", "Beyond the papers"),
}
"""By the first part of a figure's id."""

HEAD = ("claim", "the paper says", "tolerance", "measured", "verdict", "what the data show")
STYLE = """body{font:15px sans-serif;max-width:75em;margin:2em auto}
td,th{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
img{max-width:100%}table{border-collapse:collapse;font-size:13px}"""

Table = tuple[Sequence[str], Sequence[Sequence[str]], str]
"""Head, rows, and a sentence above."""


def counts(verdicts: Sequence[Verdict]) -> str:
    """ "12 hold, 3 differ, 20 cannot be had" """
    found = Counter(one.word for one in verdicts)
    words = {"holds": "hold", "differs": "differ", "cannot be had": "cannot be had"}
    return ", ".join(f"{found[word]} {words[word]}" for word in words)  # type: ignore[index]


def cells(one: Verdict) -> tuple[str, ...]:
    return (one.claim.id, one.claim.says, one.claim.tolerance, one.measured, one.word, one.because or "")


def table(one: Studied) -> Table:
    """A figure's verdicts; or, where there is no claim, its settings side by side."""
    if one.figure.claims:
        return HEAD, [cells(verdict) for verdict in one.verdicts], ""
    if one.evidence is None:
        return (), [], one.reason
    found = side_by_side(one.figure, one.evidence)
    return found.head, found.rows, f"{QUANTITIES[COMPARED]}, differs most: {'; '.join(found.largest)}."


def learned(verdicts: Sequence[Verdict]) -> list[str]:
    """What came out otherwise than the paper says, a line each; why is in the tables."""
    found = [
        f"* [{one.figure}](#{one.figure.lower()}) says: {one.claim.says}. Here: {one.measured}."
        for one in verdicts
        if one.word == "differs"
    ]
    return ["What came out otherwise:", "", *found, ""] if found else []


def pages(studied: Sequence[Studied]) -> list[tuple[Page, list[Studied]]]:
    """The pages that there is something for, with their figures."""
    found = [(page, [one for one in studied if one.figure.id.split("-")[0] == key]) for key, page in PAGES.items()]
    return [(page, own) for page, own in found if own]


def markdown(page: Page, studied: Sequence[Studied], how: str, folder: Path) -> str:
    """One page; pictures are ID.png beside it, in `folder`."""
    every = [verdict for one in studied for verdict in one.verdicts]
    verdicts = f"; every verdict on this page is computed. {counts(every)}." if every else "."
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# {page.title}", "", f"Made by `{how}`{verdicts}", ""]
    lines += [*page.notes, ""] if page.notes else []
    lines += learned(every)
    for one in studied:
        lines += [f"## {one.figure.id}", "", f"{one.figure.title}.", ""]
        if (folder / f"{one.figure.id}.png").is_file():
            lines += [f"![{one.figure.title}]({one.figure.id}.png)", ""]
        head, rows, above = table(one)
        lines += [above, ""] if above else []
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def whole(studied: Sequence[Studied], folder: Path) -> str:
    """One self-contained HTML file of all figures."""
    every = [verdict for one in studied for verdict in one.verdicts]
    parts = [f"<!doctype html><meta charset=utf-8><title>Papers</title><style>{STYLE}</style><h1>{counts(every)}</h1>"]
    for one in studied:
        parts.append(f"<h2>{html.escape(one.figure.id)}: {html.escape(one.figure.title)}</h2>")
        picture = folder / f"{one.figure.id}.png"
        if one.evidence is not None and picture.is_file():
            data = base64.b64encode(picture.read_bytes()).decode()
            parts.append(f'<img alt="{html.escape(one.figure.title)}" src="data:image/png;base64,{data}">')
        head, rows, above = table(one)
        titles = "".join(f"<th>{html.escape(word)}" for word in head)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}" for text in row) for row in rows)
        parts.append(f"<p>{html.escape(above)}<table><tr>{titles}{body}</table>")
    return "\n".join(parts)
