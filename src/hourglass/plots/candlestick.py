# SPDX-License-Identifier: Apache-2.0
"""Draws candlesticks of several runs in the form of the papers: throughput left, latency right.

Form: Grazia et al., "TCP Pacing and Small Queues", section IV. The box is from the 10th to the 90th percentile, its
line is the median. A throughput candle stands for the goodput of all flows of one direction in each `step` of the
loaded window; a latency candle for the samples of the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.patches import Patch

from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.plots.anatomy import NARROWEST_IN as BARS_IN
from hourglass.plots.anatomy import bars, draw, height_in
from hourglass.plots.pooled_samples import TCP_RTT, goodputs_mbps, latencies_ms
from hourglass.results.recording import Recording
from hourglass.results.stats import Floats, short
from hourglass.results.stream_styles import FIRST_PING, WAYS
from hourglass.series_style import SeriesStyle
from hourglass.series_style import styles as all_looks

CONVENTION = "box: p10\u2013p90, line: median"
SLOT_IN, NARROWEST_IN = 0.42, 0.3
"""The width of a candle with its margins, and the minimum width before runs use several rows, inches."""
PANELS_IN = style.MAX_WIDTH_IN - 2.0
ROW_IN, NAMES_IN = 3.9, 1.5
"""The height of a row, and the part of it that is for names."""
LABELLED_MIN_IN = 0.36
"""The least width of a candle whose median is written above it."""
MOST_BARS = 30
"""With more bars, the picture omits the bars of time by layer; use `plot anatomy`."""


@dataclass(frozen=True)
class Panel:
    """A panel: candles[run][kind] = samples in `unit`; a run only has kinds with samples."""

    title: str
    unit: str
    kinds: dict[str, SeriesStyle]
    candles: list[dict[str, Floats]]

    def slots(self, run: int) -> int:
        """Return the width of a run in candles: its kinds and a gap."""
        return len(self.candles[run]) + 1


def candlestick(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draw the runs side by side with their labels into `path`, in several rows if needed, and below them the time by
    layer."""
    assert runs, "a picture needs at least one run"
    assert len(runs) == len(labels), "a picture needs one label per run"
    panels = [panel for panel in (_throughput(runs), _latency(runs)) if panel.kinds]
    if not panels:
        raise InputError("RUN", str(runs[0].path), "has no samples of goodput or latency")
    rows, slot_in = _rows(panels, len(runs))
    widths = [
        max(2.2, 1.1 + 0.95 * len(panel.kinds) if len(runs) == 1 else 0, slot_in * _most_slots(panel, rows))
        for panel in panels
    ]
    time_bars = bars(runs, labels)
    time_bars = time_bars if len(time_bars) <= MOST_BARS else []
    below_in = height_in(time_bars) if time_bars else 0.0
    narrowest_in = min(widths) / len(rows[0])
    row_in = ROW_IN + max(0.0, style.vertical_names_in(labels, narrowest_in) - NAMES_IN)
    heights = [row_in + 0.2 * (max(len(panel.kinds) for panel in panels) // 4), *[row_in] * (len(rows) - 1)]
    width_in = max(sum(widths) + 0.9 * len(panels), BARS_IN if time_bars else 0.0)
    with style.figure(width_in, 0.3 + sum(heights) + below_in, path) as figure:
        ratios = [*heights, *([below_in] if time_bars else [])]
        parts = figure.subfigures(len(ratios), 1, height_ratios=ratios, squeeze=False)[:, 0]
        for index, row_runs in enumerate(rows):
            _row(parts[index], panels, row_runs, [labels[run] for run in row_runs], widths, legends=index == 0)
        if time_bars:
            draw(parts[-1].add_subplot(), time_bars)
        style.caption(parts[len(rows) - 1], CONVENTION)


def _rows(panels: Sequence[Panel], count: int) -> tuple[list[list[int]], float]:
    """Return (the runs of each row, the width of a candle in inches): as few, equally full rows as fit the width."""
    slots_needed = [sum(panel.slots(run) for panel in panels) for run in range(count)]
    row_count = max(1, -(-int(sum(slots_needed) * NARROWEST_IN * 100) // int(PANELS_IN * 100)))
    per_row = -(-count // min(row_count, count))
    rows = [list(range(first, min(first + per_row, count))) for first in range(0, count, per_row)]
    return rows, min(SLOT_IN, PANELS_IN / max(sum(slots_needed[run] for run in row) for row in rows))


def _most_slots(panel: Panel, rows: Sequence[Sequence[int]]) -> int:
    return max(sum(panel.slots(run) for run in row) for row in rows)


def _row(
    part: SubFigure,
    panels: Sequence[Panel],
    row_runs: Sequence[int],
    labels: Sequence[str],
    widths: Sequence[float],
    legends: bool,
) -> None:
    """Draw the panels of some runs next to each other."""
    grid = part.add_gridspec(1, len(panels), width_ratios=list(widths), wspace=0.08)
    for index, panel in enumerate(panels):
        axes = part.add_subplot(grid[index])
        middles = _draw(axes, panel, row_runs, widths[index], legends)
        style.name_ticks(axes, middles, labels, widths[index] / len(labels))


def _throughput(runs: Sequence[Recording]) -> Panel:
    candles = [goodputs_mbps(run) for run in runs]
    programs = [name for name in dict.fromkeys(name for kinds in candles for name in kinds) if name not in WAYS]
    looks = dict(zip((*WAYS, *programs), all_looks(len(WAYS) + len(programs)), strict=True))
    unit = "goodput (Mbit/s)" if programs else "goodput, all flows (Mbit/s)"
    return _panel("Throughput", unit, candles, looks)


def _latency(runs: Sequence[Recording]) -> Panel:
    candles = [latencies_ms(run) for run in runs]
    pings = list(dict.fromkeys(name for kinds in candles for name in kinds if name != TCP_RTT))
    looks = dict(zip((TCP_RTT, *pings), all_looks(1 + len(pings), first=FIRST_PING - 1), strict=True))
    return _panel("Latency", "round-trip time (ms)", candles, looks)


def _panel(title: str, unit: str, candles: list[dict[str, Floats]], looks: dict[str, SeriesStyle]) -> Panel:
    """Return a panel with the kinds that have samples in any run."""
    measured = [{kind: samples for kind, samples in kinds.items() if samples.size} for kinds in candles]
    present = {kind for kinds in measured for kind in kinds}
    return Panel(title, unit, {kind: look for kind, look in looks.items() if kind in present}, measured)


def _draw(axes: Axes, panel: Panel, row_runs: Sequence[int], width_in: float, legend: bool) -> list[float]:
    """Draw the candles of some runs; return the middle position of each run."""
    ends = [np.percentile(samples, [10, 90]) for kinds in panel.candles for samples in kinds.values()]
    slots = sum(panel.slots(run) for run in row_runs)
    x, middles = 0, []
    for run in row_runs:
        kinds = [kind for kind in panel.kinds if kind in panel.candles[run]]
        for index, kind in enumerate(kinds):
            figures = np.percentile(panel.candles[run][kind], [10, 50, 90])
            _candle(axes, x + index, figures, panel.kinds[kind], width_in / slots >= LABELLED_MIN_IN)
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


def _candle(axes: Axes, x: float, figures: Floats, look: SeriesStyle, label: bool) -> None:
    low, median, high = figures
    style.candle(axes, x, 0.36, (low, median, high), look)
    if label:
        axes.annotate(short(median), (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=7.5)


def _scale(axes: Axes, ends: Floats, may_be_log: bool) -> None:
    """Scale the axis: linear from 0, or logarithmic with a margin below and above."""
    if may_be_log and style.wants_log(ends):
        style.log_y(axes)
        axes.set_ylim(ends[ends > 0].min() / 1.5, ends.max() * 1.8)
    else:
        axes.set_ylim(0, float(ends.max()) * 1.12 or 1)
