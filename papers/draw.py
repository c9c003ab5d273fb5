# SPDX-License-Identifier: Apache-2.0
"""Draw a figure in the paper's form from its runs."""

from itertools import product
from pathlib import Path

from hourglass.results.recording import Recording
from papers import candles
from papers.candles import Quantity
from papers.model import DOWN, PING, TCP, UP, Evidence, Layout, PaperFigure, Setting

QUANTITIES: dict[Quantity, str] = {
    "goodput": "goodput, all flows (Mbit/s)",
    "upload": "uploads (Mbit/s)",
    "download": "downloads (Mbit/s)",
    "ways": "goodput (Mbit/s)",
    "tcp": "TCP RTT (ms)",
    "ping": "ping RTT (ms)",
}


def draw(figure: PaperFigure, evidence: Evidence, path: Path) -> bool:
    """Draw the figure at `path`. Return False if it has no picture, or lacks runs that failed."""
    path.unlink(missing_ok=True)
    try:
        return _draw(figure, evidence, path)
    except LookupError:
        return False


def _draw(figure: PaperFigure, evidence: Evidence, path: Path) -> bool:
    title = f"{figure.id}  {figure.title}"
    if figure.form == "candles":
        layout = figure.layout
        columns = len(evidence.values(layout.panel)) if layout.columns else 0
        candles.candles(title, panels(evidence, layout), path, columns)
    elif figure.form == "series":
        candles.series(title, _columns(evidence), path, figure.note)
    else:
        return False
    return True


def panels(e: Evidence, layout: Layout) -> list[candles.Candles]:
    """Return a panel for each quantity and each value of the layout's panel axis."""
    settings: list[Setting] = [{layout.panel: value} for value in e.values(layout.panel)] if layout.panel else [{}]
    if layout.columns:
        return [_panel(e, layout, quantity, setting) for quantity in layout.quantities for setting in settings]
    return [_panel(e, layout, quantity, setting) for setting in settings for quantity in layout.quantities]


def _panel(e: Evidence, layout: Layout, quantity: Quantity, setting: Setting) -> candles.Candles:
    groups = e.values(layout.groups)
    kinds = [dict(zip(layout.series, values, strict=True)) for values in product(*map(e.values, layout.series))]
    quantities: list[Quantity] = ["upload", "download"] if quantity == "ways" else [quantity]
    fixed = dict(layout.where) | setting
    rows = [
        (part, [fixed | kind | {layout.groups: group} for group in groups]) for kind in kinds for part in quantities
    ]
    names = [(e.label(**kind), f"{part}s" if quantity == "ways" else "") for kind in kinds for part in quantities]
    return candles.Candles(
        ", ".join([_label(e, quantity), *(e.label(**{word: value}) for word, value in setting.items())]),
        [e.label(**{layout.groups: group}) for group in groups],
        [", ".join(filter(None, parts)) for parts in names],
        [[candles.samples_of(e.runs(**cell), part) for cell in cells] for part, cells in rows],
        [[_figures(e, part, cell) for cell in cells] for part, cells in rows],
        layout.styles,
        quantity not in ("tcp", "ping"),
    )


def _label(e: Evidence, quantity: Quantity) -> str:
    """Return the label of an axis. The candles have samples under load, also where a ping's figure is another mean."""
    is_mean = quantity == "ping" and e.view.whole_test
    return f"{QUANTITIES[quantity]}; dots: mean of the whole test" if is_mean else QUANTITIES[quantity]


def _figures(e: Evidence, quantity: Quantity, cell: Setting) -> list[float]:
    """Return the figures of a cell's runs in the table, one per seed."""
    if quantity == "goodput":
        return [up + down for up, down in zip(e.each(UP, **cell), e.each(DOWN, **cell), strict=True)]
    columns: dict[Quantity, str] = {"upload": UP, "download": DOWN, "tcp": TCP, "ping": PING}
    return e.each(columns[quantity], **cell)


def _columns(e: Evidence) -> list[tuple[str, list[tuple[str, Recording]]]]:
    return [
        (e.label(tsq=tsq), [(e.label(cc=cc), e.runs(cc=cc, tsq=tsq)[0]) for cc in e.values("cc")])
        for tsq in e.values("tsq")
    ]
