# SPDX-License-Identifier: Apache-2.0
"""Who got what: the goodput of every flow, uploads beside downloads, and Jain's index of each way.

Colours are the ways'; where flows differ in their congestion control they are its, and the dots' shapes the ways'.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from hourglass.looks import looks
from hourglass.plots import style
from hourglass.plots.samples import flows_by_way
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_mbps, loaded_window
from hourglass.results.stats import fairness as jain
from hourglass.results.stats import short

CONVENTION = "dot: mean goodput of one flow under load; bar: mean of the way; Jain's index: 1 is equal shares"
SLOT_IN = 1.0
"""Two bars of a run have their figures beside each other."""
ROW_IN = 4.2
SHAPES = {"upload": "^", "download": "v"}

Shares = dict[str, list[tuple[str, float]]]
"""{way: congestion control and goodput of its flows, Mbit/s}, ways without flows left out."""


def fairness(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs into `path`: what each flow got, above the index of each way."""
    shares = [_shares(run) for run in runs]
    slot_in = min(max(SLOT_IN, style.widest_in(labels)), 2.0)
    rows, columns = style.panels_in_rows(len(runs), slot_in)
    most = max((value for ways in shares for values in ways.values() for _, value in values), default=0)
    ccs = list(dict.fromkeys(cc for ways in shares for values in ways.values() for cc, _ in values))
    colours = {cc: look.colour for cc, look in zip(ccs, looks(len(ccs)), strict=True)} if len(ccs) > 1 else {}
    with style.figure(max(4.4, 1.0 + slot_in * columns), 0.5 + ROW_IN * rows, path) as figure:
        parts = figure.subfigures(rows, 1, squeeze=False)[:, 0]
        for row, part in enumerate(parts):
            mine = slice(row * columns, (row + 1) * columns)
            _row(part, shares[mine], labels[mine], slot_in, columns, most, colours)
        style.legend_above(figure, *_legend([way for way in style.WAYS if any(way in one for one in shares)], colours))
        style.caption(figure, CONVENTION)


def _legend(ways: list[str], colours: dict[str, str]) -> tuple[list[str], list[Line2D]]:
    """Of what is there alone: the congestion controls where they differ, and the ways where there are both."""
    drawn = [(cc, "o", colour) for cc, colour in colours.items()]
    if not colours or len(ways) > 1:
        drawn += [(way, *_dot(way, "", {})) if not colours else (way, SHAPES[way], style.MUTED) for way in ways]
    return [name for name, *_ in drawn], [
        Line2D([], [], marker=marker, linestyle="none", color=colour) for _, marker, colour in drawn
    ]


def _dot(way: str, cc: str, colours: dict[str, str]) -> tuple[str, str]:
    """Shape and colour of a flow."""
    return (SHAPES[way], colours[cc]) if colours else ("o", style.WAYS[way])


def _row(
    part: SubFigure,
    shares: list[Shares],
    labels: Sequence[str],
    slot_in: float,
    wide: int,
    most: float,
    colours: dict[str, str],
) -> None:
    """Some of the runs: what each flow got, above the indices."""
    top, bottom = part.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for place, ways in enumerate(shares):
        _dots(top, place, ways, colours)
        _indices(bottom, place, ways, plain=bool(colours))
    top.set_ylabel("goodput per flow (Mbit/s)")
    top.set_ylim(0, 1.1 * most or 1)
    bottom.set_ylabel("Jain's index")
    bottom.set_ylim(0, 1.18)
    bottom.set_yticks([0, 0.5, 1])
    style.name_places(bottom, labels, slot_in)
    bottom.set_xlim(-0.6, wide - 0.4)
    top.grid(visible=False, axis="x")
    top.tick_params(axis="x", length=0)


def _shares(run: Recording) -> Shares:
    window = loaded_window(run)
    return {
        way: [(flow.cc, goodput_mbps(run, flow, window)) for flow in flows] for way, flows in flows_by_way(run).items()
    }


def _place(place: int, way: str, ways: Shares) -> float:
    """Two ways stand left and right of the run's place; a single one on it."""
    return place + (0 if len(ways) == 1 else -0.16 if way == "upload" else 0.16)


def _dots(axes: Axes, place: int, ways: Shares, colours: dict[str, str]) -> None:
    for way, values in ways.items():
        x = _place(place, way, ways)
        spread = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
        for aside, (cc, value) in zip(spread, values, strict=True):
            marker, colour = _dot(way, cc, colours)
            axes.plot(x + aside, value, marker, color=colour, markersize=4.5, alpha=0.85)
        mean = float(np.mean([value for _, value in values]))
        axes.plot([x - 0.12, x + 0.12], [mean, mean], color=style.INK, linewidth=1.4)


def _indices(axes: Axes, place: int, ways: Shares, plain: bool) -> None:
    """A bar of each way, below its dots."""
    for way, values in ways.items():
        index, x = jain([value for _, value in values]), _place(place, way, ways)
        if index is not None:
            axes.bar(x, index, width=0.24, color=style.MUTED if plain else style.WAYS[way], alpha=0.8)
            axes.annotate(short(index), (x, index), (0, 2), textcoords="offset points", ha="center", fontsize=7)
