# SPDX-License-Identifier: Apache-2.0
"""Lists every kind of picture by name: `hourglass plot KIND RUN…`. To add a kind, add an entry to `KINDS`."""

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
class PictureKind:
    """A kind of picture. `draw(runs, labels, path)` draws into a file. `needs_flows`: the picture requires a flow."""

    draw: Draw
    description: str
    most_runs: int | None = None
    needs_flows: bool = False


def _of_single_run(draw: Callable[[Recording, Path], None]) -> Draw:
    """Return a drawing function for several runs from one for a single run."""
    return lambda runs, names, path: draw(runs[0], path)


KINDS: dict[str, PictureKind] = {
    "timeseries": PictureKind(
        _of_single_run(timeseries), "one run over time: goodput, TCP RTT, pings, other traffic, losses", most_runs=1
    ),
    "candlestick": PictureKind(candlestick, "goodput and latency of each run, p10 to p90 and median"),
    "scatter": PictureKind(
        scatter, "goodput against latency with 1-sigma ellipses; the best is up and right", needs_flows=True
    ),
    "cdf": PictureKind(cdf, "distribution of latency, on a linear axis"),
    "cdf-log": PictureKind(cdf_log, "distribution of latency, on a logarithmic axis"),
    "box": PictureKind(box, "goodput and latency by group: runs that differ only in their seed are one box"),
    "anatomy": PictureKind(anatomy, "time of a packet by node and layer"),
    "layers": PictureKind(_of_single_run(layers), "one run's layers over time", most_runs=1),
    "queues": PictureKind(
        _of_single_run(queues), "one run's queues, TCP Small Queues of a flow, cwnd and RTT of all", most_runs=1
    ),
    "wifi": PictureKind(
        _of_single_run(wifi), "one run's radios: aggregates, air, queues, retries, access categories", most_runs=1
    ),
    "fairness": PictureKind(fairness, "goodput of each flow, up and down, and Jain's index", needs_flows=True),
}


def draw(kind: str, runs: list[Recording], path: Path) -> None:
    """Draw the runs as `kind` into `path`. Raises `InputError` for an unknown kind or unsuitable runs."""
    if kind not in KINDS:
        raise InputError("kind", kind, f"must be one of {', '.join(KINDS)}")
    picture = KINDS[kind]
    if picture.most_runs is not None and len(runs) > picture.most_runs:
        raise InputError("RUN", str(runs[picture.most_runs].path), f"{kind} shows {picture.most_runs} run only")
    if picture.needs_flows and not any(run.flows for run in runs):
        raise InputError("RUN", str(runs[0].path), f"{kind} needs flows, and the test {runs[0].test.name} has none")
    picture.draw(runs, labels(runs), path)
