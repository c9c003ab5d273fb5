# SPDX-License-Identifier: Apache-2.0
"""A figure drawn in the paper's form from its runs."""

from itertools import product
from pathlib import Path

from hourglass.papers.model import DOWN, PING, TCP, UP, Evidence, Figure, Layout, Where
from hourglass.plots import paper
from hourglass.plots.paper import Quantity
from hourglass.results.recording import Recording

QUANTITIES: dict[Quantity, str] = {
    "goodput": "goodput, all flows (Mbit/s)",
    "upload": "uploads (Mbit/s)",
    "download": "downloads (Mbit/s)",
    "ways": "goodput (Mbit/s)",
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
        layout = figure.layout
        columns = len(evidence.values(layout.panel)) if layout.beside else 0
        paper.candles(title, panels(evidence, layout), path, columns)
    elif figure.form == "series":
        paper.series(title, _columns(evidence), path, figure.note)
    else:
        return False
    return True


def panels(e: Evidence, layout: Layout) -> list[paper.Candles]:
    """A panel for each quantity and each value of the layout's panel axis."""
    places: list[Where] = [{layout.panel: value} for value in e.values(layout.panel)] if layout.panel else [{}]
    if layout.beside:
        return [_panel(e, layout, what, where) for what in layout.quantities for where in places]
    return [_panel(e, layout, what, where) for where in places for what in layout.quantities]


def _panel(e: Evidence, layout: Layout, what: Quantity, place: Where) -> paper.Candles:
    groups = e.values(layout.groups)
    kinds = [dict(zip(layout.series, values, strict=True)) for values in product(*map(e.values, layout.series))]
    ways: list[Quantity] = ["upload", "download"] if what == "ways" else [what]
    fixed = dict(layout.where) | place
    rows = [(way, [fixed | kind | {layout.groups: group} for group in groups]) for kind in kinds for way in ways]
    names = [(e.label(**kind), f"{way}s" if what == "ways" else "") for kind in kinds for way in ways]
    return paper.Candles(
        ", ".join([QUANTITIES[what], *(e.label(**{word: value}) for word, value in place.items())]),
        [e.label(**{layout.groups: group}) for group in groups],
        [", ".join(filter(None, parts)) for parts in names],
        [[paper.samples_of(e.runs(**cell), way) for cell in cells] for way, cells in rows],
        [[_figures(e, way, cell) for cell in cells] for way, cells in rows],
    )


def _figures(e: Evidence, what: Quantity, cell: Where) -> list[float]:
    """What the table has of a cell's runs, a figure per seed."""
    if what == "goodput":
        return [up + down for up, down in zip(e.each(UP, **cell), e.each(DOWN, **cell), strict=True)]
    columns: dict[Quantity, str] = {"upload": UP, "download": DOWN, "tcp": TCP, "ping": PING}
    return e.each(columns[what], **cell)


def _columns(e: Evidence) -> list[tuple[str, list[tuple[str, Recording]]]]:
    return [
        (e.label(tsq=tsq), [(e.label(cc=cc), e.runs(cc=cc, tsq=tsq)[0]) for cc in e.values("cc")])
        for tsq in e.values("tsq")
    ]
