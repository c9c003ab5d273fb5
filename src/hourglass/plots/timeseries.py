# SPDX-License-Identifier: Apache-2.0
"""One run over its time: goodput, TCP RTT and ping on a shared axis; the loaded window is shaded."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hourglass.plots import style
from hourglass.results.run import Run
from hourglass.results.series import (
    NS_PER_S,
    Series,
    Window,
    goodput_steps,
    goodput_total,
    loaded_window,
    one_way_ms,
    ping_ms,
    tcp_rtt_ms,
)
from hourglass.results.stats import Floats
from hourglass.results.traffic import delays_ms, times_ms

NAMED_FLOWS = len(style.FLOWS)
"""Up to this number each flow has a colour and a name of its own; more are drawn grey."""
POINTS = 3000
"""RTT lines are thinned to about this number of points: more cannot be seen, and SVG would grow."""


def timeseries(run: Run, path: Path) -> None:
    """Draws the run into `path` (.png, .svg or .pdf): goodput and TCP RTT where there are flows, pings, and a panel for
    one-way streams and for fetches where there are some."""
    flows, streams, clients = (run.plan.get(kind, []) for kind in ("flows", "datagrams", "fetches"))
    loaded = bool(flows or streams)
    heights = [*([1.25, 1] if flows else []), 1, *([1] if streams else []), *([1] if clients else [])]
    with style.figure(9, 1.5 + 2.0 * len(heights), path, arranged=False) as figure:
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        left = iter(panels)
        if flows:
            _goodput(next(left), run)
            _rtt(next(left), run)
        _ping(next(left), run)
        if streams:
            _traffic(next(left), {one["name"]: delays_ms(run, one["id"]) for one in streams}, "one-way delay (ms)")
        if clients:
            _traffic(next(left), {one["name"]: times_ms(run, one["id"]) for one in clients}, "time of a fetch (ms)")
        for axes in panels:
            _frame(axes, run, loaded)
        panels[-1].set_xlabel("test time (s)")
        figure.suptitle(_title(run), x=0.01, ha="left", fontsize=11, fontweight="bold")
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


def _title(run: Run) -> str:
    return f"{run.scenario['name']}  ·  {run.scenario['test']['name']}  ·  Linux {run.info['kernel']['release']}"


def _goodput(axes: Axes, run: Run) -> None:
    window, flows = _whole(run), run.plan["flows"]
    for flow, (colour, name) in zip(flows, _looks(run), strict=True):
        series = goodput_steps(run, flow, window)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1, label=name, drawstyle="steps-pre")
    if len(flows) > 1:
        total = goodput_total(run, flows, window)
        axes.plot(total.t_s, total.values, color=style.INK, linewidth=1.6, label="total", drawstyle="steps-pre")
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_ylim(bottom=0)


def _rtt(axes: Axes, run: Run) -> None:
    seen = []
    for flow, (colour, _) in zip(run.plan["flows"], _looks(run), strict=True):
        series = _thinned(tcp_rtt_ms(run, flow["id"]))
        seen.append(series.values)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1)
    axes.set_ylabel("TCP RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _ping(axes: Axes, run: Run) -> None:
    seen = [np.empty(0)]
    for place, probe in enumerate(run.plan["probes"]):
        series = ping_ms(run, probe["id"])
        name, colour, lost = probe["name"], style.PROBES[place % len(style.PROBES)], np.isnan(series.values)
        seen.append(series.values)
        axes.plot(series.t_s, series.values, color=colour, linewidth=1.1, marker=".", markersize=2.5, label=name)
        _one_way(axes, run, probe["id"], colour, name)
        _losses(axes, series.t_s[lost], colour, name)
    axes.set_ylabel("ping RTT, one way (ms)" if seen_one_way(run) else "ping RTT (ms)")
    _scale(axes, np.concatenate(seen))


def _traffic(axes: Axes, found: dict[str, Series], unit: str) -> None:
    """Streams of packets or fetches as dots, their losses at the foot."""
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


def _one_way(axes: Axes, run: Run, probe: int, colour: str, name: str) -> None:
    """The two one-way delays of a probe that measures them, thin, up dashed and down dotted."""
    for way, line in (("up", (0, (4, 1.5))), ("down", (0, (1, 1.5)))):
        series = one_way_ms(run, probe, way)
        if series.t_s.size:
            axes.plot(series.t_s, series.values, color=colour, linewidth=0.9, linestyle=line, label=f"{name} {way}")


def seen_one_way(run: Run) -> bool:
    """Whether any probe measured its ways apart."""
    return any(one_way_ms(run, probe["id"], "up").t_s.size for probe in run.plan["probes"])


def _scale(axes: Axes, values: Floats) -> None:
    if style.wants_log(values):
        style.log_y(axes)
    else:
        axes.set_ylim(0, np.nanmax(values, initial=0) * 1.08 or 1)


def _frame(axes: Axes, run: Run, loaded: bool) -> None:
    """The time axis, the loaded window's shade and the legend right of the panel."""
    axes.set_xlim(0, run.plan["end_ns"] / NS_PER_S)
    if loaded:
        window = loaded_window(run)
        axes.axvspan(window.start_ns / NS_PER_S, window.end_ns / NS_PER_S, color=style.SHADE, zorder=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def _whole(run: Run) -> Window:
    return Window(0, int(run.plan["end_ns"]))


def _looks(run: Run) -> list[tuple[str, str]]:
    """(colour, legend) of each flow; "_" keeps a line out of the legend."""
    flows = run.plan["flows"]
    if len(flows) <= NAMED_FLOWS:
        return [(style.FLOWS[i], flow["name"]) for i, flow in enumerate(flows)]
    return [("#A8B4BE", f"{len(flows)} flows" if i == 0 else "_") for i in range(len(flows))]


def _thinned(series: Series) -> Series:
    """Every k-th sample, so that about `POINTS` remain."""
    every = max(1, series.t_s.size // POINTS)
    return Series(series.t_s[::every], series.values[::every])
