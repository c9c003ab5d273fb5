# SPDX-License-Identifier: Apache-2.0
"""One run over its time: goodput, TCP RTT, pings and other traffic on a shared axis; the loaded window is shaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hourglass.looks import TOTAL, Look
from hourglass.plots import marks, style
from hourglass.results import streams
from hourglass.results.recording import Recording
from hourglass.results.series import (
    NS_PER_S,
    Series,
    goodput_steps,
    goodput_total,
    loaded_window,
    one_way_ms,
    ping_ms,
    tcp_rtt_ms,
    whole,
)
from hourglass.results.stats import Floats
from hourglass.results.streams import Drawn
from hourglass.results.traffic import Kind, stream_series
from hourglass.results.traffic import goodput_steps as datagram_steps

POINTS = 3000
"""RTT lines are thinned to about this number of points: more cannot be seen, and SVG would grow."""
LABEL_IN = 0.43
"""From an axis to the foot of its label."""
WIDE, THIN = 4.0, 1.1
"""The first of several pings is a wide pale line and the last a thin one upon it: they are often equal."""

Panel = Callable[[Axes, Recording], None]


def timeseries(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png, .svg or .pdf): goodput where there are flows or datagrams, TCP RTT of flows,
    pings there and back and, where it was measured, each way, and a panel for each kind of other traffic."""
    parts = list(_panels(run))
    loaded = bool(run.flows or run.datagrams)
    heights = [height for height, _ in parts]
    foot_in = marks.height_in(run)
    with style.figure(9, 1.5 + 2.0 * len(heights) + foot_in, path, arranged=False) as figure:
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (_, draw) in zip(panels, parts, strict=True):
            draw(axes, run)
            _frame(axes, run, loaded)
        panels[-1].set_xlabel("test time (s)")
        marks.mark(list(panels), run)
        marks.explain(figure, run)
        style.headline(figure, _title(run))
        _arrange(figure, panels, foot_in)


def _panels(run: Recording) -> Iterator[tuple[float, Panel]]:
    """(height, what draws it) of what there is to show."""
    if run.flows or run.datagrams:
        yield 1.25, _goodput
    if run.flows:
        yield 1, _rtt
    if run.pings or not run.streams:
        yield 1, _ping
    if any(one_way_ms(run, ping, "up").t_s.size for ping in run.pings):
        yield 1, _one_way
    for kind, found in stream_series(run):
        yield 1, partial(_traffic, kind=kind, found=found)


def _arrange(figure: Figure, panels: Iterable[Axes], foot_in: float) -> None:
    """Room for the title, the labels and the widest legend: known, so that this picture of every run is quick."""
    width_in, height_in = figure.get_size_inches()
    legends = [legend for axes in panels if (legend := axes.get_legend())]
    legend_in = max((legend.get_window_extent().width for legend in legends), default=0) / figure.dpi
    figure.subplots_adjust(
        left=0.75 / width_in,
        right=1 - (legend_in + 0.2) / width_in,
        top=1 - (0.55 if foot_in else 0.4) / height_in,
        bottom=(0.5 + foot_in) / height_in,
        hspace=0.12,
    )
    for axes in panels:
        axes.yaxis.set_label_coords(-LABEL_IN / (width_in * axes.get_position().width), 0.5)


def _title(run: Recording) -> str:
    return f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}"


def _goodput(axes: Axes, run: Recording) -> None:
    """Each flow and each datagram stream, and all flows together as the area behind them."""
    window = whole(run)
    if len(run.flows) > 1:
        total = goodput_total(run, run.flows, window)
        axes.fill_between(total.t_s, total.values, step="pre", color=TOTAL, alpha=0.13, linewidth=0)
        label = streams.sum_of_flows(run)
        axes.plot(total.t_s, total.values, color=TOTAL, linewidth=2, label=label, drawstyle="steps-pre")
    for one in streams.flows(run):
        series = goodput_steps(run, one.flow, window)
        axes.plot(series.t_s, series.values, drawstyle="steps-pre", **_line(one))
    for stream, look in zip(run.datagrams, streams.others(run, run.datagrams), strict=True):
        series = datagram_steps(run, stream, window)
        axes.plot(series.t_s, series.values, drawstyle="steps-pre", linewidth=1.3, label=stream.name,
                  **style.line(look))  # fmt: skip
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_ylim(bottom=0)


def _line(one: Drawn) -> dict[str, Any]:
    """Of many flows each is thin and pale."""
    many = {} if one.named else {"alpha": 0.5}
    return style.line(one.look) | {"label": one.label or "_", "linewidth": 1.3 if one.named else 0.7} | many


def _rtt(axes: Axes, run: Recording) -> None:
    seen = []
    for one in streams.flows(run):
        series = _thinned(tcp_rtt_ms(run, one.flow))
        seen.append(series.values)
        axes.plot(series.t_s, series.values, **_line(one) | {"label": "_"})
    axes.set_ylabel("TCP RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _ping(axes: Axes, run: Recording) -> None:
    seen = [np.empty(0)]
    for ping, (style_, look) in zip(run.pings, _layered(streams.pings(run)), strict=True):
        series = ping_ms(run, ping)
        lost = np.isnan(series.values)
        seen.append(series.values)
        axes.plot(series.t_s, series.values, label=ping.name, **style.line(look) | style_)
        _losses(axes, series.t_s[lost], look.colour, ping.name)
    axes.set_ylabel("ping RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _layered(found: Sequence[Look]) -> Iterator[tuple[dict[str, Any], Look]]:
    """The first wide and pale, each upon those before it thinner and stronger: none hides another."""
    for place, look in enumerate(found):
        left = 1 - (place + 1) / len(found)
        yield {"linewidth": THIN + (WIDE - THIN) * left, "alpha": 1 - 0.55 * left, "zorder": 2 + place / 100}, look


def _one_way(axes: Axes, run: Recording) -> None:
    """The two ways of the pings that measure them: there solid, back dotted."""
    seen = [np.empty(0)]
    for ping, (style_, look) in zip(run.pings, _layered(streams.pings(run)), strict=True):
        for way, dash in ONE_WAY:
            series = one_way_ms(run, ping, way)
            if series.t_s.size:
                seen.append(series.values)
                axes.plot(series.t_s, series.values, color=look.colour, linestyle=dash, label=f"{ping.name} {way}",
                          **style_)  # fmt: skip
    axes.set_ylabel("one way (ms)")
    _scale(axes, np.concatenate(seen))


def _traffic(axes: Axes, run: Recording, kind: Kind[Any], found: dict[str, Series]) -> None:
    """Packets, fetches or transactions as dots, their losses at the foot."""
    for (name, series), look in zip(found.items(), streams.others(run, run.of(kind.model)), strict=True):
        lost = np.isnan(series.values)
        shown = _thinned(Series(series.t_s[~lost], series.values[~lost]))
        axes.plot(shown.t_s, shown.values, **style.dot(look) | {"linestyle": "none", "markersize": 2.5, "label": name})
        _losses(axes, series.t_s[lost], look.colour, name, kind.without_time)
    axes.set_ylabel(f"{kind.title} (ms)")
    _scale(axes, np.concatenate([series.values for series in found.values()]))


def _losses(axes: Axes, t_s: Floats, colour: str, name: str, word: str = "lost") -> None:
    """What has no time: crosses at the foot of the panel."""
    if t_s.size:
        shown = _thinned(Series(t_s, t_s)).t_s
        axes.plot(shown, np.full(shown.size, 0.02), "x", color=colour, markersize=4, clip_on=False,
                  transform=axes.get_xaxis_transform(), label=f"{name} {word} ({t_s.size})")  # fmt: skip


ONE_WAY: tuple[tuple[Literal["up", "down"], tuple[float, tuple[float, ...]] | str], ...] = (
    ("up", "-"),
    ("down", (0, (1, 1.5))),
)
"""How the two ways are drawn."""


def _scale(axes: Axes, values: Floats) -> None:
    if style.wants_log(values):
        style.log_y(axes)
    else:
        axes.set_ylim(0, np.nanmax(values, initial=0) * 1.08 or 1)


def _frame(axes: Axes, run: Recording, loaded: bool) -> None:
    """The time axis, the loaded window's shade and the legend right of the panel."""
    axes.set_xlim(0, run.end_ns / NS_PER_S)
    if loaded:
        window = loaded_window(run)
        axes.axvspan(window.start_ns / NS_PER_S, window.end_ns / NS_PER_S, color=style.SHADE, zorder=0)
    style.legend_right(axes)


def _thinned(series: Series) -> Series:
    """Every k-th sample, so that about `POINTS` remain."""
    every = max(1, series.t_s.size // POINTS)
    return Series(series.t_s[::every], series.values[::every])
