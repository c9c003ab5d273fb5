# SPDX-License-Identifier: Apache-2.0
"""Cumulative distributions of latency under load: a panel per kind of latency, a line per run, p10/p50/p90 marked."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from hourglass.plots import style
from hourglass.plots.samples import latencies_ms
from hourglass.results.recording import Recording
from hourglass.results.stats import Floats

CONVENTION = "dots: p10, p50, p90 of the samples under load; lost packets are not in the distribution"
STEPS = 600
"""A line of more samples is drawn through this many of its quantiles."""
LINES = ("-", "--", "-.", ":")


def cdf(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs into `path` on a linear latency axis."""
    _draw(runs, labels, path, log=False)


def cdf_log(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs into `path` on a logarithmic latency axis."""
    _draw(runs, labels, path, log=True)


def _draw(runs: Sequence[Recording], labels: Sequence[str], path: Path, log: bool) -> None:
    samples = [_samples(run) for run in runs]
    kinds = list(dict.fromkeys(kind for each in samples for kind in each))
    with style.figure(3.3 * max(len(kinds), 1) + 0.6, 3.7, path) as figure:
        panels = figure.subplots(1, max(len(kinds), 1), sharey=True, squeeze=False)[0]
        for axes, kind in zip(panels, kinds, strict=False):
            if log:
                style.log_x(axes)
            for place, (each, name) in enumerate(zip(samples, labels, strict=True)):
                if kind in each:
                    _line(axes, each[kind], name, place)
            axes.set_title(kind)
            axes.set_xlabel(f"round-trip time (ms{', logarithmic' if log else ''})")
            if not log:
                axes.set_xlim(left=0)
            axes.set_ylim(0, 1.005)
        panels[0].set_ylabel("share of samples not above")
        _legend(panels[0], labels)
        style.caption(figure, CONVENTION)


def _legend(axes: Axes, labels: Sequence[str]) -> None:
    handles = [axes.plot([], [], color=_look(place)[0], linestyle=_look(place)[1], label=name)[0]
               for place, name in enumerate(labels)]  # fmt: skip
    assert axes.figure is not None
    axes.figure.legend(handles=handles, loc="outside upper left", ncols=min(len(labels), 4))


def _samples(run: Recording) -> dict[str, Floats]:
    return {kind: values for kind, values in latencies_ms(run).items() if values.size}


def _look(place: int) -> tuple[str, str]:
    return style.SERIES[place % len(style.SERIES)], LINES[place // len(style.SERIES) % len(LINES)]


def _line(axes: Axes, values: Floats, name: str, place: int) -> None:
    colour, line = _look(place)
    ordered = np.sort(values)
    share = np.arange(1, ordered.size + 1) / ordered.size
    keep = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, STEPS)).astype(int))
    axes.plot(ordered[keep], share[keep], color=colour, linestyle=line, linewidth=1.5, drawstyle="steps-post")
    axes.plot(np.percentile(values, [10, 50, 90]), [0.1, 0.5, 0.9], "o", color=colour, markersize=3.5)
