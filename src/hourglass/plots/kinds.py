# SPDX-License-Identifier: Apache-2.0
"""Every kind of picture by name: `hourglass plot KIND RUN…`. A new kind is one entry of `KINDS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hourglass.errors import InputError
from hourglass.plots.anatomy import anatomy
from hourglass.plots.box import box
from hourglass.plots.candlestick import candlestick
from hourglass.plots.cdf import cdf, cdf_log
from hourglass.plots.fairness import fairness
from hourglass.plots.layers import layers
from hourglass.plots.queues import queues
from hourglass.plots.scatter import scatter
from hourglass.plots.timeseries import timeseries
from hourglass.plots.wifi import wifi
from hourglass.results.labels import labels
from hourglass.results.recording import Recording

Draw = Callable[[Sequence[Recording], Sequence[str], Path], None]


@dataclass(frozen=True)
class Picture:
    """`draw(runs, labels, path)` draws into a file. `needs_flows`: without any flow there is nothing to draw."""

    draw: Draw
    description: str
    most_runs: int | None = None
    needs_flows: bool = False


def _one(draw: Callable[[Recording, Path], None]) -> Draw:
    """A picture of a single run as a picture of several."""
    return lambda runs, names, path: draw(runs[0], path)


KINDS: dict[str, Picture] = {
    "timeseries": Picture(
        _one(timeseries), "one run over its time: goodput, TCP RTT, pings, other traffic, losses", most_runs=1
    ),
    "candlestick": Picture(candlestick, "goodput and latency of each run, p10 to p90 and median"),
    "scatter": Picture(
        scatter, "goodput against latency with 1-sigma ellipses, better is up and right", needs_flows=True
    ),
    "cdf": Picture(cdf, "how latency is distributed, on a linear axis"),
    "cdf-log": Picture(cdf_log, "how latency is distributed, on a logarithmic axis"),
    "box": Picture(box, "goodput and latency by group: runs that differ in their seed alone are one box"),
    "anatomy": Picture(anatomy, "where the time of a packet goes, by node and layer"),
    "layers": Picture(_one(layers), "one run's layers over its time", most_runs=1),
    "queues": Picture(_one(queues), "one run's queues, TCP Small Queues of a flow, cwnd and RTT of all", most_runs=1),
    "wifi": Picture(_one(wifi), "one run's radios: aggregates, air, queues, retries, access categories", most_runs=1),
    "fairness": Picture(fairness, "what each flow got, up and down, and Jain's index", needs_flows=True),
}


def draw(kind: str, runs: list[Recording], path: Path) -> None:
    """Draws the runs as `kind` into `path`. Raises `InputError` for what the user can fix."""
    if kind not in KINDS:
        raise InputError("kind", kind, f"is one of {', '.join(KINDS)}")
    chosen = KINDS[kind]
    if chosen.most_runs is not None and len(runs) > chosen.most_runs:
        raise InputError("RUN", str(runs[chosen.most_runs].path), f"{kind} shows {chosen.most_runs} run only")
    if chosen.needs_flows and not any(run.flows for run in runs):
        raise InputError("RUN", str(runs[0].path), f"{kind} needs flows, and the test {runs[0].test.name} has none")
    chosen.draw(runs, labels(runs), path)
