# SPDX-License-Identifier: Apache-2.0
"""Draws goodput against latency: a cloud and its 1-sigma ellipse per group of runs; the better corner is up and right.

Form: Winstein and Balakrishnan, "TCP ex Machina" (SIGCOMM 2013), figure 4: the latency axis runs to the left, the
ellipse is the covariance of the samples, its centre their mean. A sample is one second under load: mean goodput of all
flows and median latency. On a logarithmic axis mean and covariance are those of the logarithms.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from hourglass.plots import style
from hourglass.results.goodput_latency import latency, points
from hourglass.results.groups import groups
from hourglass.results.recording import Recording
from hourglass.results.stats import Floats
from hourglass.series_style import SeriesStyle, styles

CONVENTION = "dot: 1 s under load (mean goodput, median latency); cross: mean; ellipse: 1\u03c3 of the dots"
WIDTH_IN, HEIGHT_IN = 6.4, 4.4
MOST_ABOVE = 8
"""The most groups with their legend above the panel. The legend of more groups is to the right of it."""


def scatter(runs: Sequence[Recording], _: Sequence[str], path: Path) -> None:
    """Draw the groups of runs into `path`."""
    run_groups = groups(list(runs))
    clouds = [_cloud([runs[i] for i in group.members]) for group in run_groups]
    seeds = sorted({len(group.members) for group in run_groups})
    names = [
        f"{group.label} ({group.seeds})" if len(seeds) > 1 and group.seeds else group.label for group in run_groups
    ]
    all_latencies = np.concatenate([cloud[0] for cloud in clouds])
    log = style.wants_log(all_latencies)
    beside = len(names) > MOST_ABOVE
    size = (
        (WIDTH_IN + style.legend_width_in(names), max(HEIGHT_IN, style.LEGEND_LINE_IN * len(names)))
        if beside
        else (WIDTH_IN, HEIGHT_IN + style.legend_height_in(names, WIDTH_IN))
    )
    with style.figure(*size, path) as figure:
        axes = figure.add_subplot()
        if log:
            style.log_x(axes)
        for cloud, look in zip(clouds, styles(len(names)), strict=True):
            _draw(axes, cloud, look, log)
        axes.invert_xaxis()
        kinds = list(dict.fromkeys(latency(run)[0] for run in runs if run.flows))
        unit = "ms, logarithmic" if log else "ms"
        axes.set_xlabel(f"{' / '.join(kinds)}, round trip ({unit})   lower is better \u2192")
        axes.set_ylabel("goodput, all flows (Mbit/s)   higher is better \u2192")
        axes.margins(0.08)
        handles = [Line2D([], [], linestyle="none", markersize=5, **style.dot(look)) for look in styles(len(names))]
        if beside:
            figure.legend(handles, names, loc="outside right upper")
        else:
            style.legend_above(figure, names, handles)
        repeated = f"; {seeds[0]} seeds each" if len(seeds) == 1 and seeds[0] > 1 else ""
        style.caption(figure, CONVENTION + repeated)


def _cloud(runs: list[Recording]) -> tuple[Floats, Floats]:
    run_points = [points(run) for run in runs]
    return np.concatenate([part[0] for part in run_points]), np.concatenate([part[1] for part in run_points])


def _draw(axes: Axes, cloud: tuple[Floats, Floats], look: SeriesStyle, log: bool) -> None:
    latencies, rates = cloud
    colour = look.colour
    if not latencies.size:
        return
    axes.plot(latencies, rates, alpha=0.35, linestyle="none", markersize=3.5, markeredgewidth=0.5, **style.dot(look))
    x, y = ellipse(np.log(latencies) if log else latencies, rates)
    outline = np.column_stack([np.exp(x) if log else x, y])
    axes.add_patch(Polygon(outline, facecolor=colour, alpha=0.18, linewidth=0))
    axes.add_patch(Polygon(outline, fill=False, edgecolor=colour, linewidth=1.4))
    centre = np.exp(np.log(latencies).mean()) if log else latencies.mean()
    axes.plot(centre, rates.mean(), marker="+", color=colour, markersize=8, markeredgewidth=1.6, linestyle="none")


def ellipse(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the outline of the samples' 1-sigma ellipse: mean + sqrt(eigenvalue) along each eigenvector."""
    centre = np.array([x.mean(), y.mean()])
    if x.size < 2:
        return np.full(2, centre[0]), np.full(2, centre[1])
    sizes, axes = np.linalg.eigh(np.cov(x, y))
    angle = np.linspace(0, 2 * np.pi, 120)
    circle = np.sqrt(np.clip(sizes, 0, None))[:, None] * np.vstack([np.cos(angle), np.sin(angle)])
    outline = axes @ circle
    return outline[0] + centre[0], outline[1] + centre[1]
