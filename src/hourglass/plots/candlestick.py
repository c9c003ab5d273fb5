# SPDX-License-Identifier: Apache-2.0
"""Candlesticks of several runs in the form of the papers: throughput left, latency right.

Form: Grazia et al., "TCP Pacing and Small Queues", section IV: the box goes from the 10th to the 90th percentile, the
line in it is the median. A throughput candle stands for the goodput of all flows of one direction in each `step` of the
loaded window; a latency candle for the samples of the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

from hourglass.plots import style
from hourglass.plots.anatomy import NARROWEST_IN as BARS_IN
from hourglass.plots.anatomy import bars, draw, height_in
from hourglass.plots.samples import TCP_RTT, flows_by_way, latencies_ms
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window
from hourglass.results.stats import Floats, short

CONVENTION = "box: p10\u2013p90, line: median"
SLOT_IN = 0.42
"""Width of one candle with its margins, inches; less when the panels together would be wider than `WIDEST_IN`."""
WIDEST_IN = 12.0
NARROWEST_IN = 0.14
LETTER_IN = 0.085
LABELLED_IN = 0.36
"""Candles narrower than this do not have their median written above them."""


@dataclass(frozen=True)
class Panel:
    """One panel: candles[run][kind] = samples in `unit`, or None where the run has no such kind."""

    title: str
    unit: str
    kinds: dict[str, str]
    candles: list[dict[str, Floats]]

    @property
    def slots(self) -> int:
        """Candle widths that the panel needs: all kinds of all runs and a gap for each run."""
        return len(self.candles) * (len(self.kinds) + 1)


def candlestick(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs side by side under their labels into `path`; below, where their time goes."""
    assert runs, "a picture of no runs"
    assert len(runs) == len(labels), "one label per run"
    panels = [panel for panel in (_throughput(runs), _latency(runs)) if panel.kinds]
    assert panels, "runs without any sample"
    slot_in = max(NARROWEST_IN, min(SLOT_IN, WIDEST_IN / sum(panel.slots for panel in panels)))
    widths = [max(2.2, 1.1 + 0.95 * len(panel.kinds), slot_in * panel.slots) for panel in panels]
    slanted = max(map(len, labels)) * LETTER_IN > min(widths) / len(labels)
    times = bars(runs, labels)
    below_in = height_in(times) if times else 0.0
    width_in = max(sum(widths) + 0.9 * len(panels), BARS_IN if times else 0.0)
    with style.figure(width_in, 4.2 + below_in, path) as whole:
        figure: Figure | SubFigure = whole
        if times:
            parts = whole.subfigures(2, 1, height_ratios=[4.2, below_in], squeeze=False)[:, 0]
            figure = parts[0]
            draw(parts[1].add_subplot(), times)
        grid = figure.add_gridspec(1, len(panels), width_ratios=widths, wspace=0.08)
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(grid[place])
            _draw(axes, panel, widths[place])
            _name_runs(axes, panel, labels, slanted)
        style.caption(figure, CONVENTION)


def _throughput(runs: Sequence[Recording]) -> Panel:
    candles = []
    for run in runs:
        window = loaded_window(run)
        candles.append({way: goodput_total(run, flows, window).values for way, flows in flows_by_way(run).items()})
    return Panel("Throughput", "goodput, all flows (Mbit/s)", _present(candles, style.WAYS), candles)


def _latency(runs: Sequence[Recording]) -> Panel:
    candles = [latencies_ms(run) for run in runs]
    pings = list(dict.fromkeys(name for kinds in candles for name in kinds if name != TCP_RTT))
    colours = {TCP_RTT: style.TCP_RTT} | dict(zip(pings, cycle(style.PINGS), strict=False))
    return Panel("Latency", "round-trip time (ms)", _present(candles, colours), candles)


def _present(candles: list[dict[str, Floats]], colours: dict[str, str]) -> dict[str, str]:
    """The kinds any run has samples of, with their colours."""
    return {
        kind: colour for kind, colour in colours.items() if any(kinds.get(kind, np.empty(0)).size for kinds in candles)
    }


def _draw(axes: Axes, panel: Panel, width_in: float) -> None:
    ends = []
    group = len(panel.kinds) + 1
    for run, kinds in enumerate(panel.candles):
        for place, (kind, colour) in enumerate(panel.kinds.items()):
            if (samples := kinds.get(kind, np.empty(0))).size:
                figures = np.percentile(samples, [10, 50, 90])
                ends += [figures[0], figures[2]]
                _candle(axes, run * group + place, figures, colour, width_in / panel.slots >= LABELLED_IN)
    axes.set_title(panel.title)
    axes.set_ylabel(panel.unit)
    _scale(axes, np.array(ends), panel.title == "Latency")
    spare = max(0.0, width_in / SLOT_IN - panel.slots) / 2
    axes.set_xlim(-1 - spare, panel.slots - 1 + spare)
    handles = [Patch(facecolor=colour, label=kind) for kind, colour in panel.kinds.items()]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.3,
                handlelength=1.0, handleheight=1.0, columnspacing=1.0, handletextpad=0.4)  # fmt: skip


def _candle(axes: Axes, x: float, figures: Floats, colour: str, label: bool) -> None:
    low, median, high = figures
    style.candle(axes, x, 0.36, (low, median, high), colour)
    if label:
        axes.annotate(short(median), (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=7.5)


def _scale(axes: Axes, ends: Floats, may_be_log: bool) -> None:
    """Linear from 0, or logarithmic with a margin below and above."""
    if may_be_log and style.wants_log(ends):
        style.log_y(axes)
        axes.set_ylim(ends[ends > 0].min() / 1.5, ends.max() * 1.8)
    else:
        axes.set_ylim(0, float(ends.max()) * 1.12 or 1)


def _name_runs(axes: Axes, panel: Panel, labels: Sequence[str], slanted: bool) -> None:
    """The labels below the middle of their candles, slanted when the longest is wider than its place."""
    group = len(panel.kinds) + 1
    axes.set_xticks([run * group + (group - 2) / 2 for run in range(len(labels))], labels)
    if slanted:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
