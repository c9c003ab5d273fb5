# SPDX-License-Identifier: Apache-2.0
"""Candlesticks of several runs in the form of the papers: throughput left, latency right.

Form: Grazia et al., "TCP Pacing and Small Queues", section IV: the box goes from the 10th to the 90th percentile, the
line in it is the median. A throughput candle stands for the goodput of all flows of one direction in each `step` of the
loaded window; a latency candle for the samples of the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.patches import Patch

from hourglass.looks import Look
from hourglass.looks import looks as all_looks
from hourglass.plots import style
from hourglass.plots.anatomy import NARROWEST_IN as BARS_IN
from hourglass.plots.anatomy import bars, draw, height_in
from hourglass.plots.samples import TCP_RTT, flows_by_way, latencies_ms
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window
from hourglass.results.stats import Floats, short
from hourglass.results.streams import FIRST_PING, WAYS

CONVENTION = "box: p10\u2013p90, line: median"
SLOT_IN, NARROWEST_IN = 0.42, 0.3
"""Width of one candle with its margins, inches; narrower before there are several rows of runs."""
PANELS_IN = style.WIDEST_IN - 2.0
ROW_IN = 3.9
LABELLED_IN = 0.36
"""Candles narrower than this do not have their median written above them."""
MOST_BARS = 30
"""Where there are more, a picture of candles has none below: `plot anatomy` has."""


@dataclass(frozen=True)
class Panel:
    """One panel: candles[run][kind] = samples in `unit`; a run has those kinds that it has samples of."""

    title: str
    unit: str
    kinds: dict[str, Look]
    candles: list[dict[str, Floats]]

    def slots(self, run: int) -> int:
        """Candle widths that a run takes: its kinds and a gap."""
        return len(self.candles[run]) + 1


def candlestick(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs side by side under their labels into `path`, in rows where they are many; below, where their time
    goes."""
    assert runs, "a picture of no runs"
    assert len(runs) == len(labels), "one label per run"
    panels = [panel for panel in (_throughput(runs), _latency(runs)) if panel.kinds]
    assert panels, "runs without any sample"
    rows, slot_in = _rows(panels, len(runs))
    widths = [
        max(2.2, 1.1 + 0.95 * len(panel.kinds) if len(runs) == 1 else 0, slot_in * _most_slots(panel, rows))
        for panel in panels
    ]
    times = bars(runs, labels)
    times = times if len(times) <= MOST_BARS else []
    below_in = height_in(times) if times else 0.0
    heights = [ROW_IN + 0.2 * (max(len(panel.kinds) for panel in panels) // 4), *[ROW_IN] * (len(rows) - 1)]
    width_in = max(sum(widths) + 0.9 * len(panels), BARS_IN if times else 0.0)
    with style.figure(width_in, 0.3 + sum(heights) + below_in, path) as figure:
        ratios = [*heights, *([below_in] if times else [])]
        parts = figure.subfigures(len(ratios), 1, height_ratios=ratios, squeeze=False)[:, 0]
        for place, mine in enumerate(rows):
            _row(parts[place], panels, mine, [labels[run] for run in mine], widths, legends=place == 0)
        if times:
            draw(parts[-1].add_subplot(), times)
        style.caption(parts[len(rows) - 1], CONVENTION)


def _rows(panels: Sequence[Panel], count: int) -> tuple[list[list[int]], float]:
    """(the runs of each row, the width of a candle in inches): as few rows as are not too wide, about equally full."""
    needed = [sum(panel.slots(run) for panel in panels) for run in range(count)]
    many = max(1, -(-int(sum(needed) * NARROWEST_IN * 100) // int(PANELS_IN * 100)))
    per_row = -(-count // min(many, count))
    rows = [list(range(first, min(first + per_row, count))) for first in range(0, count, per_row)]
    return rows, min(SLOT_IN, PANELS_IN / max(sum(needed[run] for run in row) for row in rows))


def _most_slots(panel: Panel, rows: Sequence[Sequence[int]]) -> int:
    return max(sum(panel.slots(run) for run in row) for row in rows)


def _row(
    part: SubFigure,
    panels: Sequence[Panel],
    mine: Sequence[int],
    labels: Sequence[str],
    widths: Sequence[float],
    legends: bool,
) -> None:
    """Some of the runs, a panel beside the other."""
    grid = part.add_gridspec(1, len(panels), width_ratios=list(widths), wspace=0.08)
    for place, panel in enumerate(panels):
        axes = part.add_subplot(grid[place])
        middles = _draw(axes, panel, mine, widths[place], legends)
        style.name_ticks(axes, middles, labels, widths[place] / len(labels))


def _throughput(runs: Sequence[Recording]) -> Panel:
    candles = []
    for run in runs:
        window = loaded_window(run)
        candles.append({way: goodput_total(run, flows, window).values for way, flows in flows_by_way(run).items()})
    return _panel("Throughput", "goodput, all flows (Mbit/s)", candles, dict(zip(WAYS, all_looks(2), strict=True)))


def _latency(runs: Sequence[Recording]) -> Panel:
    candles = [latencies_ms(run) for run in runs]
    pings = list(dict.fromkeys(name for kinds in candles for name in kinds if name != TCP_RTT))
    looks = dict(zip((TCP_RTT, *pings), all_looks(1 + len(pings), first=FIRST_PING - 1), strict=True))
    return _panel("Latency", "round-trip time (ms)", candles, looks)


def _panel(title: str, unit: str, candles: list[dict[str, Floats]], looks: dict[str, Look]) -> Panel:
    """With the kinds that any run has samples of."""
    there = [{kind: samples for kind, samples in kinds.items() if samples.size} for kinds in candles]
    present = {kind for kinds in there for kind in kinds}
    return Panel(title, unit, {kind: look for kind, look in looks.items() if kind in present}, there)


def _draw(axes: Axes, panel: Panel, mine: Sequence[int], width_in: float, legend: bool) -> list[float]:
    """The candles of some runs; where the middle of each run is."""
    ends = [np.percentile(samples, [10, 90]) for kinds in panel.candles for samples in kinds.values()]
    slots = sum(panel.slots(run) for run in mine)
    x, middles = 0, []
    for run in mine:
        kinds = [kind for kind in panel.kinds if kind in panel.candles[run]]
        for place, kind in enumerate(kinds):
            figures = np.percentile(panel.candles[run][kind], [10, 50, 90])
            _candle(axes, x + place, figures, panel.kinds[kind], width_in / slots >= LABELLED_IN)
        middles.append(x + (len(kinds) - 1) / 2 if kinds else float(x))
        x += len(kinds) + 1
    axes.set_ylabel(panel.unit)
    _scale(axes, np.concatenate(ends), panel.title == "Latency")
    spare = max(0.0, width_in / SLOT_IN - slots) / 2
    axes.set_xlim(-1 - spare, slots - 1 + spare)
    if legend:
        axes.set_title(panel.title)
        handles = [Patch(label=kind, **style.box(look)) for kind, look in panel.kinds.items()]
        axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.3,
                    handlelength=1.2, handleheight=1.0, columnspacing=1.0, handletextpad=0.4)  # fmt: skip
    return middles


def _candle(axes: Axes, x: float, figures: Floats, look: Look, label: bool) -> None:
    low, median, high = figures
    style.candle(axes, x, 0.36, (low, median, high), look)
    if label:
        axes.annotate(short(median), (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=7.5)


def _scale(axes: Axes, ends: Floats, may_be_log: bool) -> None:
    """Linear from 0, or logarithmic with a margin below and above."""
    if may_be_log and style.wants_log(ends):
        style.log_y(axes)
        axes.set_ylim(ends[ends > 0].min() / 1.5, ends.max() * 1.8)
    else:
        axes.set_ylim(0, float(ends.max()) * 1.12 or 1)
