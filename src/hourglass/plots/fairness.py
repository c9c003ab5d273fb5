# SPDX-License-Identifier: Apache-2.0
"""Who got what: the goodput of every flow, uploads beside downloads, and Jain's index of each way."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hourglass.plots import style
from hourglass.plots.samples import flows_by_way
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_mbps, loaded_window
from hourglass.results.stats import fairness as jain
from hourglass.results.stats import short

CONVENTION = "dot: mean goodput of one flow under load; bar: mean of the way; Jain's index: 1 is equal shares"
SLOT_IN = 1.5
"""Three bars of a run have their figures beside each other."""


def fairness(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs into `path`: what each flow got, above the index of each way and of all flows."""
    shares = [_shares(run) for run in runs]
    width = max(4.4, 1.0 + max(SLOT_IN, style.widest_in(labels)) * len(runs))
    with style.figure(width, 5.2, path) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        for place, ways in enumerate(shares):
            _dots(top, place, ways)
            _indices(bottom, place, ways)
        top.set_ylabel("goodput per flow (Mbit/s)")
        top.set_ylim(0, 1.1 * max(value for ways in shares for values in ways.values() for value in values) or 1)
        bottom.set_ylabel("Jain's index (0 to 1)")
        bottom.set_ylim(0, 1.18)
        bottom.set_yticks([0, 0.5, 1])
        style.name_places(bottom, labels)
        top.grid(visible=False, axis="x")
        top.tick_params(axis="x", length=0)
        handles = [Line2D([], [], marker="o", linestyle="none", color=colour, label=way)
                   for way, colour in (style.WAYS | {"all flows": style.MUTED}).items()]  # fmt: skip
        top.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
        style.caption(figure, CONVENTION)


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
    for offset, (way, values) in zip(np.linspace(-0.24, 0.24, len(bars)) if len(bars) > 1 else [0.0], bars.items(),
                                     strict=True):  # fmt: skip
        index = jain(values)
        if index is not None:
            axes.bar(place + offset, index, width=0.2, color=style.WAYS.get(way, style.MUTED), alpha=0.8)
            axes.annotate(short(index), (place + offset, index), (0, 2), textcoords="offset points", ha="center",
                          fontsize=7)  # fmt: skip
