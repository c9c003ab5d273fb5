# SPDX-License-Identifier: Apache-2.0
"""Who got what: the goodput of every flow, uploads beside downloads, and Jain's index of each way."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from hourglass.plots import style
from hourglass.plots.samples import flows_by_way
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_mbps, loaded_window
from hourglass.results.stats import fairness as jain
from hourglass.results.stats import short

CONVENTION = "dot: mean goodput of one flow under load; bar: mean of the way; Jain's index: 1 is equal shares"
SLOT_IN = 1.0
"""Three bars of a run have their figures beside each other."""
ROW_IN = 4.2


def fairness(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs into `path`: what each flow got, above the index of each way and of all flows."""
    shares = [_shares(run) for run in runs]
    slot_in = min(max(SLOT_IN, style.widest_in(labels)), 2.0)
    rows, columns = style.panels_in_rows(len(runs), slot_in)
    most = max((value for ways in shares for values in ways.values() for value in values), default=0)
    with style.figure(max(4.4, 1.0 + slot_in * columns), 0.5 + ROW_IN * rows, path) as figure:
        parts = figure.subfigures(rows, 1, squeeze=False)[:, 0]
        for row, part in enumerate(parts):
            mine = slice(row * columns, (row + 1) * columns)
            _row(part, shares[mine], labels[mine], slot_in, columns, most)
        handles = [Line2D([], [], marker="o", linestyle="none", color=colour)
                   for colour in (*style.WAYS.values(), style.MUTED)]  # fmt: skip
        style.legend_above(figure, [*style.WAYS, "all flows"], handles)
        style.caption(figure, CONVENTION)


def _row(
    part: SubFigure, shares: list[dict[str, list[float]]], labels: Sequence[str], slot_in: float, wide: int, most: float
) -> None:
    """Some of the runs: what each flow got, above the indices."""
    top, bottom = part.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for place, ways in enumerate(shares):
        _dots(top, place, ways)
        _indices(bottom, place, ways)
    top.set_ylabel("goodput per flow (Mbit/s)")
    top.set_ylim(0, 1.1 * most or 1)
    bottom.set_ylabel("Jain's index")
    bottom.set_ylim(0, 1.18)
    bottom.set_yticks([0, 0.5, 1])
    style.name_places(bottom, labels, slot_in)
    bottom.set_xlim(-0.6, wide - 0.4)
    top.grid(visible=False, axis="x")
    top.tick_params(axis="x", length=0)


def _shares(run: Recording) -> dict[str, list[float]]:
    """{way: goodput of its flows, Mbit/s}, ways without flows left out."""
    window = loaded_window(run)
    return {way: [goodput_mbps(run, flow, window) for flow in flows] for way, flows in flows_by_way(run).items()}


def _place(place: int, way: str, ways: dict[str, list[float]]) -> float:
    """Two ways stand left and right of the run's place; a single one on it."""
    return place + (0 if len(ways) == 1 else -0.16 if way == "upload" else 0.16)


def _dots(axes: Axes, place: int, ways: dict[str, list[float]]) -> None:
    for way, values in ways.items():
        x, colour = _place(place, way, ways), style.WAYS[way]
        spread = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(x + spread, values, "o", color=colour, markersize=4.5, alpha=0.85)
        mean = float(np.mean(values))
        axes.plot([x - 0.12, x + 0.12], [mean, mean], color=style.INK, linewidth=1.4)


def _indices(axes: Axes, place: int, ways: dict[str, list[float]]) -> None:
    bars = {**ways, "all flows": [value for values in ways.values() for value in values]} if len(ways) > 1 else ways
    offsets = np.linspace(-0.28, 0.28, len(bars)) if len(bars) > 1 else np.zeros(len(bars))
    for offset, (way, values) in zip(offsets, bars.items(), strict=True):
        index = jain(values)
        if index is not None:
            axes.bar(place + offset, index, width=0.22, color=style.WAYS.get(way, style.MUTED), alpha=0.8)
            axes.annotate(short(index), (place + offset, index), (0, 2), textcoords="offset points", ha="center",
                          fontsize=7)  # fmt: skip
