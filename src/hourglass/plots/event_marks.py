# SPDX-License-Identifier: Apache-2.0
"""Marks the events of a test: a line through all panels over time, and a description.

The first `NUMBERED_MAX` moments have a number at the top of the first panel, which the list below the picture explains.
Later moments have only lines. Moments close to each other share a label.
"""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from hourglass.plots import style
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S

NUMBERED_MAX = 12
LINES_MAX = 400
"""More lines would form a grey plane."""
LETTERS = 70
SPACING = 0.025
"""The least distance of two numbers, as a share of the axis."""
LINE_IN = 0.16
COLUMNS = 2


def moments(run: Recording) -> list[tuple[float, str]]:
    """Return (s, description) of every instant with events, in order."""
    events = run.events.with_columns(text=pl.format("{}: {}", "node", "name"))
    grouped = events.group_by("t_ns", maintain_order=True).agg(pl.col("text").str.join("; "))
    return [(t_ns / NS_PER_S, text) for t_ns, text in grouped.iter_rows()]


def mark(panels: Sequence[Axes], run: Recording, numbered: bool = True) -> None:
    """Draw lines through the panels; `numbered`: with their numbers above the first panel."""
    events = moments(run)
    for axes in panels:
        for at_s, _ in events[:LINES_MAX]:
            axes.axvline(at_s, color=style.MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1.5)
    width_s = panels[0].get_xlim()[1] - panels[0].get_xlim()[0]
    for at_s, text in numbers([at_s for at_s, _ in events[:NUMBERED_MAX]] if numbered else [], SPACING * width_s):
        panels[0].text(at_s, 1.0, text, transform=panels[0].get_xaxis_transform(), ha="center", va="bottom",
                       fontsize=7.5, color=style.MUTED)  # fmt: skip


def numbers(times_s: Sequence[float], spacing_s: float) -> list[tuple[float, str]]:
    """Return (s, number) of each moment; moments less than `spacing_s` apart share a label."""
    runs: list[list[int]] = []
    for index, at_s in enumerate(times_s):
        if runs and at_s - times_s[runs[-1][-1]] < spacing_s:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [
        ((times_s[run[0]] + times_s[run[-1]]) / 2, f"{run[0] + 1}" + (f"\u2013{run[-1] + 1}" if run[1:] else ""))
        for run in runs
    ]


def height_in(run: Recording) -> float:
    """Return the height of the list below a picture, inches."""
    events = moments(run)
    lines = -(-min(len(events), NUMBERED_MAX) // COLUMNS) + (len(events) > NUMBERED_MAX)
    return LINE_IN * lines + 0.1 if events else 0.0


def explain(figure: Figure | SubFigure, run: Recording) -> None:
    """Draw the list at the foot of a picture: two columns, read downwards."""
    events = moments(run)
    entries = [
        f"{number}  {at_s:.9g} s  {_short(text)}" for number, (at_s, text) in enumerate(events[:NUMBERED_MAX], 1)
    ]
    per_column = -(-len(entries) // COLUMNS)
    more = [f"… and {len(events) - NUMBERED_MAX} more"] if len(events) > NUMBERED_MAX else []
    for column in range(COLUMNS if len(entries) > 1 else 1):
        lines = entries[column * per_column : (column + 1) * per_column]
        lines += [""] * (per_column - len(lines)) + (more if column == 0 else [""] * len(more))
        figure.text(0.01 + column / COLUMNS, 0.06 / figure.bbox.height * figure.get_dpi(), "\n".join(lines), ha="left",
                    va="bottom", fontsize=7.5, color=style.MUTED, linespacing=1.35)  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
