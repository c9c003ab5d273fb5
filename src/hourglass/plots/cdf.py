# SPDX-License-Identifier: Apache-2.0
"""Draws distributions of latency under load: a panel per kind of latency, a line per run, p10/p50/p90 marked."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.plots.pooled_samples import latencies_ms
from hourglass.results.recording import Recording
from hourglass.results.stats import Floats
from hourglass.series_style import SeriesStyle
from hourglass.series_style import styles as all_looks

CONVENTION = "dots: p10, p50, p90 of the samples under load; lost packets are not in the distribution"
STEPS = 600
"""The most points of a line; more samples are drawn as this number of quantiles."""
PANEL_IN, NARROWEST_IN = 3.3, 5.0


def cdf(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draw the runs into `path` on a linear latency axis."""
    _draw(runs, labels, path, log=False)


def cdf_log(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draw the runs into `path` on a logarithmic latency axis."""
    _draw(runs, labels, path, log=True)


def _draw(runs: Sequence[Recording], labels: Sequence[str], path: Path, log: bool) -> None:
    samples = [_samples(run) for run in runs]
    kinds = list(dict.fromkeys(kind for run_samples in samples for kind in run_samples))
    if not kinds:
        raise InputError("RUN", str(runs[0].path), "has no samples of latency: no TCP, and no answered ping")
    rows, columns = style.panels_in_rows(len(kinds), PANEL_IN)
    looks = all_looks(len(runs))
    width_in = max(columns * PANEL_IN, NARROWEST_IN) + 0.6
    with style.figure(width_in, 0.4 + 3.1 * rows + style.legend_height_in(labels, width_in), path) as figure:
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes in panels.flat[len(kinds) :]:
            axes.set_visible(False)
        for axes, kind in zip(panels.flat, kinds, strict=False):
            if log:
                style.log_x(axes)
            for run_samples, look in zip(samples, looks, strict=True):
                if kind in run_samples:
                    _line(axes, run_samples[kind], look)
            axes.set_title(kind)
            axes.set_xlabel(f"round-trip time (ms{', logarithmic' if log else ''})")
            if not log:
                axes.set_xlim(left=0)
            axes.set_ylim(0, 1.005)
        for axes in panels[:, 0]:
            axes.set_ylabel("share of samples not above")
        style.legend_above(figure, labels, [Line2D([], [], linewidth=1.5, **style.line(look)) for look in looks])
        style.caption(figure, CONVENTION)


def _samples(run: Recording) -> dict[str, Floats]:
    return {kind: values for kind, values in latencies_ms(run).items() if values.size}


def _line(axes: Axes, values: Floats, look: SeriesStyle) -> None:
    ordered = np.sort(values)
    share = np.arange(1, ordered.size + 1) / ordered.size
    indices = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, STEPS)).astype(int))
    axes.plot(ordered[indices], share[indices], linewidth=1.5, drawstyle="steps-post", **style.line(look))
    axes.plot(np.percentile(values, [10, 50, 90]), [0.1, 0.5, 0.9], "o", color=look.colour, markersize=3.5)
