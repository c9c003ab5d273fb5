# SPDX-License-Identifier: Apache-2.0
"""What was found, as Markdown with pictures beside it, and as one HTML file that holds them."""

import base64
import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hourglass.papers import paper_a, paper_b
from hourglass.papers.beyond import COMPARED, QUANTITIES, side_by_side
from hourglass.papers.model import Figure, Verdict
from hourglass.papers.study import Studied, Weighed


@dataclass(frozen=True)
class Page:
    """One page: its file's name without suffix, its title, what is to be known before the figures, and the head of
    the column of its claims."""

    name: str
    title: str
    notes: tuple[str, ...] = ()
    says: str = "the paper says"


KERNELS = (
    "A claim *holds* when a figure moved from one kernel to the next beyond what seeds differ by, and goes back when a"
    " sysctl tells the newer kernel not to make the change."
)

PAGES = {
    "A": Page(
        "paper-a",
        "Paper A: The New TCP Modules on the Block: A Performance Evaluation of TCP Pacing and TCP Small Queues (2021)",
        paper_a.NOTES,
    ),
    "B": Page("paper-b", "Paper B: Towards 1 ms WLAN Latency (2018)", paper_b.DIFFERENCES),
    "kernels": Page("kernels", "What six years of kernels changed", (KERNELS,), "with the newer kernel"),
    "beyond": Page("beyond", "Beyond the papers"),
}
"""By the first part of a figure's id."""

HEAD = ("tolerance", "measured", "verdict", "what the data show")
STYLE = """body{font:15px sans-serif;max-width:75em;margin:2em auto}
td,th{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
img{max-width:100%}table{border-collapse:collapse;font-size:13px}"""

CONDITIONS = (
    "The testbed of this page is what the paper tells, and a kernel's defaults where it tells nothing. A sentence that"
    " differs may depend on what is not told. Each such unknown was varied and the claims were judged again. Below is"
    " every setting with which a sentence that differs holds, and which sentences no longer do with it. Varied were:"
)
REPRODUCED = ("claim", "the paper says", "holds with", "measured there", "no longer holds")

NONE = "No setting that was tried reproduces:"

Table = tuple[Sequence[str], Sequence[Sequence[str]], str]
"""Head, rows, and a sentence above."""


def counts(verdicts: Sequence[Verdict]) -> str:
    """ "12 hold, 3 differ, 20 cannot be had", without what is not counted."""
    found = Counter(one.word for one in verdicts if not one.claim.apart)
    words = {"holds": "hold", "differs": "differ", "cannot be had": "cannot be had"}
    return ", ".join(f"{found[word]} {words[word]}" for word in words)  # type: ignore[index]


def cells(one: Verdict) -> tuple[str, ...]:
    return (one.claim.id, one.claim.says, one.claim.tolerance, one.measured, one.word, one.because or "")


def table(one: Studied) -> Table:
    """A figure's verdicts; or, where there is no claim, its settings side by side."""
    if one.figure.claims:
        head = ("claim", PAGES[_page(one.figure)].says, *HEAD)
        return head, [cells(verdict) for verdict in one.verdicts if not verdict.claim.apart], ""
    if one.evidence is None:
        return (), [], one.reason
    found = side_by_side(one.figure, one.evidence)
    return found.head, found.rows, f"{QUANTITIES[COMPARED]}, differs most: {'; '.join(found.largest)}."


def learned(verdicts: Sequence[Verdict]) -> list[str]:
    """What came out otherwise than the paper says, a line each; why is in the tables."""
    found = [
        f"* [{one.figure}](#{one.figure.lower()}) says: {one.claim.says}. Here: {one.measured}."
        for one in verdicts
        if one.word == "differs" and not one.claim.apart
    ]
    return ["What came out otherwise:", "", *found, ""] if found else []


def apart(studied: Sequence[Studied]) -> Table:
    """The sentences that are told and not counted."""
    found = [verdict for one in studied for verdict in one.verdicts if verdict.claim.apart]
    head = ("claim", "the paper says", "against it stands", "measured", "what the data show")
    rows = [(one.claim.id, one.claim.says, one.claim.apart, one.measured, one.because) for one in found]
    return head, rows, "Each was measured like the others; none is counted, whatever came out."


@dataclass(frozen=True)
class Conditions:
    """What would have to be true: a line for each thing that was varied, a row for each setting with which a sentence
    that differs holds, and the sentences for which there is none."""

    varied: list[str]
    rows: list[tuple[str, ...]]
    none: list[str]


def conditions(studied: Sequence[Studied]) -> Conditions:
    """Of what differs by default and was judged again."""
    rows: list[tuple[str, ...]] = []
    none: list[str] = []
    for one in studied:
        again = {verdict.claim.id for weighed in one.weighed for verdict in weighed.verdicts}
        for verdict in one.verdicts:
            if verdict.word == "differs" and verdict.claim.id in again:
                found = [row for weighed in one.weighed for row in _reproduced(one, weighed, verdict)]
                rows += found
                none += [] if found else [f"{verdict.claim.id} ({verdict.claim.says})"]
    return Conditions(_varied(studied) if rows or none else [], rows, none)


def _varied(studied: Sequence[Studied]) -> list[str]:
    """What each unknown is, once, with the figures and sweeps that it was varied in and the settings tried."""
    lines = []
    every = [(one.figure.id, weighed) for one in studied for weighed in one.weighed]
    for what in dict.fromkeys(weighed.unknown.what for _, weighed in every):
        own = [(id, weighed) for id, weighed in every if weighed.unknown.what == what]
        sweeps = [f"`scenarios/papers/{weighed.unknown.sweep}.toml`" for _, weighed in own if weighed.unknown.sweep]
        tried = _shortest(list(dict.fromkeys(setting for _, weighed in own for setting in weighed.settings)))
        place = f" ({', '.join(sweeps)})" if sweeps else ""
        lines.append(f"{', '.join(id for id, _ in own)}: {what}{place}. Tried: {'; '.join(tried)}.")
    return lines


def _reproduced(one: Studied, weighed: Weighed, verdict: Verdict) -> list[tuple[str, ...]]:
    """A row for each setting of an unknown with which a claim holds; last in it, what no longer does."""
    held = {found.claim.id for found in one.verdicts if found.word == "holds"}
    rows: list[tuple[str, ...]] = []
    good = {v.setting: v for v in weighed.verdicts if v.claim.id == verdict.claim.id and v.word == "holds"}
    for found in map(good.__getitem__, _shortest(list(good))):
        there = [other for other in weighed.verdicts if other.setting == found.setting]
        lost = ", ".join(other.claim.id for other in there if other.claim.id in held and other.word != "holds")
        rows.append((found.claim.id, found.claim.says, found.setting, found.measured, lost or "-"))
    return rows


def _shortest(settings: Sequence[str]) -> list[str]:
    """Without those that are another and something more."""
    return [one for one in settings if not any(one.startswith(f"{other}, ") for other in settings)]


def pages(studied: Sequence[Studied]) -> list[tuple[Page, list[Studied]]]:
    """The pages that there is something for, with their figures."""
    found = [(page, [one for one in studied if _page(one.figure) == key]) for key, page in PAGES.items()]
    return [(page, own) for page, own in found if own]


def _page(figure: Figure) -> str:
    """The key of its page."""
    return figure.id.split("-")[0]


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
        lines += [one.figure.note, ""] if one.figure.note else []
        head, rows, above = table(one)
        lines += [above, ""] if above else []
        lines += [*_markdown((head, rows, above)), ""]
    return "\n".join([*lines, *_sections(studied)])


def _sections(studied: Sequence[Studied]) -> list[str]:
    """What stands below the figures."""
    lines: list[str] = []
    found = conditions(studied)
    if found.varied:
        lines += ["## What would have to be true", "", CONDITIONS, "", *(f"* {line}" for line in found.varied), ""]
        lines += [*_markdown((REPRODUCED, found.rows, "")), ""] if found.rows else []
        lines += [NONE, "", *(f"* {line}" for line in found.none), ""] if found.none else []
    if (beside := apart(studied))[1]:
        lines += ["## Sentences that are contradicted", "", beside[2], "", *_markdown(beside), ""]
    return lines


def _markdown(table: Table) -> list[str]:
    head, rows, _ = table
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]


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
        found = table(one)
        parts.append(f"<p>{html.escape(one.figure.note)}<p>{html.escape(found[2])}{_html(found)}")
    given = conditions(studied)
    if given.varied:
        parts.append(f"<h2>What would have to be true</h2><p>{html.escape(CONDITIONS)}{_list(given.varied)}")
        parts.append(_html((REPRODUCED, given.rows, "")))
        parts += [f"<p>{html.escape(NONE)}{_list(given.none)}"] if given.none else []
    if (beside := apart(studied))[1]:
        parts.append(f"<h2>Sentences that are contradicted</h2><p>{html.escape(beside[2])}{_html(beside)}")
    return "\n".join(parts)


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}' for line in lines)}</ul>"


def _html(found: Table) -> str:
    head, rows, _ = found
    titles = "".join(f"<th>{html.escape(word)}" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}" for text in row) for row in rows)
    return f"<table><tr>{titles}{body}</table>"
