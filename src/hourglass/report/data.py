# SPDX-License-Identifier: Apache-2.0
"""What the charts of a page draw: series thinned to what can be seen, numbers of four digits, plain lists."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hourglass import looks
from hourglass.looks import Look
from hourglass.results import streams
from hourglass.results.points import latency
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
from hourglass.results.traffic import goodput_steps as datagram_steps
from hourglass.results.traffic import stream_series

MOST_POINTS = 1500
"""Of one series: more than a wide screen has columns."""
LEAST_POINTS = 60
PAGE_POINTS = 300_000
"""Of all series of a page together: about 4 MB."""
MOST_EVENTS = 400
"""Lines of what changed during the test: more would be a plane."""
SHOWN = 12
"""Runs whose distributions are drawn, and flows one by one: of more the first, and the sum of all."""
QUANTILES = 200

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
"""The shapes of `looks.SHAPES` within (-1, -1) and (1, 1), as Vega takes them."""


def share_of_page(runs: list[Recording]) -> int:
    """How many points a series may have, so that the page stays small whatever is on it."""
    series = sum(
        2 * min(len(run.flows), SHOWN) + 1 + 3 * len(run.pings) + (len(run.streams) - len(run.flows) - len(run.pings))
        for run in runs
    )
    return max(LEAST_POINTS, min(MOST_POINTS, PAGE_POINTS // max(series, 1)))


def thinned(series: Series, most: int) -> Series:
    """At most `most` points: of each stretch of equal length the lowest and the highest stay, in order of time."""
    size = series.values.size
    if size <= most:
        return series
    length = -(-size // (most // 2))
    stretches = np.pad(series.values, (0, -size % length), "edge").reshape(-1, length)
    extremes = np.stack([stretches.argmin(axis=1), stretches.argmax(axis=1)])
    chosen = np.unique((extremes + length * np.arange(len(stretches))).clip(max=size - 1))
    return Series(series.t_s[chosen], series.values[chosen])


def charts(run: Recording, most: int) -> dict[str, Any]:
    """The time series of one run, a list of charts on one time axis, and where the load was (s)."""
    loaded = bool(run.flows or run.datagrams)
    window = loaded_window(run)
    made = [_goodput(run, most)] if loaded else []
    made += [_rtt(run, most)] if run.flows else []
    made += [_ping(run, most)] if run.pings or not run.streams else []
    return {
        "end": run.end_ns / NS_PER_S,
        "window": [window.start_ns / NS_PER_S, window.end_ns / NS_PER_S] if loaded else None,
        "events": [
            {"t": t_ns / NS_PER_S, "s": f"{node} {name}"}
            for t_ns, node, name in run.events.select("t_ns", "node", "name").head(MOST_EVENTS).iter_rows()
        ],
        "charts": [*made, *_one_way(run, most), *_traffic(run, most)],
    }


def _goodput(run: Recording, most: int) -> dict[str, Any]:
    """The sum first: it is drawn below the others."""
    flows, window, series = streams.first(run, SHOWN), whole(run), []
    if len(run.flows) > 1:
        total = _series(streams.sum_of_flows(run), thinned(goodput_total(run, run.flows, window), most))
        series.append(total | {"look": {"c": [looks.TOTAL, looks.TOTAL_DARK], "dash": []}, "width": 3})
    series += [_series(one.label, thinned(goodput_steps(run, one.flow, window), most), one.look) for one in flows]
    further = looks.further(len(run.datagrams), [one.look for one in flows])
    for stream, look in zip(run.datagrams, further, strict=True):
        series.append(_series(stream.name, thinned(datagram_steps(run, stream, window), most), look))
    return {"title": "Goodput", "unit": "Mbit/s", "step": True, "series": series, "note": _note(run)}


def _rtt(run: Recording, most: int) -> dict[str, Any]:
    series = [_series(one.label, thinned(tcp_rtt_ms(run, one.flow), most), one.look)
              for one in streams.first(run, SHOWN)]  # fmt: skip
    return {"title": "TCP RTT", "unit": "ms", "step": False, "series": series, "note": _note(run)}


def _note(run: Recording) -> str:
    return f"The first {SHOWN} of {len(run.flows)} flows are drawn." if len(run.flows) > SHOWN else ""


def _ping(run: Recording, most: int) -> dict[str, Any]:
    """The first is the widest line and the last the thinnest: they are often equal, and none hides another."""
    series = []
    for place, (ping, look) in enumerate(zip(run.pings, streams.pings(run), strict=True)):
        width = round(1.5 + 4 * (1 - (place + 1) / len(run.pings)), 2)
        series.append(_with_losses(ping.name, ping_ms(run, ping), most, look) | {"width": width})
    return {"title": "Ping", "unit": "ms", "step": False, "series": series, "note": ""}


def _one_way(run: Recording, most: int) -> list[dict[str, Any]]:
    """The ways of the pings that measure them apart: there solid, back dashed."""
    series = []
    for ping, look in zip(run.pings, streams.pings(run), strict=True):
        for way, part in (("up", one_way_ms(run, ping, "up")), ("down", one_way_ms(run, ping, "down"))):
            if part.values.size:
                drawn = replace(look, dash=looks.DASHES[way == "down"])
                series.append(_series(f"{ping.name} {way}", thinned(part, most), drawn))
    title = "Ping, each way"
    return [{"title": title, "unit": "ms", "step": False, "series": series, "note": ""}] if series else []


def _traffic(run: Recording, most: int) -> list[dict[str, Any]]:
    """What is sent beside flows and pings, where there is some."""
    made = []
    for kind, found in stream_series(run):
        drawn = looks.further(len(found), [one.look for one in streams.first(run, SHOWN)])
        series = [_with_losses(name, values, most, look)
                  for (name, values), look in zip(found.items(), drawn, strict=True)]  # fmt: skip
        made.append({"title": kind.title.capitalize(), "unit": "ms", "step": False, "series": series, "note": "",
                     "without": kind.without_time})  # fmt: skip
    return made


def _with_losses(name: str, series: Series, most: int, look: Look) -> dict[str, Any]:
    """A series with the times of what was lost beside it."""
    lost = np.isnan(series.values)
    made = _series(name, thinned(Series(series.t_s[~lost], series.values[~lost]), most), look)
    times = thinned(Series(series.t_s[lost], series.t_s[lost]), most).t_s
    return made | ({"lost": _short(times, 6)} if lost.any() else {})


def _series(name: str, series: Series, look: Look | None = None) -> dict[str, Any]:
    made = {"name": name, "t": _short(series.t_s, 6), "v": _short(series.values, 4)}
    return made | ({"look": shown(look)} if look else {})


def shown(look: Look) -> dict[str, Any]:
    """A look as the page draws it: colours of the light and the dark page, dashes in px, the outline of its dots."""
    return {
        "c": [look.colour, look.dark],
        "dash": [round(1.5 * length, 1) for length in look.dash],
        "dot": OUTLINES[look.shape],
        "filled": look.filled,
    }


def _short(values: Floats, digits: int) -> list[float]:
    """Plain numbers of so many significant digits; whole ones without a point."""
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where(values == 0, 1, values)))))
    kept: list[float] = (np.round(values * scale) / scale).tolist()
    return [int(value) if value.is_integer() else value for value in kept]


def overview(runs: list[Recording], names: list[str], groups: list[str]) -> dict[str, Any]:
    """One point per run: goodput of all flows and median latency under load; and each run's latency distribution."""
    points = list(_points(runs, names, groups))
    shares = np.linspace(0, 1, QUANTILES + 1)
    most = QUANTILES if len(runs) <= SHOWN else 0
    waits = [latency(run)[1].values for run in runs] if most else []
    cdf = [
        {"name": name, "q": _short(np.quantile(values, shares), 4), "look": shown(looks.look(place))}
        for place, (name, values) in enumerate(zip(names, waits, strict=False))
        if values.size
    ]
    kinds = list(dict.fromkeys(groups))
    return {
        "points": points,
        "groups": [{"name": name, "look": shown(looks.look(place))} for place, name in enumerate(kinds)],
        "cdf": cdf,
        "latency": " / ".join(dict.fromkeys(latency(run)[0] for run in runs)),
    }


def _points(runs: list[Recording], names: list[str], groups: list[str]) -> Iterator[dict[str, Any]]:
    for place, (run, name, group) in enumerate(zip(runs, names, groups, strict=True)):
        kind, waits = latency(run)
        totals = run.summary.totals
        if run.flows and waits.values.size:
            ping = run.summary.ping_ms.get(kind.removeprefix("ping "))
            median = (ping or run.summary.tcp_rtt_ms).p50
            yield {"run": place, "name": name, "group": group, "x": median,
                   "y": round(totals.upload_mbps + totals.download_mbps, 4)}  # fmt: skip
