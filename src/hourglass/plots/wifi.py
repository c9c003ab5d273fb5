# SPDX-License-Identifier: Apache-2.0
"""Draws one run's radios: MPDUs per PPDU, and over time air time by radio, channel use, packets in mac80211's queues
and below them, unacknowledged PPDUs and retransmitted MPDUs. With several access categories, it adds air time and wait
by category.

A radio has the same look in all panels. Sizes are those under load. A step over time lies between two samples of the
driver's counters.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from hourglass.contract.plan import PlanRadio
from hourglass.contract.summary import CATEGORIES
from hourglass.errors import InputError
from hourglass.plots import event_marks, style
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, loaded_window
from hourglass.results.stats import Floats, short
from hourglass.results.wifi import GROUP, SENT, SENT_FIRST, SENT_NS, sizes
from hourglass.series_style import TOTAL, SeriesStyle, styles

POINTS = 3000
MOST_NUMBERED = 2
"""The most radios whose bars fit their figures."""


Panel = Callable[[Axes, Recording, list[tuple[PlanRadio, SeriesStyle]]], None]


def wifi(run: Recording, path: Path) -> None:
    """Draw the run into `path` (.png or .svg). Raises `InputError` if it has no counters of radios."""
    if run.radio_counters.is_empty():
        raise InputError("RUN", str(run.path), "has no radios")
    sent = [radio for radio in run.radios if sizes(run, radio.node, radio.device, loaded_window(run))]
    drawn = list(zip(sent, styles(len(sent)), strict=True))
    panels: tuple[Panel, ...] = (_sizes, _air, _txq, _ring, _failed, _retried)
    several = len(
        {name for devices in run.summary.wifi.values() for radio in devices.values() for name in radio.categories}
    )
    rows = 4 if several > 1 else 3
    with style.figure(11, 2.8 * rows, path) as figure:
        grid = figure.subplots(rows, 2).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel(axes, run, drawn)
            _frame(axes)
        for axes in grid[1:6]:
            style.show_whole_run(axes, run)
        event_marks.mark(list(grid[1:6]), run, numbered=False)
        for axes in grid[4:6]:
            axes.set_xlabel("test time (s)")
        if rows == 4:
            _by_category(grid[6], run, drawn, "Air by access category", "air % (of the time)", "air_percent")
            _by_category(grid[7], run, drawn, "Wait of an MPDU for its first try", "mean (ms)", "waiting_ms")
        handles, names = grid[1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", ncols=-(-len(names) // 30))
        style.headline(figure, f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}")


def _frame(axes: Axes) -> None:
    """Scale the y axis from 0; if no value is above 0, write so instead of a scale."""
    lines = [np.asarray(line.get_ydata(), np.float64) for line in axes.lines]
    ends = [float(np.nanmax(values, initial=0)) for values in lines]
    measured = any(np.isfinite(values).any() for values in lines)
    if max([*ends, *(bar.get_height() for bar in axes.patches)], default=0) > 0:  # type: ignore[attr-defined]
        axes.set_ylim(bottom=0)
        return
    axes.set_ylim(0, 1)
    axes.set_yticks([0])
    axes.annotate("none" if measured else "not measured", (0.5, 0.5), xycoords="axes fraction", ha="center",
                  color=style.MUTED)  # fmt: skip


def _name(radio: PlanRadio) -> str:
    return f"{radio.node}:{radio.device}"


def _of(radio: PlanRadio) -> pl.Expr:
    return (pl.col("node") == radio.node) & (pl.col("device") == radio.device)


def _sizes(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    """Draw bars side by side: the share of a radio's PPDUs by number of MPDUs."""
    window: Window = loaded_window(run)
    width = 0.8 / max(1, len(radios))
    for number, (radio, look) in enumerate(radios):
        counts_by_size = sizes(run, radio.node, radio.device, window)
        values, counts = np.array(list(counts_by_size)), np.array(list(counts_by_size.values()))
        left = values - 0.4 + width * (number + 0.5)
        axes.bar(left, 100 * counts / counts.sum(), width=width, color=look.colour, linewidth=0)
    axes.set_title("Sizes of aggregates", fontsize=9)
    axes.set_xlabel("MPDUs of a PPDU")
    axes.set_ylabel("PPDUs (%)")
    axes.set_xlim(left=0.4)


def _steps(run: Recording, radio: PlanRadio, *names: str) -> tuple[Floats, list[Floats]]:
    """Return (ends of the steps in s, growth of every counter in each step, 0 for missing counters)."""
    rows = run.radio_counters.filter(_of(radio) & pl.col("name").is_in(names))
    wide = rows.pivot("name", index="t_ns", values="value").sort("t_ns")
    grown = [np.diff(wide[name].to_numpy() if name in wide.columns else np.zeros(wide.height)) for name in names]
    return wide["t_ns"].to_numpy()[1:] / NS_PER_S, [steps.astype(np.float64) for steps in grown]


def _air(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    for radio, look in radios:
        t_s, (sent_ns,) = _steps(run, radio, "tx_ns")
        step_ns = np.diff(t_s, prepend=0) * NS_PER_S
        axes.plot(t_s, 100 * sent_ns / step_ns, linewidth=1.1, label=_name(radio), **style.line(look))
        if GROUP in run.summary.wifi[radio.node][radio.device].air_share:
            label = f"{_name(radio)} {GROUP}"
            axes.plot(*_group(run, radio), linewidth=1.1, linestyle=":", color=look.colour, label=label)
    for t_s, busy in _busy(run, [radio for radio, _ in radios]):
        axes.plot(t_s, busy, color=TOTAL, linewidth=1.8, zorder=1.5)
    axes.set_title("On the air; grey: channel busy", fontsize=9)
    axes.set_ylabel("air % (of the time)")


def _group(run: Recording, radio: PlanRadio) -> tuple[Floats, Floats]:
    """Return (s, %) of group-addressed frames: what the radio sent, and not to a station."""
    to_stations = run.station_counters.filter(_of(radio) & pl.col("name").str.starts_with("tx_ns"))
    sent = run.radio_counters.filter(_of(radio) & pl.col("name").is_in(SENT_NS))
    totals = pl.concat([sent, to_stations.with_columns(-pl.col("value"))], how="diagonal")
    rows = totals.group_by("t_ns").agg(pl.col("value").sum()).sort("t_ns")
    t_ns, sent_ns = rows["t_ns"].to_numpy(), rows["value"].to_numpy()
    return t_ns[1:] / NS_PER_S, np.maximum(0, 100 * np.diff(sent_ns) / np.diff(t_ns))


def _busy(run: Recording, radios: list[PlanRadio]) -> list[tuple[Floats, Floats]]:
    """Return (s, %) of each channel: radios with equal busy times share one."""
    if not (run.radio_counters["name"] == "medium_busy_ns").any():
        return []
    busy_by_channel = {}
    for radio in radios:
        t_s, (busy_ns,) = _steps(run, radio, "medium_busy_ns")
        busy_by_channel[busy_ns.tobytes()] = t_s, 100 * busy_ns / (np.diff(t_s, prepend=0) * NS_PER_S)
    return list(busy_by_channel.values())


def _by_category(
    axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]], title: str, unit: str, figure: str
) -> None:
    """Draw bars side by side for each access category, in the radios' colours."""
    width = 0.8 / len(radios)
    for number, (radio, look) in enumerate(radios):
        categories = run.summary.wifi[radio.node][radio.device].categories
        values = [
            (position, getattr(categories[name], figure))
            for position, name in enumerate(CATEGORIES)
            if name in categories
        ]
        for position, value in values:
            x = position - 0.4 + width * (number + 0.5)
            axes.bar(x, value or 0, width=width, **style.box(look))
            if value is not None and len(radios) <= MOST_NUMBERED:
                axes.annotate(short(value), (x, value), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_title(title, fontsize=9)
    axes.set_ylabel(unit)
    axes.set_xticks(range(len(CATEGORIES)), list(CATEGORIES.values()))
    axes.set_xlim(-0.6, len(CATEGORIES) - 0.4)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.1)


def _txq(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    _waiting(axes, run, radios, "txq_packets")
    axes.set_title("Waiting in mac80211's queues (TXQ)", fontsize=9)
    axes.set_ylabel("packets")


def _ring(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    _waiting(axes, run, radios, "ring_skbs")
    axes.set_title("Waiting in driver and hardware", fontsize=9)
    axes.set_ylabel("packets")


def _waiting(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]], column: str) -> None:
    for radio, look in radios:
        rows = run.queues.filter(_of(radio)).sort("t_ns")
        rows = rows.gather_every(max(1, rows.height // POINTS))
        axes.plot(rows["t_ns"].to_numpy() / NS_PER_S, rows[column].to_numpy(), linewidth=0.9, **style.line(look))


def _failed(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    """Draw the share of PPDUs that collided or were not answered."""
    for radio, look in radios:
        t_s, (collided, unanswered, tries) = _steps(run, radio, "tx_collisions", "tx_unanswered", "tx_attempts")
        axes.plot(t_s, 100 * (collided + unanswered) / np.maximum(tries, 1), linewidth=1.1, **style.line(look))
    axes.set_title("Unacknowledged PPDUs: collisions and losses", fontsize=9)
    axes.set_ylabel("not acknowledged %")


def _retried(axes: Axes, run: Recording, radios: list[tuple[PlanRadio, SeriesStyle]]) -> None:
    for radio, look in radios:
        t_s, grown = _steps(run, radio, *SENT, *SENT_FIRST)
        mpdus, first = sum(grown[: len(SENT)]), sum(grown[len(SENT) :])
        axes.plot(t_s, 100 * (mpdus - first) / np.maximum(mpdus, 1), linewidth=1.1, **style.line(look))
    axes.set_title("MPDUs sent again", fontsize=9)
    axes.set_ylabel("retried %")
