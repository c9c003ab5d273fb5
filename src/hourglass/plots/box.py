# SPDX-License-Identifier: Apache-2.0
"""Draws boxes by group: runs that differ only in their seed form one box, and a dot per run shows the spread of
seeds. A file of Flent is a box."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from hourglass import series_style
from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.plots.pooled_samples import flows_by_direction
from hourglass.results.goodput_latency import latency
from hourglass.results.groups import groups
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window
from hourglass.results.stats import Floats

CONVENTION = "box: p25\u2013p75, line: median, whiskers: p10\u2013p90"
OF_SEEDS = " of all seeds' samples; dot: median of one seed"
ROW_IN = 0.24
"""The height of a group where each has a row."""

Panel = tuple[str, list[list[Floats]], bool]
"""Name and unit of a figure, its samples by group and run, and whether its axis can be logarithmic."""


def box(runs: Sequence[Recording], _: Sequence[str], path: Path) -> None:
    """Draw the groups into `path`: a panel for each direction with flows, and one for latency."""
    run_groups = groups(list(runs))
    names = [f"{group.label}, {group.seeds}" if len(group.members) > 1 else group.label for group in run_groups]
    convention = CONVENTION if all(group.of_file for group in run_groups) else CONVENTION + OF_SEEDS
    members = [[runs[i] for i in group.members] for group in run_groups]
    panels = [
        (f"{direction} goodput (Mbit/s)", [[_goodput(run, direction) for run in group] for group in members], False)
        for direction in style.DIRECTION_COLOURS
    ]
    panels = [panel for panel in panels if any(values.size for group in panel[1] for values in group)]
    kinds = " / ".join(dict.fromkeys(latency(run)[0] for run in runs))
    latencies = [[latency(run)[1].values for run in group] for group in members]
    if any(values.size for group in latencies for values in group):
        panels.append((f"{kinds}, round trip (ms)", latencies, True))
    if not panels:
        raise InputError("RUN", str(runs[0].path), "has no flows and no samples of latency")
    width = max(2.4, 0.8 + style.min_slot_in(names) * len(run_groups))
    if width > style.MAX_WIDTH_IN - 0.6:
        _as_rows(panels, names, convention, path)
        return
    rows, columns = style.panels_in_rows(len(panels), width)
    with style.figure(width * columns + 0.6, 0.6 + 3.6 * rows, path) as figure:
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes in list(grid)[len(panels) :]:
            axes.set_visible(False)
        for axes, (unit, samples, may_be_log) in zip(figure.axes, panels, strict=False):
            _panel(axes, unit, samples, may_be_log, "vertical")
            style.name_slots(axes, names, (width - 0.8) / len(run_groups))
        style.caption(figure, convention)


def _as_rows(panels: Sequence[Panel], names: Sequence[str], convention: str, path: Path) -> None:
    """Draw the panels next to each other, with a row per group: more names than fit below an axis."""
    height = 0.8 + ROW_IN * len(names)
    with style.figure(style.MAX_WIDTH_IN, height, path) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (unit, samples, may_be_log) in zip(grid, panels, strict=True):
            _panel(axes, unit, samples, may_be_log, "horizontal")
            axes.grid(visible=False, axis="y")
        grid[0].set_yticks(range(len(names)), names, fontsize=8)
        grid[0].set_ylim(len(names) - 0.4, -0.6)
        style.caption(figure, convention)


def _goodput(run: Recording, direction: str) -> Floats:
    flows = flows_by_direction(run).get(direction)
    return goodput_total(run, flows, loaded_window(run)).values if flows else np.empty(0)


def _panel(
    axes: Axes, unit: str, samples: list[list[Floats]], may_be_log: bool, orientation: Literal["vertical", "horizontal"]
) -> None:
    upright = orientation == "vertical"
    all_samples = np.concatenate([values for group in samples for values in group])
    log = may_be_log and style.wants_log(all_samples)
    if log:
        (style.log_y if upright else style.log_x)(axes)
    for position, group in enumerate(samples):
        pooled = np.concatenate(group)
        if not pooled.size:
            continue
        look = series_style.style(position)
        low, first, median, third, high = np.percentile(pooled, [10, 25, 50, 75, 90])
        figures = {"med": median, "q1": first, "q3": third, "whislo": low, "whishi": high, "fliers": []}
        axes.bxp([figures], positions=[position], widths=0.5, showfliers=False, patch_artist=True, manage_ticks=False,
                 orientation=orientation, boxprops=style.box(look),
                 medianprops={"color": style.INK, "linewidth": 2, "solid_capstyle": "butt"},
                 whiskerprops={"color": look.colour}, capprops={"color": look.colour})  # fmt: skip
        if len(group) > 1:
            medians = [float(np.median(values)) for values in group if values.size]
            spread = position + np.linspace(-0.12, 0.12, len(medians))
            x, y = (spread, medians) if upright else (medians, spread)
            axes.plot(x, y, "o", color=style.INK, markersize=2.5, zorder=4)
    (axes.set_ylabel if upright else axes.set_xlabel)(unit)
    if not log:
        (axes.set_ylim if upright else axes.set_xlim)(0, float(np.percentile(all_samples, 99.5)) * 1.1 or 1)
