# SPDX-License-Identifier: Apache-2.0
"""A sweep in one picture: throughput against latency with the Pareto front, and small multiples of latency.

Left: a point per setting; the line joins those that no other setting beats. Right: a panel per axis, a point per
setting over the axis's values, so that what an axis does shows whatever the others are; below, the same of the
fairness of each way in which not all settings are fair.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from hourglass import looks
from hourglass.plots import style

MOST_NAMED = 12
"""Points of the front that are named."""
NEAR, LINE_PT = 0.05, 9
"""Parts of the panel within which names are one below the other; their distance."""
MOST_PANELS = 6
FAIRNESS = {"upload_fairness": "Jain's index, upload", "download_fairness": "Jain's index, download"}
FAIR = 0.995
"""What is shown as 1."""
SPREAD = 0.28
"""How far the points over one value of an axis are spread, in parts of the distance of two values."""


def sweep(
    title: str, points: pl.DataFrame, labels: Mapping[str, Sequence[str]], throughput: str, latency: str, path: Path
) -> None:
    """Draws the settings. `points`: a row per setting, columns `throughput`, `latency`, `front`; `labels`: for each
    axis what to call the value of each row."""
    axes_keys = [key for key in labels if len(set(labels[key])) > 1][:MOST_PANELS]
    unfair = [way for way in FAIRNESS if way in points.columns and (points[way].fill_null(1) < FAIR).any()]
    panels = [(key, column) for column in [latency, *unfair] for key in axes_keys]
    rows = max(1, -(-len(panels) // 2))
    with style.figure(11 if axes_keys else 6, max(4.2, 2.6 * rows), path) as figure:
        grid = figure.add_gridspec(rows, 4 if axes_keys else 2)
        _front(figure.add_subplot(grid[:, :2]), points, labels, throughput, latency)
        for place, (key, column) in enumerate(panels):
            axes = figure.add_subplot(grid[place // 2, 2 + place % 2])
            _panel(axes, key, labels[key], points, column)
        style.headline(figure, title)


def _front(
    axes: Axes, points: pl.DataFrame, labels: Mapping[str, Sequence[str]], throughput: str, latency: str
) -> None:
    axes.scatter(points[latency], points[throughput], s=18, color=looks.SKY, linewidth=0, alpha=0.8)
    best = points.with_row_index("row").filter(pl.col("front")).sort(latency)
    axes.plot(best[latency], best[throughput], color=looks.VERMILION, marker="o", markersize=5, linewidth=1.2)
    several = [key for key in labels if len(set(labels[key])) > 1]
    lines = _lines(best.head(MOST_NAMED), points, throughput, latency)
    middle = float(np.mean([points[latency].min(), points[latency].max()]))
    for row, line in zip(best.head(MOST_NAMED).iter_rows(named=True), lines, strict=True):
        name = ", ".join(labels[key][row["row"]] for key in several)
        side, ha = (-6, "right") if row[latency] > middle else (6, "left")  # so that no name leaves the panel
        place, offset = (row[latency], row[throughput]), (side, -8 - LINE_PT * line)
        axes.annotate(name, place, offset, textcoords="offset points", fontsize=7, ha=ha)
    axes.set_title("Throughput against latency, and its Pareto front")
    axes.set_xlabel(_named(latency))
    axes.set_ylabel(_named(throughput))
    if style.wants_log(points[latency].to_numpy()):
        style.log_x(axes)
    axes.margins(x=0.12, y=0.12)


def _lines(named: pl.DataFrame, points: pl.DataFrame, throughput: str, latency: str) -> list[int]:
    """Of each point how many named before it are so near that its name has to stand below theirs."""
    columns = [points[name].to_numpy() for name in (latency, throughput)]
    spans = [float(np.ptp(values)) or 1.0 for values in columns]
    at = np.column_stack(
        [named[name].to_numpy() / span for name, span in zip((latency, throughput), spans, strict=True)]
    )
    return [int((np.abs(at[:place] - at[place]).max(axis=1, initial=0) < NEAR).sum()) for place in range(len(at))]


def _panel(axes: Axes, key: str, names: Sequence[str], points: pl.DataFrame, column: str) -> None:
    values = list(dict.fromkeys(names))
    place = {value: at for at, value in enumerate(values)}
    groups = {value: [at for at, name in enumerate(names) if name == value] for value in values}
    for value, members in groups.items():
        middle = (len(members) - 1) / 2
        width = SPREAD / max(1.0, middle)
        x = [place[value] + (at - middle) * width for at in range(len(members))]
        axes.scatter(
            x, points[members][column].cast(pl.Float64).to_numpy(), s=12, color=looks.BLUE, alpha=0.7, linewidth=0
        )
        known = points[members][column].drop_nulls()
        if len(known):
            median = float(np.median(known.to_numpy()))
            axes.plot([place[value] - 0.3, place[value] + 0.3], [median, median], color=style.INK, linewidth=1.6)
    axes.set_title(key, fontsize=9)
    axes.set_xticks(range(len(values)), values)
    if max(map(len, values)) * len(values) > 24:
        for tick in axes.get_xticklabels():
            tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.set_ylabel(_named(column), fontsize=8)
    if column in FAIRNESS:
        axes.set_ylim(0, 1.05)
    elif style.wants_log(points[column].to_numpy()):
        style.log_y(axes)
    else:
        axes.set_ylim(bottom=0)


def _named(column: str) -> str:
    """ping_icmp_p99_ms → "ping icmp p99 (ms)"."""
    for suffix, unit in (("_mbps", "Mbit/s"), ("_ms", "ms")):
        if column.endswith(suffix):
            return f"{column.removesuffix(suffix).replace('_', ' ')} ({unit})"
    return FAIRNESS.get(column, column)
