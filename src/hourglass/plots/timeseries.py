# SPDX-License-Identifier: Apache-2.0
"""One run over its time: goodput, TCP RTT and ping on a shared axis; the loaded window is shaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hourglass.contract.plan import Ping
from hourglass.plots import style
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
from hourglass.results.traffic import stream_series

NAMED_FLOWS = len(style.FLOWS)
"""Up to this number each flow has a colour and a name of its own; more are drawn grey."""
POINTS = 3000
"""RTT lines are thinned to about this number of points: more cannot be seen, and SVG would grow."""


def timeseries(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png, .svg or .pdf): goodput and TCP RTT where there are flows, pings, and a panel for
    each kind of other traffic that there is."""
    flows, others = run.flows, stream_series(run)
    loaded = bool(flows or run.datagrams)
    heights = [*([1.25, 1] if flows else []), 1, *([1] * len(others))]
    with style.figure(9, 1.5 + 2.0 * len(heights), path, arranged=False) as figure:
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        left = iter(panels)
        if flows:
            _goodput(next(left), run)
            _rtt(next(left), run)
        _ping(next(left), run)
        for kind, found in others:
            _traffic(next(left), found, f"{kind.title} (ms)")
        for axes in panels:
            _frame(axes, run, loaded)
        panels[-1].set_xlabel("test time (s)")
        style.headline(figure, _title(run))
        figure.align_ylabels(list(panels))
        _arrange(figure, panels)


def _arrange(figure: Figure, panels: Iterable[Axes]) -> None:
    """Room for the title, the labels and the widest legend: known, so that this picture of every run is quick."""
    width_in, height_in = figure.get_size_inches()
    legends = [legend for axes in panels if (legend := axes.get_legend())]
    legend_in = max((legend.get_window_extent().width for legend in legends), default=0) / figure.dpi
    figure.subplots_adjust(
        left=0.75 / width_in,
        right=1 - (legend_in + 0.2) / width_in,
        top=1 - 0.4 / height_in,
        bottom=0.5 / height_in,
        hspace=0.12,
    )


def _title(run: Recording) -> str:
    return f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}"


def _goodput(axes: Axes, run: Recording) -> None:
    window, flows = whole(run), run.flows
    for flow, (colour, name) in zip(flows, _looks(run), strict=True):
        series = goodput_steps(run, flow, window)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1, label=name, drawstyle="steps-pre")
    if len(flows) > 1:
        total = goodput_total(run, flows, window)
        axes.plot(total.t_s, total.values, color=style.INK, linewidth=1.6, label="total", drawstyle="steps-pre")
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_ylim(bottom=0)


def _rtt(axes: Axes, run: Recording) -> None:
    seen = []
    for flow, (colour, _) in zip(run.flows, _looks(run), strict=True):
        series = _thinned(tcp_rtt_ms(run, flow))
        seen.append(series.values)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1)
    axes.set_ylabel("TCP RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _ping(axes: Axes, run: Recording) -> None:
    seen = [np.empty(0)]
    for place, ping in enumerate(run.pings):
        series = ping_ms(run, ping)
        name, colour, lost = ping.name, style.PINGS[place % len(style.PINGS)], np.isnan(series.values)
        seen.append(series.values)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1, marker=".", markersize=2.5, label=name)
        _one_way(axes, run, ping, colour, name)
        _losses(axes, series.t_s[lost], colour, name)
    axes.set_ylabel("ping RTT, one way (ms)" if seen_one_way(run) else "ping RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _traffic(axes: Axes, found: dict[str, Series], unit: str) -> None:
    """Packets, fetches or transactions as dots, their losses at the foot."""
    for place, (name, series) in enumerate(found.items()):
        colour, lost = style.FLOWS[place % len(style.FLOWS)], np.isnan(series.values)
        shown = _thinned(Series(series.t_s[~lost], series.values[~lost]))
        axes.plot(shown.t_s, shown.values, ".", color=colour, markersize=2.5, label=name)
        _losses(axes, series.t_s[lost], colour, name)
    axes.set_ylabel(unit)
    _scale(axes, np.concatenate([series.values for series in found.values()]))


def _losses(axes: Axes, t_s: Floats, colour: str, name: str) -> None:
    """Crosses at the foot of the panel."""
    if t_s.size:
        shown = _thinned(Series(t_s, t_s)).t_s
        axes.plot(shown, np.full(shown.size, 0.02), "x", color=colour, markersize=4, clip_on=False,
                  transform=axes.get_xaxis_transform(), label=f"{name} lost ({t_s.size})")  # fmt: skip


ONE_WAY: tuple[tuple[Literal["up", "down"], tuple[int, tuple[float, float]]], ...] = (
    ("up", (0, (4, 1.5))),
    ("down", (0, (1, 1.5))),
)
"""How the two ways are drawn: dashed, dotted."""


def _one_way(axes: Axes, run: Recording, ping: Ping, colour: str, name: str) -> None:
    """The two one-way delays of a ping that measures them, thin, up dashed and down dotted."""
    for way, line in ONE_WAY:
        series = one_way_ms(run, ping, way)
        if series.t_s.size:
            axes.plot(series.t_s, series.values, color=colour, linewidth=0.9, linestyle=line, label=f"{name} {way}")


def seen_one_way(run: Recording) -> bool:
    """Whether any ping measured its ways apart."""
    return any(one_way_ms(run, ping, "up").t_s.size for ping in run.pings)


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
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def _looks(run: Recording) -> list[tuple[str, str]]:
    """(colour, legend) of each flow; "_" keeps a line out of the legend."""
    flows = run.flows
    if len(flows) <= NAMED_FLOWS:
        return [(style.FLOWS[i], flow.name) for i, flow in enumerate(flows)]
    return [("#A8B4BE", f"{len(flows)} flows" if i == 0 else "_") for i in range(len(flows))]


def _thinned(series: Series) -> Series:
    """Every k-th sample, so that about `POINTS` remain."""
    every = max(1, series.t_s.size // POINTS)
    return Series(series.t_s[::every], series.values[::every])
