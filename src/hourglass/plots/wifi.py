# SPDX-License-Identifier: Apache-2.0
"""One run's radios: how many MPDUs a PPDU had, and over time who had the air, what waited in mac80211's queues and
below them, and how many transmissions failed.

A radio has one colour in all four. Sizes are those under load; a step over time is one between two samples of the
driver's counters.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from hourglass.contract.plan import Radio
from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, loaded_window
from hourglass.results.stats import Floats
from hourglass.results.wifi import sizes

POINTS = 3000


def wifi(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png or .svg). Raises `InputError` when it has no counters of radios."""
    if run.radio_counters.is_empty():
        raise InputError("RUN", str(run.path), "has no radios")
    sent = [radio for radio in run.radios if sizes(run, radio.node, radio.device, loaded_window(run))]
    panels: list[Callable[[Axes, Recording, list[Radio]], None]] = [_sizes, _air, _waiting, _failed]
    with style.figure(11, 6.4, path) as figure:
        grid = figure.subplots(2, 2).ravel()
        for axes, panel in zip(grid, panels, strict=True):
            panel(axes, run, sent)
        for axes in grid[1:]:
            axes.set_xlim(0, run.end_ns / NS_PER_S)
            axes.set_xlabel("test time (s)")
            axes.set_ylim(bottom=0)
        handles, names = grid[1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper")
        style.headline(figure, f"{run.name}  ·  Linux {run.info.kernel.release}")


def _colour(number: int) -> str:
    return style.FLOWS[number % len(style.FLOWS)]


def _name(radio: Radio) -> str:
    return f"{radio.node}:{radio.device}"


def _of(radio: Radio) -> pl.Expr:
    return (pl.col("node") == radio.node) & (pl.col("device") == radio.device)


def _sizes(axes: Axes, run: Recording, radios: list[Radio]) -> None:
    """Bars side by side: the share of a radio's PPDUs that had so many MPDUs."""
    window: Window = loaded_window(run)
    width = 0.8 / max(1, len(radios))
    for number, radio in enumerate(radios):
        found = sizes(run, radio.node, radio.device, window)
        values, counts = np.array(list(found)), np.array(list(found.values()))
        left = values - 0.4 + width * (number + 0.5)
        axes.bar(left, 100 * counts / counts.sum(), width=width, color=_colour(number), linewidth=0)
    axes.set_xlabel("MPDUs of a PPDU")
    axes.set_ylabel("PPDUs (%)")
    axes.set_xlim(left=0.4)


def _steps(run: Recording, radio: Radio, *names: str) -> tuple[Floats, list[Floats]]:
    """(ends of the steps in s, growth in each step of every counter)."""
    rows = run.radio_counters.filter(_of(radio) & pl.col("name").is_in(names))
    wide = rows.pivot("name", index="t_ns", values="value").sort("t_ns")
    grown = [np.diff(wide[name].to_numpy()).astype(np.float64) for name in names]
    return wide["t_ns"].to_numpy()[1:] / NS_PER_S, grown


def _air(axes: Axes, run: Recording, radios: list[Radio]) -> None:
    for number, radio in enumerate(radios):
        t_s, (sent_ns,) = _steps(run, radio, "tx_ns")
        step_ns = np.diff(t_s, prepend=0) * NS_PER_S
        axes.plot(t_s, 100 * sent_ns / step_ns, color=_colour(number), linewidth=1.1, label=_name(radio))
    axes.set_ylabel("sends (% of the time)")


def _waiting(axes: Axes, run: Recording, radios: list[Radio]) -> None:
    """mac80211's queues; dotted: driver and hardware."""
    for number, radio in enumerate(radios):
        rows = run.queues.filter(_of(radio)).sort("t_ns")
        rows = rows.gather_every(max(1, rows.height // POINTS))
        t_s = rows["t_ns"].to_numpy() / NS_PER_S
        axes.plot(t_s, rows["txq_packets"].to_numpy(), color=_colour(number), linewidth=1.1)
        axes.plot(t_s, rows["ring_skbs"].to_numpy(), color=_colour(number), linewidth=0.8, linestyle=":")
    axes.set_ylabel("TXQ (dotted: driver) (packets)")


def _failed(axes: Axes, run: Recording, radios: list[Radio]) -> None:
    """PPDUs that collided or were not answered; dotted: MPDUs that software had to send again."""
    for number, radio in enumerate(radios):
        t_s, (collided, unanswered, tries) = _steps(run, radio, "tx_collisions", "tx_unanswered", "tx_attempts")
        _, (again, mpdus) = _steps(run, radio, "tx_retries", "tx_mpdus")
        axes.plot(t_s, 100 * (collided + unanswered) / np.maximum(tries, 1), color=_colour(number), linewidth=1.1)
        axes.plot(t_s, 100 * again / np.maximum(mpdus, 1), color=_colour(number), linewidth=0.8, linestyle=":")
    axes.set_ylabel("PPDUs failed (dotted: MPDUs retried) (%)")
