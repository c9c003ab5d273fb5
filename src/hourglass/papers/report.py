# SPDX-License-Identifier: Apache-2.0
"""What was found, as Markdown with pictures beside it, and as one HTML file that holds them."""

import base64
import html
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hourglass.papers.model import Verdict
from hourglass.papers.study import Studied

PAPERS = {
    "A": "The New TCP Modules on the Block: A Performance Evaluation of TCP Pacing and TCP Small Queues (2021)",
    "B": "Towards 1 ms WLAN Latency (2018)",
}
HEAD = ("claim", "the paper says", "tolerance", "measured", "verdict", "what the data show")
STYLE = """body{font:15px sans-serif;max-width:75em;margin:2em auto}
td,th{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
img{max-width:100%}table{border-collapse:collapse;font-size:13px}"""


def counts(verdicts: Sequence[Verdict]) -> str:
    """ "12 hold, 3 differ, 20 cannot be had" """
    found = Counter(one.word for one in verdicts)
    words = {"holds": "hold", "differs": "differ", "cannot be had": "cannot be had"}
    return ", ".join(f"{found[word]} {words[word]}" for word in words)  # type: ignore[index]


def cells(one: Verdict) -> tuple[str, ...]:
    return (one.claim.id, one.claim.says, one.claim.tolerance, one.measured, one.word, one.because or "")


def markdown(paper: str, studied: Sequence[Studied], how: str, folder: Path) -> str:
    """The page of one paper; pictures are ID.png beside it, in `folder`."""
    every = [verdict for one in studied for verdict in one.verdicts]
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# Paper {paper}: {PAPERS[paper]}", ""]
    lines += [f"Made by `{how}`; every verdict on this page is computed. {counts(every)}.", ""]
    for one in studied:
        lines += [f"## {one.figure.id}: {one.figure.title}", ""]
        if (folder / f"{one.figure.id}.png").is_file():
            lines += [f"![{one.figure.title}]({one.figure.id}.png)", ""]
        lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        lines += [
            "| " + " | ".join(text.replace("|", "\\|") for text in cells(verdict)) + " |" for verdict in one.verdicts
        ]
        lines.append("")
    return "\n".join(lines)


def page(studied: Sequence[Studied], folder: Path) -> str:
    """One self-contained HTML file of all figures."""
    every = [verdict for one in studied for verdict in one.verdicts]
    parts = [f"<!doctype html><meta charset=utf-8><title>Papers</title><style>{STYLE}</style><h1>{counts(every)}</h1>"]
    for one in studied:
        parts.append(f"<h2>{html.escape(one.figure.id)}: {html.escape(one.figure.title)}</h2>")
        picture = folder / f"{one.figure.id}.png"
        if one.evidence is not None and picture.is_file():
            data = base64.b64encode(picture.read_bytes()).decode()
            parts.append(f'<img alt="{html.escape(one.figure.title)}" src="data:image/png;base64,{data}">')
        head = "".join(f"<th>{word}" for word in HEAD)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(text)}" for text in cells(v)) for v in one.verdicts)
        parts.append(f"<table><tr>{head}{rows}</table>")
    return "\n".join(parts)
