# SPDX-License-Identifier: Apache-2.0
"""What the charts of a page draw: series thinned to what can be seen, numbers of four digits, plain lists."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hourglass.contract.plan import Flow
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
from hourglass.results.traffic import stream_series

MOST_POINTS = 1500
"""Of one series: more than a wide screen has columns."""
LEAST_POINTS = 60
PAGE_POINTS = 300_000
"""Of all series of a page together: about 4 MB."""
SHOWN_FLOWS = 12
"""More flows than this are not drawn one by one; their total is."""
QUANTILES = 200


def share_of_page(runs: list[Recording]) -> int:
    """How many points a series may have, so that the page stays small whatever is on it."""
    series = sum(
        2 * min(len(run.flows), SHOWN_FLOWS)
        + 1
        + 3 * len(run.pings)
        + (len(run.streams) - len(run.flows) - len(run.pings))
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
    made = [_goodput(run, most), _rtt(run, most)] if run.flows else []
    return {
        "end": run.end_ns / NS_PER_S,
        "window": [window.start_ns / NS_PER_S, window.end_ns / NS_PER_S] if loaded else None,
        "charts": [*made, _ping(run, most), *_traffic(run, most)],
    }


def _goodput(run: Recording, most: int) -> dict[str, Any]:
    flows = run.flows
    series = [_series(f.name, thinned(goodput_steps(run, f, whole(run)), most)) for f in flows[:SHOWN_FLOWS]]
    if len(flows) > 1:
        series.append(_series("total", thinned(goodput_total(run, flows, whole(run)), most)))
    return {"title": "Goodput", "unit": "Mbit/s", "step": True, "series": series, "note": _note(flows)}


def _rtt(run: Recording, most: int) -> dict[str, Any]:
    flows = run.flows
    series = [_series(f.name, thinned(tcp_rtt_ms(run, f), most)) for f in flows[:SHOWN_FLOWS]]
    return {"title": "TCP RTT", "unit": "ms", "step": False, "series": series, "note": _note(flows)}


def _note(flows: Sequence[Flow]) -> str:
    return f"The first {SHOWN_FLOWS} of {len(flows)} flows are drawn." if len(flows) > SHOWN_FLOWS else ""


def _ping(run: Recording, most: int) -> dict[str, Any]:
    series = []
    for ping in run.pings:
        series.append(_with_losses(ping.name, ping_ms(run, ping), most))
        for way, part in (("up", one_way_ms(run, ping, "up")), ("down", one_way_ms(run, ping, "down"))):
            if part.values.size:
                series.append(_series(f"{ping.name} one way {way}", thinned(part, most)) | {"dash": True})
    return {"title": "Ping", "unit": "ms", "step": False, "series": series, "note": ""}


def _traffic(run: Recording, most: int) -> list[dict[str, Any]]:
    """What is sent beside flows and pings, where there is some."""
    return [
        {
            "title": kind.title.capitalize(),
            "unit": "ms",
            "step": False,
            "series": [_with_losses(name, series, most) for name, series in found.items()],
            "note": "",
        }
        for kind, found in stream_series(run)
    ]


def _with_losses(name: str, series: Series, most: int) -> dict[str, Any]:
    """A series with the times of what was lost beside it."""
    lost = np.isnan(series.values)
    made = _series(name, thinned(Series(series.t_s[~lost], series.values[~lost]), most))
    times = thinned(Series(series.t_s[lost], series.t_s[lost]), most).t_s
    return made | ({"lost": _short(times, 6)} if lost.any() else {})


def _series(name: str, series: Series) -> dict[str, Any]:
    return {"name": name, "t": _short(series.t_s, 6), "v": _short(series.values, 4)}


def _short(values: Floats, digits: int) -> list[float]:
    """Plain numbers of so many significant digits; whole ones without a point."""
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where(values == 0, 1, values)))))
    kept: list[float] = (np.round(values * scale) / scale).tolist()
    return [int(value) if value.is_integer() else value for value in kept]


def overview(runs: list[Recording], names: list[str], groups: list[str]) -> dict[str, Any]:
    """One point per run: goodput of all flows and median latency under load; and each run's latency distribution."""
    points = list(_points(runs, names, groups))
    shares = np.linspace(0, 1, QUANTILES + 1)
    most = QUANTILES if len(runs) <= SHOWN_FLOWS else 0
    waits = [latency(run)[1].values for run in runs] if most else []
    cdf = [
        {"name": name, "q": _short(np.quantile(values, shares), 4)}
        for name, values in zip(names, waits, strict=False)
        if values.size
    ]
    return {"points": points, "cdf": cdf, "latency": " / ".join(dict.fromkeys(latency(run)[0] for run in runs))}


def _points(runs: list[Recording], names: list[str], groups: list[str]) -> Iterator[dict[str, Any]]:
    for place, (run, name, group) in enumerate(zip(runs, names, groups, strict=True)):
        kind, waits = latency(run)
        totals = run.summary.totals
        if run.flows and waits.values.size:
            ping = run.summary.ping_ms.get(kind.removeprefix("ping "))
            median = (ping or run.summary.tcp_rtt_ms).p50
            yield {"run": place, "name": name, "group": group, "x": median,
                   "y": round(totals.upload_mbps + totals.download_mbps, 4)}  # fmt: skip
