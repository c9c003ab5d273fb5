# SPDX-License-Identifier: Apache-2.0
"""Draws fairness: the goodput of every flow, uploads next to downloads, and Jain's index of each direction.

Colours stand for directions. If flows differ in their congestion control, colours stand for it, and the shapes of the
dots for directions.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from hourglass.plots import style
from hourglass.plots.pooled_samples import flows_by_direction
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_mbps
from hourglass.results.stats import fairness as jain
from hourglass.results.stats import short
from hourglass.series_style import styles

CONVENTION = "dot: mean goodput of one flow under load; bar: mean of the way; Jain's index: 1 is equal shares"
SLOT_IN = 1.0
"""Two bars of a run fit their figures next to each other."""
ROW_IN = 4.2
SHAPES = {"upload": "^", "download": "v"}

Shares = dict[str, list[tuple[str, float]]]
"""{direction: congestion control and goodput of its flows, Mbit/s}, without directions that have no flows."""


def fairness(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draw the runs into `path`: the goodput of each flow above the index of each direction."""
    shares = [_shares(run) for run in runs]
    slot_in = min(max(SLOT_IN, style.min_slot_in(labels)), 2.0)
    rows, columns = style.panels_in_rows(len(runs), slot_in)
    most = max((value for run_shares in shares for values in run_shares.values() for _, value in values), default=0)
    ccs = list(dict.fromkeys(cc for ways in shares for values in ways.values() for cc, _ in values))
    colours = {cc: look.colour for cc, look in zip(ccs, styles(len(ccs)), strict=True)} if len(ccs) > 1 else {}
    with style.figure(max(4.4, 1.0 + slot_in * columns), 0.5 + ROW_IN * rows, path) as figure:
        parts = figure.subfigures(rows, 1, squeeze=False)[:, 0]
        for row, part in enumerate(parts):
            row_slice = slice(row * columns, (row + 1) * columns)
            _row(part, shares[row_slice], labels[row_slice], slot_in, columns, most, colours)
        style.legend_above(
            figure,
            *_legend(
                [way for way in style.DIRECTION_COLOURS if any(way in run_shares for run_shares in shares)], colours
            ),
        )
        style.caption(figure, CONVENTION)


def _legend(directions: list[str], colours: dict[str, str]) -> tuple[list[str], list[Line2D]]:
    """Return the legend: the congestion controls if they differ, and the directions if both exist."""
    drawn = [(cc, "o", colour) for cc, colour in colours.items()]
    if not colours or len(directions) > 1:
        drawn += [(way, *_dot(way, "", {})) if not colours else (way, SHAPES[way], style.MUTED) for way in directions]
    return [name for name, *_ in drawn], [
        Line2D([], [], marker=marker, linestyle="none", color=colour) for _, marker, colour in drawn
    ]


def _dot(direction: str, cc: str, colours: dict[str, str]) -> tuple[str, str]:
    """Return the shape and colour of a flow."""
    return (SHAPES[direction], colours[cc]) if colours else ("o", style.DIRECTION_COLOURS[direction])


def _row(
    part: SubFigure,
    shares: list[Shares],
    labels: Sequence[str],
    slot_in: float,
    slots: int,
    most: float,
    colours: dict[str, str],
) -> None:
    """Draw a row of runs: the goodput of each flow above the indices."""
    top, bottom = part.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for position, run_shares in enumerate(shares):
        _dots(top, position, run_shares, colours)
        _indices(bottom, position, run_shares, plain=bool(colours))
    top.set_ylabel("goodput per flow (Mbit/s)")
    top.set_ylim(0, 1.1 * most or 1)
    bottom.set_ylabel("Jain's index")
    bottom.set_ylim(0, 1.18)
    bottom.set_yticks([0, 0.5, 1])
    style.name_slots(bottom, labels, slot_in)
    bottom.set_xlim(-0.6, slots - 0.4)
    top.grid(visible=False, axis="x")
    top.tick_params(axis="x", length=0)


def _shares(run: Recording) -> Shares:
    return {
        way: [(flow.cc, goodput_mbps(run, flow)) for flow in flows] for way, flows in flows_by_direction(run).items()
    }


def _x_position(position: int, direction: str, run_shares: Shares) -> float:
    """Return the x position of a direction: left or right of the run's position, or on it if it is the only one."""
    return position + (0 if len(run_shares) == 1 else -0.16 if direction == "upload" else 0.16)


def _dots(axes: Axes, position: int, run_shares: Shares, colours: dict[str, str]) -> None:
    for direction, values in run_shares.items():
        x = _x_position(position, direction, run_shares)
        spread = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
        for offset, (cc, value) in zip(spread, values, strict=True):
            marker, colour = _dot(direction, cc, colours)
            axes.plot(x + offset, value, marker, color=colour, markersize=4.5, alpha=0.85)
        mean = float(np.mean([value for _, value in values]))
        axes.plot([x - 0.12, x + 0.12], [mean, mean], color=style.INK, linewidth=1.4)


def _indices(axes: Axes, position: int, run_shares: Shares, plain: bool) -> None:
    """Draw a bar for each direction below its dots."""
    for direction, values in run_shares.items():
        index, x = jain([value for _, value in values]), _x_position(position, direction, run_shares)
        if index is not None:
            axes.bar(
                x, index, width=0.24, color=style.MUTED if plain else style.DIRECTION_COLOURS[direction], alpha=0.8
            )
            axes.annotate(short(index), (x, index), (0, 2), textcoords="offset points", ha="center", fontsize=7)
