# SPDX-License-Identifier: Apache-2.0
"""Boxes by group: runs that differ in their seed alone are one box, and a dot per run shows how far seeds differ."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from hourglass import looks
from hourglass.plots import style
from hourglass.plots.samples import flows_by_way
from hourglass.results.groups import groups
from hourglass.results.points import latency
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window
from hourglass.results.stats import Floats

CONVENTION = "box: p25\u2013p75, line: median, whiskers: p10\u2013p90 of all seeds' samples; dot: median of one seed"


def box(runs: Sequence[Recording], _: Sequence[str], path: Path) -> None:
    """Draws the groups into `path` under their own labels: a panel for each way with flows, one for latency."""
    found = groups(list(runs))
    names = [g.label if len(g.members) == 1 else f"{g.label}, {len(g.members)} seeds" for g in found]
    members = [[runs[i] for i in group.members] for group in found]
    panels = [
        (f"{way} goodput (Mbit/s)", [[_goodput(run, way) for run in group] for group in members], False)
        for way in style.WAYS
    ]
    panels = [panel for panel in panels if any(values.size for group in panel[1] for values in group)]
    kinds = " / ".join(dict.fromkeys(latency(run)[0] for run in runs))
    panels.append((f"{kinds}, round trip (ms)", [[latency(run)[1].values for run in group] for group in members], True))
    width = min(max(2.4, 0.8 + style.widest_in(names) * len(found)), style.WIDEST_IN - 0.6)
    rows, columns = style.panels_in_rows(len(panels), width)
    with style.figure(width * columns + 0.6, 0.6 + 3.6 * rows, path) as figure:
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes in list(grid)[len(panels) :]:
            axes.set_visible(False)
        for axes, (unit, samples, may_be_log) in zip(figure.axes, panels, strict=False):
            _panel(axes, unit, samples, may_be_log)
            style.name_places(axes, names, (width - 0.8) / len(found))
        style.caption(figure, CONVENTION)


def _goodput(run: Recording, way: str) -> Floats:
    flows = flows_by_way(run).get(way)
    return goodput_total(run, flows, loaded_window(run)).values if flows else np.empty(0)


def _panel(axes: Axes, unit: str, samples: list[list[Floats]], may_be_log: bool) -> None:
    everything = np.concatenate([values for group in samples for values in group])
    if may_be_log and style.wants_log(everything):
        style.log_y(axes)
    for place, group in enumerate(samples):
        pooled = np.concatenate(group)
        if not pooled.size:
            continue
        look = looks.look(place)
        low, first, median, third, high = np.percentile(pooled, [10, 25, 50, 75, 90])
        figures = {"med": median, "q1": first, "q3": third, "whislo": low, "whishi": high, "fliers": []}
        axes.bxp([figures], positions=[place], widths=0.5, showfliers=False, patch_artist=True, manage_ticks=False,
                 boxprops=style.box(look),
                 medianprops={"color": style.INK, "linewidth": 2, "solid_capstyle": "butt"},
                 whiskerprops={"color": look.colour}, capprops={"color": look.colour})  # fmt: skip
        if len(group) > 1:
            medians = [float(np.median(values)) for values in group if values.size]
            spread = np.linspace(-0.12, 0.12, len(medians))
            axes.plot(place + spread, medians, "o", color=style.INK, markersize=2.5, zorder=4)
    axes.set_ylabel(unit)
    if axes.get_yscale() == "linear":
        axes.set_ylim(0, float(np.percentile(everything, 99.5)) * 1.1 or 1)
