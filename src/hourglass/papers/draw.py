# SPDX-License-Identifier: Apache-2.0
"""A figure drawn in the paper's form from its runs."""

from itertools import product
from pathlib import Path
from typing import Any

from hourglass.papers.model import DOWN, PING, UP, Evidence, Figure, Layout
from hourglass.plots import paper
from hourglass.plots.paper import Quantity
from hourglass.results.recording import Recording

QUANTITIES: dict[Quantity, str] = {
    "goodput": "goodput, all flows (Mbit/s)",
    "tcp": "TCP RTT (ms)",
    "ping": "ping RTT (ms)",
}


def draw(figure: Figure, evidence: Evidence, path: Path) -> bool:
    """Draws the figure at `path`; False when it has no picture, or lacks runs that failed."""
    path.unlink(missing_ok=True)
    try:
        return _draw(figure, evidence, path)
    except LookupError:
        return False


def _draw(figure: Figure, evidence: Evidence, path: Path) -> bool:
    title = f"{figure.id}  {figure.title}"
    if figure.form == "candles":
        paper.candles(title, _panels(evidence, figure.layout), path)
    elif figure.form == "series":
        paper.series(title, _columns(evidence), path)
    elif figure.form == "bars":
        paper.bars(title, _bars(evidence), path)
    else:
        return False
    return True


def _panels(e: Evidence, layout: Layout) -> list[paper.Candles]:
    places = [{layout.panel: value} for value in e.values(layout.panel)] if layout.panel else [{}]
    return [_panel(e, layout, what, where) for where in places for what in layout.quantities]


def _panel(e: Evidence, layout: Layout, what: Quantity, where: dict[str, Any]) -> paper.Candles:
    groups = e.values(layout.groups)
    kinds = [dict(zip(layout.series, values, strict=True)) for values in product(*map(e.values, layout.series))]
    samples = [
        [paper.samples_of(e.runs(**where, **kind, **{layout.groups: group}), what) for group in groups]
        for kind in kinds
    ]
    label = ", ".join([QUANTITIES[what], *(e.label(**{word: value}) for word, value in where.items())])
    return paper.Candles(
        label, [e.label(**{layout.groups: group}) for group in groups], [e.label(**kind) for kind in kinds], samples
    )


def _columns(e: Evidence) -> list[tuple[str, list[tuple[str, Recording]]]]:
    return [
        (e.label(tsq=tsq), [(cc.upper(), e.runs(cc=cc, tsq=tsq)[0]) for cc in e.values("cc")])
        for tsq in e.values("tsq")
    ]


def _bars(e: Evidence) -> list[paper.Bar]:
    """A bar per setting, medians over the seeds."""
    found = []
    for where in e.settings():
        figures = [e.value(name, **where) for name in (UP, DOWN, PING)]
        found.append(paper.Bar(e.label(**where), *figures))
    return found
