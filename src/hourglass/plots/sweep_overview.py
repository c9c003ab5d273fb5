# SPDX-License-Identifier: Apache-2.0
"""Draws a sweep in one picture: throughput against latency with the Pareto fronts, and small multiples of latency.

Left: a point per setting. A line joins those that no other setting beats under the same conditions. Right: a panel per
axis, with a point per setting over the axis's values, which shows the effect of the axis. Below: the same for the
fairness of each direction, if a setting is unfair.
"""

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from hourglass import series_style
from hourglass.plots import style

MOST_NAMED = 30
"""The most points of the fronts with a name."""
ENTRY_IN = 0.16
"""The height of a name below the panel of the fronts."""
NEAR = (0.05, 0.035)
"""The shares of the panel's width and height within which points share a number's place."""
MOST_PANELS = 6
MOST_CONDITIONS = 12
"""The most conditions with a name."""
FAIRNESS = {"upload_fairness": "Jain's index, upload", "download_fairness": "Jain's index, download"}
FAIR = 0.995
"""The least index that rounds to 1."""
SPREAD = 0.28
"""The horizontal spread of the points over a value of an axis, as a share of the distance between values."""

Labels = Mapping[str, Sequence[str]]
"""For each axis, the label of each row's value."""


def sweep(
    title: str,
    points: pl.DataFrame,
    labels: Labels,
    conditions: Container[str],
    throughput: str,
    latency: str,
    path: Path,
) -> None:
    """Draw the settings. `points`: a row per setting, with columns `throughput`, `latency`, `front`. `conditions`: the
    axes that have a front for each of their values."""
    labels = {key: names for key, names in labels.items() if len(set(names)) > 1}
    varied = merged(labels)
    unfair = [column for column in FAIRNESS if column in points.columns and (points[column].fill_null(1) < FAIR).any()]
    panels = [(key, column) for column in [latency, *unfair] for key in list(varied)[:MOST_PANELS]]
    rows = max(1, -(-len(panels) // 2))
    condition_names = _joined({key: names for key, names in labels.items() if key in conditions}, len(points))
    choice_names = _joined({key: names for key, names in labels.items() if key not in conditions}, len(points))
    entries = min(int(points["front"].sum()), MOST_NAMED) + min(len(set(condition_names)), MOST_CONDITIONS)
    with style.figure(11 if varied else 6, max(4.2, 2.6 * rows, 3.4 + ENTRY_IN * entries), path) as figure:
        left, *right = figure.subfigures(1, 2 if varied else 1, squeeze=False)[0]
        _fronts(left, points, condition_names, choice_names, (throughput, latency))
        for index, (key, column) in enumerate(panels):
            axes = right[0].add_subplot(rows, 2, index + 1)
            _panel(axes, key, varied[key], points, column)
        style.headline(figure, title)


def merged(labels: Labels) -> Labels:
    """Return the axes with those joined that have the same labels in all rows (`[[zip]]`)."""
    keys_by_names: dict[tuple[str, ...], list[str]] = {}
    for key, names in labels.items():
        keys_by_names.setdefault(tuple(names), []).append(key)
    return {"\n".join(keys): names for names, keys in keys_by_names.items()}


def _joined(labels: Labels, rows: int) -> list[str]:
    """Return the label of each row."""
    return [", ".join(names[row] for names in merged(labels).values()) for row in range(rows)]


def _fronts(
    figure: SubFigure, points: pl.DataFrame, conditions: Sequence[str], names: Sequence[str], columns: tuple[str, str]
) -> None:
    throughput, latency = columns
    axes = figure.add_subplot()
    axes.set_title("Throughput against latency, and the Pareto front")
    axes.set_xlabel(_axis_label(latency))
    axes.set_ylabel(_axis_label(throughput))
    if style.wants_log(points[latency].to_numpy()):
        style.log_x(axes)
    handles: list[Line2D] = []
    numbers: dict[int, tuple[float, float]] = {}
    indexed = points.with_row_index("row").with_columns(pl.Series("condition", conditions, pl.String))
    for place, condition in enumerate(dict.fromkeys(conditions)):
        look = style.line(series_style.style(place)) | {"marker": "o", "markersize": 5}
        members = indexed.filter(pl.col("condition") == condition)
        best = members.filter(pl.col("front")).sort(latency)
        axes.scatter(members[latency], members[throughput], s=18, color=look["color"], linewidth=0, alpha=0.4)
        axes.plot(best[latency], best[throughput], linewidth=1.2, **look)
        if condition and place < MOST_CONDITIONS:
            handles.append(Line2D([], [], label=condition, **look))
        for row in best.head(MOST_NAMED - len(numbers)).iter_rows(named=True) if any(names) else ():
            number = len(numbers) + 1
            numbers[number] = (row[latency], row[throughput])
            handles.append(Line2D([], [], label=f"{number}  {names[row['row']]}", linestyle="none"))
    axes.margins(x=0.08, y=0.08)
    _number(axes, numbers)
    if handles:
        figure.legend(handles=handles, loc="outside lower center", fontsize=7.5, labelspacing=0.35)


def _number(axes: Axes, numbers: Mapping[int, tuple[float, float]]) -> None:
    """Draw the points' numbers; points close to each other have one text."""
    for at, members in clusters(axes, numbers):
        text = ", ".join(map(str, members)) if len(members) < 3 else f"{members[0]}\u2026{members[-1]}"
        axes.annotate(text, at, (0, 5), textcoords="offset points", fontsize=7.5, ha="center")


def clusters(axes: Axes, numbers: Mapping[int, tuple[float, float]]) -> list[tuple[tuple[float, float], list[int]]]:
    """Return the numbers in groups whose points are close to each other in the panel, and a place for each group."""
    axes.autoscale_view()
    shares = {
        number: axes.transAxes.inverted().transform(axes.transData.transform(point))
        for number, point in numbers.items()
    }
    groups: list[list[int]] = []
    for number, share in shares.items():
        near = (group for group in groups if (np.abs(shares[group[0]] - share) < NEAR).all())
        if (group := next(near, None)) is None:
            groups.append([number])
        else:
            group.append(number)
    return [(numbers[group[0]], group) for group in groups]


def _panel(axes: Axes, key: str, names: Sequence[str], points: pl.DataFrame, column: str) -> None:
    values = in_order(list(dict.fromkeys(names)))
    position_of = {value: index for index, value in enumerate(values)}
    groups = {value: [index for index, name in enumerate(names) if name == value] for value in values}
    for value, members in groups.items():
        middle = (len(members) - 1) / 2
        width = SPREAD / max(1.0, middle)
        x = [position_of[value] + (at - middle) * width for at in range(len(members))]
        axes.scatter(
            x,
            points[members][column].cast(pl.Float64).to_numpy(),
            s=12,
            color=series_style.BLUE,
            alpha=0.7,
            linewidth=0,
        )
        measured = points[members][column].drop_nulls()
        if len(measured):
            median = float(np.median(measured.to_numpy()))
            axes.plot(
                [position_of[value] - 0.3, position_of[value] + 0.3], [median, median], color=style.INK, linewidth=1.6
            )
    axes.set_title(key, fontsize=9)
    axes.set_xticks(range(len(values)), values)
    if max(map(len, values)) * len(values) > 24:
        for tick in axes.get_xticklabels():
            tick.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.set_ylabel(_axis_label(column), fontsize=8)
    if column in FAIRNESS:
        axes.set_ylim(_fairness_floor(points[column]), 1.02)
    elif style.wants_log(points[column].to_numpy()):
        style.log_y(axes)
    else:
        axes.set_ylim(bottom=0)


def in_order(values: Sequence[str]) -> list[str]:
    """Return the values of an axis in the order of their number if they differ in one number only, else as they are."""
    parts = [re.split(r"(\d+(?:\.\d+)?)", value) for value in values]
    words = {tuple(part[::2]) for part in parts}
    if len(words) != 1 or len({len(part) for part in parts}) != 1:
        return list(values)
    varied = [at for at in range(1, len(parts[0]), 2) if len({part[at] for part in parts}) > 1]
    if len(varied) != 1:
        return list(values)
    return [value for _, value in sorted(zip((float(part[varied[0]]) for part in parts), values, strict=True))]


def _fairness_floor(index: pl.Series) -> float:
    """Return the lowest value of a panel of fairness: below the minimum index, and 0 for an unfair setting."""
    least = float(index.cast(pl.Float64).fill_null(1).min())  # type: ignore[arg-type]  # a column of numbers
    return max(0.0, float(np.floor(least * 10 - 0.5)) / 10) if least > 0.5 else 0.0


def _axis_label(column: str) -> str:
    """Return the axis label of a column: ping_icmp_p99_ms → "ping icmp p99 (ms)"."""
    for suffix, unit in (("_mbps", "Mbit/s"), ("_ms", "ms")):
        if column.endswith(suffix):
            return f"{column.removesuffix(suffix).replace('_', ' ')} ({unit})"
    return FAIRNESS.get(column, column)
