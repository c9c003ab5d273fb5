# SPDX-License-Identifier: Apache-2.0
"""Draws figures in the form of the papers: candlesticks (p10, p50, p90), series over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from hourglass.plots import style
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.series_style import SeriesStyle
from hourglass.series_style import style as series_style

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candles:
    """A panel of one quantity: samples[series][group]; an empty array gives no candle. `figures` has each run's figure
    in the same order, as in tables: their median is written above the candle, and dots show their spread. `styles`: the
    series' numbers in the order of styles. `linear`: the axis is never logarithmic."""

    label: str
    groups: Sequence[str]
    series: Sequence[str]
    samples: Sequence[Sequence[Floats]]
    figures: Sequence[Sequence[Sequence[float]]]
    styles: Sequence[int] = ()
    linear: bool = False


MOST_NUMBERS = 26
"""The most candles with written figures: more would overlap."""
CAPTION = (
    "box: p10\u2013p90 and median of the samples of all seeds together; dots: each seed's figure; number: their median,"
    " as in the table"
)


def candles(title: str, panels: Sequence[Candles], path: Path, columns: int = 0) -> None:
    """Draw a panel per quantity, side by side or, if too wide, one above the other, with groups on the x axis and a
    colour per series. `columns`: the number of panels in a row, which share a y axis."""
    widths = [max(3.4, 0.55 * len(panel.groups) * (len(panel.series) + 0.4)) for panel in panels]
    column_count = columns or (len(panels) if sum(widths) <= style.MAX_WIDTH_IN else 1)
    rows = -(-len(panels) // column_count)
    width_in = min(sum(widths[:column_count]) if column_count > 1 else max(widths), style.MAX_WIDTH_IN)
    with style.figure(width_in + 0.6, 3.4 * rows + 0.6, path) as figure:
        grid = figure.subplots(rows, column_count, sharey="row" if columns else "none")
        ends = [
            _panel(axes, panel, (width_in / column_count) / max(len(panel.groups), 1))
            for axes, panel in zip(np.ravel(grid), panels, strict=True)
        ]
        for index, axes in enumerate(np.ravel(grid)):
            row = index // column_count * column_count
            _scale(axes, [*chain(*ends[row : row + column_count])] if columns else ends[index], panels[index].linear)
        style.headline(figure, title)
        style.caption(figure, CAPTION)


def _panel(axes: Axes, panel: Candles, slot_in: float) -> list[float]:
    """Draw a panel; return the ends of its candles."""
    ends: list[float] = []
    pitch = len(panel.series) + 0.7
    numbers = len(panel.series) * len(panel.groups) <= MOST_NUMBERS
    for at, samples in enumerate(panel.samples):
        for group, values in enumerate(samples):
            if values.size:
                ends += _candle(axes, group * pitch + at, values, panel.figures[at][group], _look(panel, at), numbers)
    axes.set_ylabel(panel.label)
    axes.set_xlim(-1, len(panel.groups) * pitch - 0.7)
    positions = [group * pitch + (len(panel.series) - 1) / 2 for group in range(len(panel.groups))]
    style.name_ticks(axes, positions, panel.groups, slot_in)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    if len(panel.series) > 1 or panel.series[0]:
        handles = [Patch(label=name, **style.box(_look(panel, at))) for at, name in enumerate(panel.series)]
        axes.legend(
            handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(handles), borderaxespad=0.3
        )
    return ends


def _look(panel: Candles, at: int) -> SeriesStyle:
    return series_style(panel.styles[at] if panel.styles else at)


def _scale(axes: Axes, ends: Sequence[float], linear: bool) -> None:
    """Scale the axis for the candles of all panels that share it."""
    if not linear and style.wants_log(ends):
        style.log_y(axes)
        axes.set_ylim(min(end for end in ends if end > 0) / 1.5, max(ends) * 1.8)
    else:
        axes.set_ylim(0, max(*ends, 1) * 1.15 if ends else 1)


def _candle(
    axes: Axes, x: float, values: Floats, figures: Sequence[float], look: SeriesStyle, number: bool
) -> list[float]:
    """Draw a candle with the seeds' dots; return its lower and upper end."""
    low, middle, high = (float(figure) for figure in np.percentile(values, [10, 50, 90]))
    style.candle(axes, x, 0.38, (low, middle, high), look)
    top = max(high, *figures)
    dots_x = x + np.linspace(-0.2, 0.2, len(figures)) if len(figures) > 1 else [x]
    axes.plot(dots_x, figures, "o", color="white", markeredgecolor=style.INK, markersize=3.2, markeredgewidth=0.7)
    if number:
        median = float(np.median(figures))
        text = f"{median:.3g}" if median < 1000 else f"{median:.0f}"
        axes.annotate(text, (x, top), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    return [min(low, *figures), top]


def series(
    title: str, columns: Sequence[tuple[str, Sequence[tuple[str, Recording]]]], path: Path, note: str = ""
) -> None:
    """Draw a column per setting, with a line per run: throughput above, TCP RTT below; `note` is the caption."""
    with style.figure(5.2 * len(columns), 5.0, path) as figure:
        grid = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False)
        for index, (name, runs) in enumerate(columns):
            above, below = grid[0][index], grid[1][index]
            for at, (label, run) in enumerate(runs):
                line = style.line(series_style(at))
                window = loaded_window(run)
                total = goodput_total(run, run.flows, window)
                above.plot(total.t_s, total.values, linewidth=1.1, label=label, **line)
                rtt = tcp_rtt_ms(run, run.flows[0]).within(window)
                below.plot(rtt.t_s, rtt.values, linewidth=1.0, label=label, **line)
            above.set_title(name)
            below.set_xlabel("test time (s)")
        grid[0][0].set_ylim(0, grid[0][0].get_ylim()[1] * 1.1)
        if style.wants_log(np.concatenate([line.get_ydata() for axes in grid[1] for line in axes.get_lines()])):
            style.log_y(grid[1][0])
        else:
            grid[1][0].set_ylim(bottom=0)
        grid[0][0].set_ylabel("goodput (Mbit/s)")
        grid[1][0].set_ylabel("TCP RTT of flow 1 (ms)")
        grid[0][0].legend(loc="lower left")
        style.headline(figure, title)
        if note:
            style.caption(figure, note)


Quantity = Literal["goodput", "upload", "download", "ways", "tcp", "ping"]
"""`ways` pools uploads and downloads."""


def samples_of(runs: Sequence[Recording], quantity: Quantity) -> Floats:
    """Return the samples of several runs in the loaded window: goodput per step (Mbit/s) of all flows or of one
    direction, or "tcp" or "ping" (ms)."""
    parts = []
    for run in runs:
        window = loaded_window(run)
        if quantity in ("goodput", "upload", "download", "ways"):
            flows = [
                flow for flow in run.flows if quantity in ("goodput", "ways") or flow.upload == (quantity == "upload")
            ]
            parts.append(goodput_total(run, flows, window).values if flows else np.empty(0))
        elif quantity == "tcp":
            parts.append(tcp_rtt_ms(run).within(window).values)
        else:
            parts.append(ping_ms(run, run.pings[0]).within(window).values)
    pooled = np.concatenate(parts) if parts else np.empty(0)
    return pooled[~np.isnan(pooled)]
