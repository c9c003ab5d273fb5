# SPDX-License-Identifier: Apache-2.0
"""Figures in the form of the papers: candlesticks (p10, p50, p90), series over time, goodput-and-ping bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from hourglass import looks
from hourglass.plots import style
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, short


@dataclass(frozen=True)
class Candles:
    """A panel of one quantity: samples[series][group]; an empty array is no candle."""

    label: str
    groups: Sequence[str]
    series: Sequence[str]
    samples: Sequence[Sequence[Floats]]


def candles(title: str, panels: Sequence[Candles], path: Path) -> None:
    """A panel per quantity, side by side or, where that is too wide, one above the other; groups on the x axis, a
    colour per series."""
    widths = [max(3.4, 0.55 * len(one.groups) * len(one.series)) for one in panels]
    rows, columns = (1, len(panels)) if sum(widths) <= style.WIDEST_IN else (len(panels), 1)
    width_in = sum(widths) if rows == 1 else min(max(widths), style.WIDEST_IN)
    with style.figure(width_in + 0.6, 3.6 * rows + 0.4, path) as figure:
        for axes, panel in zip(np.ravel(figure.subplots(rows, columns)), panels, strict=True):
            _panel(axes, panel)
        style.headline(figure, title)
        figure.supxlabel("box: p10\u2013p90, line: median", fontsize=8, color=style.MUTED, x=0.995, ha="right")


def _panel(axes: Axes, panel: Candles) -> None:
    ends: list[float] = []
    pitch = len(panel.series) + 0.7
    for at, samples in enumerate(panel.samples):
        look = looks.look(at)
        for group, values in enumerate(samples):
            if not values.size:
                continue
            low, middle, high = np.percentile(values, [10, 50, 90])
            ends += [low, high]
            x = group * pitch + at
            style.candle(axes, x, 0.38, (low, middle, high), look)
            if len(panel.series) * len(panel.groups) <= 20:
                axes.annotate(short(middle), (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    axes.set_ylabel(panel.label)
    axes.set_xlim(-1, len(panel.groups) * pitch - 0.7)
    axes.set_xticks([group * pitch + (len(panel.series) - 1) / 2 for group in range(len(panel.groups))], panel.groups)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    if style.wants_log(ends):
        style.log_y(axes)
        axes.set_ylim(min(end for end in ends if end > 0) / 1.5, max(ends) * 1.8)
    else:
        axes.set_ylim(0, max(ends, default=1) * 1.15)
    handles = [Patch(label=name, **style.box(looks.look(at))) for at, name in enumerate(panel.series)]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(handles), borderaxespad=0.3)


def series(title: str, columns: Sequence[tuple[str, Sequence[tuple[str, Recording]]]], path: Path) -> None:
    """A column per setting, in it a line per run: throughput above, TCP RTT below."""
    with style.figure(5.2 * len(columns), 5.0, path) as figure:
        grid = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False)
        for place, (name, runs) in enumerate(columns):
            above, below = grid[0][place], grid[1][place]
            for at, (label, run) in enumerate(runs):
                line = style.line(looks.look(at))
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


@dataclass(frozen=True)
class Bar:
    """One setting: goodput up and down, Mbit/s, and the median of ping, ms."""

    label: str
    up_mbps: float
    down_mbps: float
    ping_ms: float


def bars(title: str, found: Sequence[Bar], path: Path) -> None:
    """Goodput as bars, ping as points on an axis of its own at the right."""
    with style.figure(max(5.0, 0.8 * len(found) + 2), 4.0, path) as figure:
        left = figure.subplots()
        right = left.twinx()
        both = any(one.up_mbps for one in found) and any(one.down_mbps for one in found)
        for shift, name, colour, values in (
            (-0.2 if both else 0, "upload", looks.BLUE, [one.up_mbps for one in found]),
            (0.2 if both else 0, "download", looks.SKY, [one.down_mbps for one in found]),
        ):
            if any(values):
                x = [at + shift for at in range(len(found))]
                left.bar(x, values, 0.38 if both else 0.6, color=colour, alpha=0.6, label=name)
        right.plot(range(len(found)), [one.ping_ms for one in found], "D", color=looks.VERMILION, label="ping")
        for at, one in enumerate(found):
            right.annotate(short(one.ping_ms), (at, one.ping_ms), (7, 3), textcoords="offset points", fontsize=7)
        left.set_ylabel("goodput (Mbit/s)")
        right.set_ylabel("ping, median (ms)")
        right.set_ylim(0, max(one.ping_ms for one in found) * 1.2 or 1)
        right.grid(visible=False)
        left.set_xticks(range(len(found)), [one.label for one in found], rotation=30, ha="right")
        handles = left.get_legend_handles_labels()[0] + right.get_legend_handles_labels()[0]
        left.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        left.set_title(title)


Quantity = Literal["goodput", "tcp", "ping"]


def samples_of(runs: Sequence[Recording], what: Quantity) -> Floats:
    """Samples of several runs together: "goodput" per step (Mbit/s), "tcp" or "ping" (ms), of the loaded window."""
    parts = []
    for run in runs:
        window = loaded_window(run)
        if what == "goodput":
            parts.append(goodput_total(run, run.flows, window).values)
        elif what == "tcp":
            parts.append(tcp_rtt_ms(run).within(window).values)
        else:
            parts.append(ping_ms(run, run.pings[0]).within(window).values)
    pooled = np.concatenate(parts) if parts else np.empty(0)
    return pooled[~np.isnan(pooled)]
