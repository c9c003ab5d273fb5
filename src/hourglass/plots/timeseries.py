# SPDX-License-Identifier: Apache-2.0
"""Draws one run over time: goodput, TCP RTT, cwnd of programs' connections, pings and other traffic on a shared axis.
The loaded window is shaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hourglass.plots import event_marks, style
from hourglass.results import connection_series, gaps, line_rates, stream_styles
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
    whole_run,
)
from hourglass.results.stats import Floats
from hourglass.results.stream_styles import FlowStyle
from hourglass.results.traffic import TrafficView, stream_series
from hourglass.results.traffic import goodput_steps as datagram_steps
from hourglass.series_style import TOTAL, SeriesStyle

POINTS = 3000
"""RTT lines are thinned to about this number of points: more are invisible and make SVG files large."""
LEFT_IN, LABEL_IN = 0.8, 0.5
"""The margin left of the axes, and the distance from an axis to its label."""
WIDE, THIN = 4.0, 1.1
"""The first of several pings is a wide pale line and the last a thin one on top, since they are often equal."""

Panel = Callable[[Axes, Recording], None]


def timeseries(run: Recording, path: Path) -> None:
    """Draw the run into `path` (.png, .svg or .pdf), with a panel for each: goodput of flows, datagrams and programs'
    connections, TCP RTT, cwnd of connections, round trips and one-way delays of pings, and each kind of other
    traffic."""
    panel_heights = list(_panels(run)) or [(1.0, _draw_nothing)]
    loaded = bool(run.flows or run.datagrams)
    heights = [height for height, _ in panel_heights]
    foot_in = event_marks.height_in(run)
    with style.figure(9, 1.6 + 2.0 * len(heights) + foot_in, path, constrained=False) as figure:
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (_, draw) in zip(panels, panel_heights, strict=True):
            draw(axes, run)
            _frame(axes, run, loaded)
        panels[-1].set_xlabel("test time (s)")
        event_marks.mark(list(panels), run)
        event_marks.explain(figure, run)
        style.headline(figure, _title(run))
        _adjust_margins(figure, panels, foot_in)


def _panels(run: Recording) -> Iterator[tuple[float, Panel]]:
    """Yield (height, drawing function) for each panel that has data."""
    if run.flows or run.datagrams or run.connections:
        yield 1.25, _goodput
    sampled = [connection for connection in run.connections if connection_series.tcp_rtt_ms(run, connection).t_s.size]
    if run.flows or sampled:
        yield 1, _rtt
    if sampled:
        yield 1, _cwnd
    if run.pings:
        yield 1, _ping
    if any(one_way_ms(run, ping, "up").t_s.size for ping in run.pings):
        yield 1, _one_way
    for kind, series_by_name in stream_series(run):
        yield 1, partial(_traffic, kind=kind, series_by_name=series_by_name)


def _adjust_margins(figure: Figure, panels: Iterable[Axes], foot_in: float) -> None:
    """Set the margins for title, labels and the widest legend. This is faster than matplotlib's layout."""
    width_in, height_in = figure.get_size_inches()
    legends = [legend for axes in panels if (legend := axes.get_legend())]
    legend_in = max((legend.get_window_extent().width for legend in legends), default=0) / figure.dpi
    figure.subplots_adjust(
        left=LEFT_IN / width_in,
        right=1 - (legend_in + 0.2) / width_in,
        top=1 - (0.65 if foot_in else 0.5) / height_in,
        bottom=(0.5 + foot_in) / height_in,
        hspace=0.12,
    )
    for axes in panels:
        axes.yaxis.set_label_coords(-LABEL_IN / (width_in * axes.get_position().width), 0.5)


def _title(run: Recording) -> str:
    return f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}"


def _goodput(axes: Axes, run: Recording) -> None:
    """Draw each flow and datagram stream, and the sum of all flows as an area in the background."""
    window = whole_run(run)
    if len(run.flows) > 1:
        total = goodput_total(run, run.flows, window)
        axes.fill_between(total.t_s, total.values, step="pre", color=TOTAL, alpha=0.13, linewidth=0)
        label = stream_styles.sum_of_flows(run)
        axes.plot(total.t_s, total.values, color=TOTAL, linewidth=2, label=label, drawstyle="steps-pre")
    for drawn_flow in stream_styles.flow_styles(run):
        series = goodput_steps(run, drawn_flow.flow, window)
        axes.plot(series.t_s, series.values, drawstyle="steps-pre", **_line_style(drawn_flow))
    for stream, look in zip(run.datagrams, stream_styles.other_styles(run, run.datagrams), strict=True):
        series = datagram_steps(run, stream, window)
        axes.plot(series.t_s, series.values, drawstyle="steps-pre", linewidth=1.3, label=stream.name,
                  **style.line(look))  # fmt: skip
    for connection, look in stream_styles.connection_styles(run):
        series = connection_series.goodput_steps(run, connection)
        axes.plot(series.t_s, series.values, drawstyle="steps-pre", linewidth=1.3, label=connection.name,
                  **style.line(look))  # fmt: skip
    axes.set_ylabel("goodput (Mbit/s)")
    axes.set_ylim(bottom=0)
    _notes(axes, [_draw_line_rates(axes, run), connection_series.left_out(run)])


def _draw_line_rates(axes: Axes, run: Recording) -> str:
    """Draw the line rate if goodput is close to it; return a note if goodput exceeds it."""
    rates, above = line_rates.flow_line_rates(run)
    for rate in rates:
        axes.axhline(rate, color=style.MUTED, linewidth=1, linestyle=(0, (1, 2)), label=f"line: {rate:g} Mbit/s")
    return line_rates.ABOVE_NOTE if above else ""


def _notes(axes: Axes, notes: Sequence[str]) -> None:
    """Draw notes in a panel's upper left corner, above its curves."""
    text = "\n".join(filter(None, notes))
    if text:
        room = 1 + 0.12 * (1 + text.count("\n"))
        axes.set_ylim(top=axes.get_ylim()[1] * room)
        axes.text(0.01, 0.97, text, transform=axes.transAxes, va="top", fontsize=7.5, color=style.MUTED)


def _draw_nothing(axes: Axes, run: Recording) -> None:
    """Draw a note instead of an empty panel."""
    axes.set_yticks([])
    axes.text(0.5, 0.5, "nothing was sent", transform=axes.transAxes, ha="center", color=style.MUTED)


def _line_style(drawn_flow: FlowStyle) -> dict[str, Any]:
    """Return the style of a flow's line; with many flows it is thin and pale."""
    many = {} if drawn_flow.named else {"alpha": 0.5}
    return (
        style.line(drawn_flow.look)
        | {"label": drawn_flow.label or "_", "linewidth": 1.3 if drawn_flow.named else 0.7}
        | many
    )


def _rtt(axes: Axes, run: Recording) -> None:
    values = []
    for drawn_flow in stream_styles.flow_styles(run):
        series = _thinned(tcp_rtt_ms(run, drawn_flow.flow))
        values.append(series.values)
        _draw_line(axes, series, gaps.rtt_gaps_s(run, drawn_flow.flow), _line_style(drawn_flow) | {"label": "_"})
    for connection, look in stream_styles.connection_styles(run):
        series = _thinned(connection_series.tcp_rtt_ms(run, connection))
        values.append(series.values)
        axes.plot(series.t_s, series.values, linewidth=1.3, **style.line(look))
    axes.set_ylabel("TCP RTT (ms)")
    _scale(axes, np.concatenate(values))


def _cwnd(axes: Axes, run: Recording) -> None:
    for connection, look in stream_styles.connection_styles(run):
        series = _thinned(connection_series.cwnd_segments(run, connection))
        axes.plot(series.t_s, series.values, linewidth=1.3, drawstyle="steps-post", **style.line(look))
    axes.set_ylabel("cwnd (segments)")
    axes.set_ylim(bottom=0)
    closed = connection_series.closed_early(run)
    _notes(axes, [f"{', '.join(closed)}: no samples after the sender closed its socket" if closed else ""])


def _ping(axes: Axes, run: Recording) -> None:
    values = [np.empty(0)]
    for ping, (width_style, look) in zip(run.pings, _with_width_styles(stream_styles.ping_styles(run)), strict=True):
        series = ping_ms(run, ping)
        lost = np.isnan(series.values)
        values.append(series.values)
        _draw_line(axes, series, gaps.ping_gaps_s(run, ping), style.line(look) | width_style | {"label": ping.name})
        _losses(axes, series.t_s[lost], look.colour, ping.name)
    axes.set_ylabel("ping RTT (ms)")
    _scale(axes, np.concatenate(values))


def _draw_line(axes: Axes, series: Series, gaps_s: Floats, look: dict[str, Any]) -> None:
    """Draw a line that breaks at gaps. A sample between two of them is a dot."""
    starts = gaps.starts(series.t_s, gaps_s)
    for t_s, values in zip(np.split(series.t_s, starts), np.split(series.values, starts), strict=True):
        axes.plot(t_s, values, **look | ({"marker": "."} if starts and t_s.size == 1 else {}))
        look = look | {"label": "_"}


def _with_width_styles(looks: Sequence[SeriesStyle]) -> Iterator[tuple[dict[str, Any], SeriesStyle]]:
    """Yield line styles from wide and pale to thin and strong, so that no line hides another."""
    for index, look in enumerate(looks):
        remaining = 1 - (index + 1) / len(looks)
        yield (
            {"linewidth": THIN + (WIDE - THIN) * remaining, "alpha": 1 - 0.55 * remaining, "zorder": 2 + index / 100},
            look,
        )


def _one_way(axes: Axes, run: Recording) -> None:
    """Draw the one-way delays of pings that measure them: up solid, down dotted."""
    values = [np.empty(0)]
    for ping, (width_style, look) in zip(run.pings, _with_width_styles(stream_styles.ping_styles(run)), strict=True):
        for direction, dash in ONE_WAY:
            series = one_way_ms(run, ping, direction)
            if series.t_s.size:
                values.append(series.values)
                look_of_way = {"color": look.colour, "linestyle": dash, "label": f"{ping.name} {direction}"}
                _draw_line(axes, series, gaps.ping_gaps_s(run, ping), look_of_way | width_style)
    axes.set_ylabel("one way (ms)")
    _scale(axes, np.concatenate(values))


def _traffic(axes: Axes, run: Recording, kind: TrafficView[Any], series_by_name: dict[str, Series]) -> None:
    """Draw packets, fetches or transactions as dots, with losses at the foot."""
    for (name, series), look in zip(
        series_by_name.items(), stream_styles.other_styles(run, run.of_kind(kind.model)), strict=True
    ):
        lost = np.isnan(series.values)
        points = _thinned(Series(series.t_s[~lost], series.values[~lost]))
        axes.plot(
            points.t_s, points.values, **style.dot(look) | {"linestyle": "none", "markersize": 2.5, "label": name}
        )
        _losses(axes, series.t_s[lost], look.colour, name, kind.unanswered_label)
    axes.set_ylabel(f"{kind.title} (ms)")
    _scale(axes, np.concatenate([series.values for series in series_by_name.values()]))


def _losses(axes: Axes, t_s: Floats, colour: str, name: str, verb: str = "lost") -> None:
    """Draw losses, which have no delay, as crosses at the foot of the panel."""
    if t_s.size:
        times_s = _thinned(Series(t_s, t_s)).t_s
        axes.plot(times_s, np.full(times_s.size, 0.02), "x", color=colour, markersize=4, clip_on=False,
                  transform=axes.get_xaxis_transform(), label=f"{name} {verb} ({t_s.size})")  # fmt: skip


ONE_WAY: tuple[tuple[Literal["up", "down"], tuple[float, tuple[float, ...]] | str], ...] = (
    ("up", "-"),
    ("down", (0, (1, 1.5))),
)
"""The line styles of the two directions."""


def _scale(axes: Axes, values: Floats) -> None:
    if style.wants_log(values):
        style.log_y(axes)
        axes.set_ylabel(axes.get_ylabel().replace("(ms)", "(ms, log.)"))
    else:
        axes.set_ylim(0, np.nanmax(values, initial=0) * 1.08 or 1)


def _frame(axes: Axes, run: Recording, loaded: bool) -> None:
    """Draw the time axis, the shaded loaded window, and the legend right of the panel."""
    style.show_whole_run(axes, run)
    if loaded:
        window = loaded_window(run)
        axes.axvspan(window.start_ns / NS_PER_S, window.end_ns / NS_PER_S, color=style.SHADE, zorder=0)
    style.legend_right(axes)


def _thinned(series: Series) -> Series:
    """Return every k-th sample, so that about `POINTS` remain."""
    every = max(1, series.t_s.size // POINTS)
    return Series(series.t_s[::every], series.values[::every])
