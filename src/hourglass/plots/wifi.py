# SPDX-License-Identifier: Apache-2.0
"""One run's radios: how many MPDUs a PPDU had, and over time who had the air and whether the channel was busy, what
waited in mac80211's queues and below them, how many PPDUs nobody acknowledged and how many MPDUs were sent again; by
access category, where there are several, air and waiting.

A radio has one look in all panels. Sizes are those under load; a step over time is one between two samples of the
driver's counters.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from hourglass.contract.plan import Radio
from hourglass.errors import InputError
from hourglass.looks import TOTAL, Look, looks
from hourglass.plots import marks, style
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, loaded_window
from hourglass.results.stats import Floats, short
from hourglass.results.wifi import CATEGORIES, SENT, SENT_FIRST, sizes

POINTS = 3000
MOST_NUMBERED = 2
"""Bars of more radios have no room for their figures."""


Panel = Callable[[Axes, Recording, list[tuple[Radio, Look]]], None]


def wifi(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png or .svg). Raises `InputError` when it has no counters of radios."""
    if run.radio_counters.is_empty():
        raise InputError("RUN", str(run.path), "has no radios")
    sent = [radio for radio in run.radios if sizes(run, radio.node, radio.device, loaded_window(run))]
    drawn = list(zip(sent, looks(len(sent)), strict=True))
    panels: tuple[Panel, ...] = (_sizes, _air, _txq, _held, _failed, _retried)
    several = len(
        {name for devices in run.summary.wifi.values() for one in devices.values() for name in one.categories}
    )
    rows = 4 if several > 1 else 3
    with style.figure(11, 2.8 * rows, path) as figure:
        grid = figure.subplots(rows, 2).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel(axes, run, drawn)
            _frame(axes)
        for axes in grid[1:6]:
            axes.set_xlim(0, run.end_ns / NS_PER_S)
        marks.mark(list(grid[1:6]), run, numbered=False)
        for axes in grid[4:6]:
            axes.set_xlabel("test time (s)")
        if rows == 4:
            _by_category(grid[6], run, drawn, "Air by access category", "air % (of the time)", "air_percent")
            _by_category(grid[7], run, drawn, "Wait of an MPDU for its first try", "mean (ms)", "waiting_ms")
        handles, names = grid[1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", ncols=-(-len(names) // 30))
        style.headline(figure, f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}")


def _frame(axes: Axes) -> None:
    """From 0; an axis on which nothing is above that says so and has no scale of its own."""
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


def _name(radio: Radio) -> str:
    return f"{radio.node}:{radio.device}"


def _of(radio: Radio) -> pl.Expr:
    return (pl.col("node") == radio.node) & (pl.col("device") == radio.device)


def _sizes(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    """Bars side by side: the share of a radio's PPDUs that had so many MPDUs."""
    window: Window = loaded_window(run)
    width = 0.8 / max(1, len(radios))
    for number, (radio, look) in enumerate(radios):
        found = sizes(run, radio.node, radio.device, window)
        values, counts = np.array(list(found)), np.array(list(found.values()))
        left = values - 0.4 + width * (number + 0.5)
        axes.bar(left, 100 * counts / counts.sum(), width=width, color=look.colour, linewidth=0)
    axes.set_title("Sizes of aggregates", fontsize=9)
    axes.set_xlabel("MPDUs of a PPDU")
    axes.set_ylabel("PPDUs (%)")
    axes.set_xlim(left=0.4)


def _steps(run: Recording, radio: Radio, *names: str) -> tuple[Floats, list[Floats]]:
    """(ends of the steps in s, growth in each step of every counter, none of one that is not there)."""
    rows = run.radio_counters.filter(_of(radio) & pl.col("name").is_in(names))
    wide = rows.pivot("name", index="t_ns", values="value").sort("t_ns")
    grown = [np.diff(wide[name].to_numpy() if name in wide.columns else np.zeros(wide.height)) for name in names]
    return wide["t_ns"].to_numpy()[1:] / NS_PER_S, [steps.astype(np.float64) for steps in grown]


def _air(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    for radio, look in radios:
        t_s, (sent_ns,) = _steps(run, radio, "tx_ns")
        step_ns = np.diff(t_s, prepend=0) * NS_PER_S
        axes.plot(t_s, 100 * sent_ns / step_ns, linewidth=1.1, label=_name(radio), **style.line(look))
    for t_s, busy in _busy(run, [radio for radio, _ in radios]):
        axes.plot(t_s, busy, color=TOTAL, linewidth=1.8, zorder=1.5)
    axes.set_title("On the air; grey: channel busy", fontsize=9)
    axes.set_ylabel("air % (of the time)")


def _busy(run: Recording, radios: list[Radio]) -> list[tuple[Floats, Floats]]:
    """(s, %) of each channel: radios that hear the same are on one."""
    if not (run.radio_counters["name"] == "medium_busy_ns").any():
        return []
    found = {}
    for radio in radios:
        t_s, (busy_ns,) = _steps(run, radio, "medium_busy_ns")
        found[busy_ns.tobytes()] = t_s, 100 * busy_ns / (np.diff(t_s, prepend=0) * NS_PER_S)
    return list(found.values())


def _by_category(
    axes: Axes, run: Recording, radios: list[tuple[Radio, Look]], title: str, unit: str, figure: str
) -> None:
    """Bars side by side, a radio's in its colour, of each access category."""
    width = 0.8 / len(radios)
    for number, (radio, look) in enumerate(radios):
        found = run.summary.wifi[radio.node][radio.device].categories
        there = [(place, getattr(found[name], figure)) for place, name in enumerate(CATEGORIES) if name in found]
        for place, value in there:
            x = place - 0.4 + width * (number + 0.5)
            axes.bar(x, value or 0, width=width, **style.box(look))
            if value is not None and len(radios) <= MOST_NUMBERED:
                axes.annotate(short(value), (x, value), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_title(title, fontsize=9)
    axes.set_ylabel(unit)
    axes.set_xticks(range(len(CATEGORIES)), list(CATEGORIES.values()))
    axes.set_xlim(-0.6, len(CATEGORIES) - 0.4)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.1)


def _txq(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    _waiting(axes, run, radios, "txq_packets")
    axes.set_title("Waiting in mac80211's queues (TXQ)", fontsize=9)
    axes.set_ylabel("packets")


def _held(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    _waiting(axes, run, radios, "ring_skbs")
    axes.set_title("Waiting in driver and hardware", fontsize=9)
    axes.set_ylabel("packets")


def _waiting(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]], column: str) -> None:
    for radio, look in radios:
        rows = run.queues.filter(_of(radio)).sort("t_ns")
        rows = rows.gather_every(max(1, rows.height // POINTS))
        axes.plot(rows["t_ns"].to_numpy() / NS_PER_S, rows[column].to_numpy(), linewidth=0.9, **style.line(look))


def _failed(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    """PPDUs that collided or were not answered."""
    for radio, look in radios:
        t_s, (collided, unanswered, tries) = _steps(run, radio, "tx_collisions", "tx_unanswered", "tx_attempts")
        axes.plot(t_s, 100 * (collided + unanswered) / np.maximum(tries, 1), linewidth=1.1, **style.line(look))
    axes.set_title("PPDUs that nobody acknowledged: collisions and losses", fontsize=9)
    axes.set_ylabel("not acknowledged %")


def _retried(axes: Axes, run: Recording, radios: list[tuple[Radio, Look]]) -> None:
    for radio, look in radios:
        t_s, grown = _steps(run, radio, *SENT, *SENT_FIRST)
        mpdus, first = sum(grown[: len(SENT)]), sum(grown[len(SENT) :])
        axes.plot(t_s, 100 * (mpdus - first) / np.maximum(mpdus, 1), linewidth=1.1, **style.line(look))
    axes.set_title("MPDUs sent again", fontsize=9)
    axes.set_ylabel("retried %")
