# SPDX-License-Identifier: Apache-2.0
"""Builds the data of a page's charts: thinned series, numbers of four digits, plain lists."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hourglass import series_style
from hourglass.report.journeys import journeys
from hourglass.report.window_figures import window_figures
from hourglass.results import connection_series, gaps, line_rates, stream_styles
from hourglass.results.compare import ComparisonRow
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
from hourglass.results.study_axes import SEED, StudyAxis
from hourglass.results.traffic import goodput_steps as datagram_steps
from hourglass.results.traffic import stream_series
from hourglass.series_style import SeriesStyle

MOST_POINTS = 1500
"""The most points of a series: more than the columns of a wide screen."""
LEAST_POINTS = 60
PAGE_POINTS = 300_000
"""The most points of a page: about 4 MB."""
MOST_OUTPUT_LINES, MOST_LETTERS = 600, 200
"""The most lines of programs' output of a run, and the most letters of a line."""
MOST_EVENTS = 400
"""The most lines of events: more would form a plane."""
DRAWN_MAX = 12
"""The most runs with a distribution, and the most flows of a run with a line, next to the sum of all."""
QUANTILES = 200
COMPARED_POINTS = 300
"""The most points of a line in a study's charts."""
LEAST_RUNS = 4
"""The fewest runs of a page with pictures by axis."""

OUTLINES = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "square": "M-0.9,-0.9H0.9V0.9H-0.9Z",
    "triangle-up": "M0,-1L1,0.8H-1Z",
    "diamond": "M0,-1.1L1.1,0L0,1.1L-1.1,0Z",
    "triangle-down": "M0,1L1,-0.8H-1Z",
    "plus": "M-0.35,-1H0.35V-0.35H1V0.35H0.35V1H-0.35V0.35H-1V-0.35H-0.35Z",
    "triangle-right": "M1,0L-0.8,1V-1Z",
    "cross": "M0,-0.5L0.5,-1L1,-0.5L0.5,0L1,0.5L0.5,1L0,0.5L-0.5,1L-1,0.5L-0.5,0L-1,-0.5L-0.5,-1Z",
    "triangle-left": "M-1,0L0.8,1V-1Z",
    "star": "M0,-1.1L0.26,-0.36L1.05,-0.34L0.42,0.14L0.65,0.89L0,0.44L-0.65,0.89L-0.42,0.14L-1.05,-0.34L-0.26,-0.36Z",
    "pentagon": "M0,-1.05L1,-0.32L0.62,0.85H-0.62L-1,-0.32Z",
}
"""The shapes of `series_style.SHAPES` within (-1, -1) and (1, 1), as SVG paths."""


def points_per_series(runs: list[Recording]) -> int:
    """Return the most points of a series that keep the page small."""
    series = sum(
        2 * min(len(run.flows), DRAWN_MAX)
        + 3 * len(connection_series.drawn(run))
        + 1
        + 3 * len(run.pings)
        + (len(run.streams) - len(run.flows) - len(run.pings))
        for run in runs
    )
    return max(LEAST_POINTS, min(MOST_POINTS, PAGE_POINTS // max(series, 1)))


def thinned(series: Series, points_max: int) -> Series:
    """Return at most `points_max` points: the lowest and highest of each stretch of equal length, in order of time."""
    size = series.values.size
    if size <= points_max:
        return series
    length = -(-size // (points_max // 2))
    stretches = np.pad(series.values, (0, -size % length), "edge").reshape(-1, length)
    extremes = np.stack([stretches.argmin(axis=1), stretches.argmax(axis=1)])
    chosen = np.unique((extremes + length * np.arange(len(stretches))).clip(max=size - 1))
    return Series(series.t_s[chosen], series.values[chosen])


def run_data(run: Recording, points_max: int, *, is_detailed: bool) -> dict[str, Any]:
    """Return everything that the page's script draws of a run; `is_detailed`: with the parts that read all records."""
    run_charts = charts(run, points_max)
    if is_detailed:
        run_charts |= {"figures": window_figures(run), "journeys": journeys(run)}
    lines = _output_lines(run)
    if lines:
        run_charts["charts"].append(_output(lines))
        run_charts |= {"output": lines[:MOST_OUTPUT_LINES], "output_more": max(0, len(lines) - MOST_OUTPUT_LINES)}
    return run_charts


def _output_lines(run: Recording) -> list[list[Any]]:
    """Return the lines that programs wrote, by time: time (s), program, pipe, text."""
    lines = [
        [t_ns / NS_PER_S, program.name, pipe, textwrap.shorten(line, MOST_LETTERS, placeholder=" …")]
        for program in run.apps.values()
        for t_ns, pipe, line in program.output.select("t_ns", "pipe", "line").iter_rows()
    ]
    return sorted(lines, key=lambda line: line[0])


def _output(lines: list[list[Any]]) -> dict[str, Any]:
    """Return the chart of programs' output: a row of marks for each program."""
    names = list(dict.fromkeys(name for _, name, *_ in lines))
    series = []
    for row, (name, look) in enumerate(zip(names, series_style.styles(len(names)), strict=True)):
        marks = [[t_s, text] for t_s, program, _, text in lines[:MOST_OUTPUT_LINES] if program == name]
        series.append({"name": name, "look": look_data(look), "t": [], "v": [], "row": row, "marks": marks})
    return {"title": "Output of programs", "unit": "", "step": False, "series": series, "rows": len(names),
            "note": "A mark is a line."}  # fmt: skip


def charts(run: Recording, points_max: int) -> dict[str, Any]:
    """Return the charts of a run's time series on one time axis, and its loaded window (s)."""
    loaded = bool(run.flows or run.datagrams)
    window = loaded_window(run)
    sampled = [
        connection
        for connection, _ in stream_styles.connection_styles(run)
        if connection_series.tcp_rtt_ms(run, connection).t_s.size
    ]
    charts_of_run = [_goodput(run, points_max)] if loaded or run.connections else []
    charts_of_run += [_rtt(run, points_max)] if run.flows or sampled else []
    charts_of_run += [_cwnd(run, points_max)] if sampled else []
    charts_of_run += [_ping(run, points_max)] if run.pings else []
    return {
        "end": run.end_ns / NS_PER_S,
        "window": [window.start_ns / NS_PER_S, window.end_ns / NS_PER_S] if loaded else None,
        "events": [
            {"t": t_ns / NS_PER_S, "s": f"{node} {name}"}
            for t_ns, node, name in run.events.select("t_ns", "node", "name").head(MOST_EVENTS).iter_rows()
        ],
        "charts": [*charts_of_run, *_one_way(run, points_max), *_traffic(run, points_max)],
    }


def _goodput(run: Recording, points_max: int) -> dict[str, Any]:
    """Return the goodput chart. The sum comes first because it is drawn below the others."""
    flows, window, series = stream_styles.first_flow_styles(run, DRAWN_MAX), whole_run(run), []
    if len(run.flows) > 1:
        total = _series(stream_styles.sum_of_flows(run), thinned(goodput_total(run, run.flows, window), points_max))
        series.append(total | {"look": {"c": [series_style.TOTAL, series_style.TOTAL_DARK], "dash": []}, "width": 3})
    series += [
        _series(
            drawn_flow.label,
            thinned(goodput_steps(run, drawn_flow.flow, window), points_max),
            drawn_flow.look,
            drawn_flow.flow.name,
        )
        for drawn_flow in flows
    ]
    next_looks = series_style.more_styles(len(run.datagrams), [other.look for other in flows])
    for stream, look in zip(run.datagrams, next_looks, strict=True):
        series.append(_series(stream.name, thinned(datagram_steps(run, stream, window), points_max), look))
    for connection, look in stream_styles.connection_styles(run):
        series.append(
            _series(connection.name, thinned(connection_series.goodput_steps(run, connection), points_max), look)
        )
    rates, above = line_rates.flow_line_rates(run)
    notes = [_note(run), line_rates.ABOVE_NOTE.capitalize() + "." if above else ""]
    return {"title": "Goodput", "unit": "Mbit/s", "step": True, "series": series, "lines": rates,
            "note": " ".join(filter(None, notes))}  # fmt: skip


def _rtt(run: Recording, points_max: int) -> dict[str, Any]:
    series = [
        _broken(
            _series(styled.label, thinned(tcp_rtt_ms(run, styled.flow), points_max), styled.look, styled.flow.name),
            gaps.rtt_gaps_s(run, styled.flow),
        )
        for styled in stream_styles.first_flow_styles(run, DRAWN_MAX)
    ]
    series += [_series(connection.name, thinned(values, points_max), look)
               for connection, look in stream_styles.connection_styles(run)
               if (values := connection_series.tcp_rtt_ms(run, connection)).t_s.size]  # fmt: skip
    return {"title": "TCP RTT", "unit": "ms", "step": False, "series": series, "note": _note(run)}


def _cwnd(run: Recording, points_max: int) -> dict[str, Any]:
    """Return the chart of congestion windows of programs' connections."""
    series = [_series(connection.name, thinned(values, points_max), look)
              for connection, look in stream_styles.connection_styles(run)
              if (values := connection_series.cwnd_segments(run, connection)).t_s.size]  # fmt: skip
    closed = connection_series.closed_early(run)
    note = f"{', '.join(closed)}: no samples after the sender closed its socket." if closed else ""
    return {"title": "Congestion window", "unit": "segments", "step": False, "series": series, "note": note}


def _note(run: Recording) -> str:
    flows = f"The first {DRAWN_MAX} of {len(run.flows)} flows are drawn." if len(run.flows) > DRAWN_MAX else ""
    omitted = connection_series.left_out(run)
    return " ".join(filter(None, [flows, f"{omitted}, are drawn." if omitted else ""]))


def _ping(run: Recording, points_max: int) -> dict[str, Any]:
    """Return the ping chart, from the widest to the thinnest line, so that equal pings do not hide each other."""
    series = []
    for index, (ping, look) in enumerate(zip(run.pings, stream_styles.ping_styles(run), strict=True)):
        width = round(1.5 + 4 * (1 - (index + 1) / len(run.pings)), 2)
        drawn = _with_losses(ping.name, ping_ms(run, ping), points_max, look) | {"width": width}
        series.append(_broken(drawn, gaps.ping_gaps_s(run, ping)))
    return {"title": "Ping", "unit": "ms", "step": False, "series": series, "note": ""}


def _one_way(run: Recording, points_max: int) -> list[dict[str, Any]]:
    """Return the chart of the one-way delays of pings that measure them: up solid, down dashed."""
    series = []
    for ping, look in zip(run.pings, stream_styles.ping_styles(run), strict=True):
        for direction, delays in (("up", one_way_ms(run, ping, "up")), ("down", one_way_ms(run, ping, "down"))):
            if delays.values.size:
                drawn = replace(look, dash=series_style.DASHES[direction == "down"])
                chart_series = _series(f"{ping.name} {direction}", thinned(delays, points_max), drawn, ping.name)
                series.append(_broken(chart_series, gaps.ping_gaps_s(run, ping)))
    title = "Ping, each way"
    return [{"title": title, "unit": "ms", "step": False, "series": series, "note": ""}] if series else []


def _traffic(run: Recording, points_max: int) -> list[dict[str, Any]]:
    """Return the charts of traffic other than flows and pings."""
    chart_list = []
    for kind, series_by_name in stream_series(run):
        new_looks = series_style.more_styles(
            len(series_by_name), [drawn_flow.look for drawn_flow in stream_styles.first_flow_styles(run, DRAWN_MAX)]
        )
        series = [_with_losses(name, values, points_max, look)
                  for (name, values), look in zip(series_by_name.items(), new_looks, strict=True)]  # fmt: skip
        chart_list.append({"title": kind.title.capitalize(), "unit": "ms", "step": False, "series": series, "note": "",
                     "without": kind.unanswered_label})  # fmt: skip
    return chart_list


def _with_losses(name: str, series: Series, points_max: int, look: SeriesStyle) -> dict[str, Any]:
    """Return a series and the times of its losses."""
    lost = np.isnan(series.values)
    chart_series = _series(name, thinned(Series(series.t_s[~lost], series.values[~lost]), points_max), look)
    times = thinned(Series(series.t_s[lost], series.t_s[lost]), points_max).t_s
    return chart_series | ({"lost": _short(times, 6)} if lost.any() else {})


def _series(name: str, series: Series, look: SeriesStyle | None = None, stream: str = "") -> dict[str, Any]:
    """Return a series; `stream`: whose packets it shows, if its name is another."""
    chart_series: dict[str, Any] = {"name": name, "t": _short(series.t_s, 6), "v": _short(series.values, 4)}
    if stream and stream != name:
        chart_series["stream"] = stream
    return chart_series | ({"look": look_data(look)} if look else {})


def _broken(chart_series: dict[str, Any], gaps_s: Floats) -> dict[str, Any]:
    """Return a series with the samples at which its line begins again after a gap."""
    starts = gaps.starts(np.array(chart_series["t"]), gaps_s)
    return chart_series | ({"starts": starts} if starts else {})


def look_data(look: SeriesStyle) -> dict[str, Any]:
    """Return a look for the page: colours in light and dark mode, dashes in px, the outline of dots."""
    return {
        "c": [look.colour, look.dark],
        "dash": [round(1.5 * length, 1) for length in look.dash],
        "dot": OUTLINES[look.shape],
        "filled": look.filled,
    }


def _short(values: Floats, digits: int) -> list[float]:
    """Return numbers of `digits` significant digits; integers have no decimal point."""
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where(values == 0, 1, values)))))
    rounded: list[float] = (np.round(values * scale) / scale).tolist()
    return [int(value) if value.is_integer() else value for value in rounded]


def compared_charts(runs: Mapping[str, Sequence[Recording]]) -> dict[str, Any] | None:
    """Return the charts of compared columns, the reference first: a line for each run with flows. None without any."""
    looks = zip(runs, series_style.styles(len(runs)), strict=True)
    lines = [(name, look, run) for name, look in looks for run in runs[name] if run.flows]
    charts_of_flows: tuple[tuple[str, str, bool, Callable[[Recording], Series]], ...] = (
        ("Goodput of all flows", "Mbit/s", True, lambda run: goodput_total(run, run.flows, whole_run(run))),
        ("TCP RTT", "ms", False, lambda run: tcp_rtt_ms(run).within(loaded_window(run))),
    )
    drawn = [
        {"title": title, "unit": unit, "step": step, "note": "",
         "series": [_series(name, thinned(series(run), COMPARED_POINTS), look) for name, look, run in lines]}
        for title, unit, step, series in charts_of_flows
    ]  # fmt: skip
    end_s = max((run.end_ns for *_, run in lines), default=0) / NS_PER_S
    return {"end": end_s, "label": "all runs", "window": None, "events": [], "charts": drawn} if lines else None


def overview(
    runs: list[Recording], names: list[str], groups: list[str], latencies: list[tuple[str, Series]]
) -> dict[str, Any]:
    """Return a point per run (goodput of all flows, median latency under load) and each run's latency distribution.
    `latencies`: the name and the samples of each run."""
    points = list(_points(runs, names, groups, latencies))
    shares = np.linspace(0, 1, QUANTILES + 1)
    cdf = [
        {"name": name, "q": _short(np.quantile(series.values, shares), 4), "look": look_data(series_style.style(index))}
        for index, (name, (_, series)) in enumerate(zip(names, latencies, strict=True))
        if series.values.size and len(runs) <= DRAWN_MAX
    ]
    kinds = list(dict.fromkeys(groups))
    return {
        "end": max(run.end_ns for run in runs) / NS_PER_S,
        "names": names,
        "points": points,
        "groups": [{"name": name, "look": look_data(series_style.style(index))} for index, name in enumerate(kinds)],
        "cdf": cdf,
        "latency": " / ".join(dict.fromkeys(kind for kind, _ in latencies)),
    }


def _points(
    runs: list[Recording], names: list[str], groups: list[str], latencies: list[tuple[str, Series]]
) -> Iterator[dict[str, Any]]:
    for index, (run, name, group, (kind, series)) in enumerate(zip(runs, names, groups, latencies, strict=True)):
        if run.flows and series.values.size:
            ping = run.summary.ping_ms.get(kind.removeprefix("ping "))
            median = (ping or run.summary.tcp_rtt_ms).p50
            yield {"run": index, "name": name, "group": group, "x": median,
                   "y": round(run.summary.totals.mbps, 4)}  # fmt: skip


def study_data(axes: Sequence[StudyAxis], rows: Sequence[ComparisonRow], runs: int) -> dict[str, Any] | None:
    """Return the axes and all figures of the runs for the page; None if there is nothing to draw by axis."""
    if runs < LEAST_RUNS or not [axis for axis in axes if axis.name != SEED]:
        return None
    return {
        "axes": [_axis_data(axis) for axis in axes],
        "figures": [
            {"name": row.figure, "unit": row.unit, "values": [cell.value for cell in row.cells]} for row in rows
        ],
        "looks": [look_data(look) for look in series_style.styles(max(len(axis.values) for axis in axes))],
    }


def _axis_data(axis: StudyAxis) -> dict[str, Any]:
    return {"name": axis.name, "values": axis.values, "numbers": axis.numbers, "condition": axis.is_condition,
            "of": axis.of_run}  # fmt: skip
