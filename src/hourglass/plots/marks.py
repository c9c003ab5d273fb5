# SPDX-License-Identifier: Apache-2.0
"""Marks of what changed during the test: a line through all panels over time, and what it was.

The first `NAMED` moments have a number at the top of the first panel, which the list below the picture explains; of
more there are lines alone.
"""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from hourglass.plots import style
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S

NAMED = 12
LINES_MAX = 400
"""More would be a grey plane."""
LETTERS = 70
LINE_IN = 0.16
COLUMNS = 2


def moments(run: Recording) -> list[tuple[float, str]]:
    """(s, what was done) of every instant at which something was, in order."""
    told = run.events.with_columns(text=pl.format("{}: {}", "node", "name"))
    grouped = told.group_by("t_ns", maintain_order=True).agg(pl.col("text").str.join("; "))
    return [(t_ns / NS_PER_S, text) for t_ns, text in grouped.iter_rows()]


def mark(panels: Sequence[Axes], run: Recording, numbered: bool = True) -> None:
    """Lines through the panels; `numbered`: with their numbers above the first."""
    found = moments(run)
    for axes in panels:
        for at_s, _ in found[:LINES_MAX]:
            axes.axvline(at_s, color=style.MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1.5)
    for number, (at_s, _) in enumerate(found[:NAMED] if numbered else [], 1):
        panels[0].text(at_s, 1.0, str(number), transform=panels[0].get_xaxis_transform(), ha="center", va="bottom",
                       fontsize=7.5, color=style.MUTED)  # fmt: skip


def height_in(run: Recording) -> float:
    """Room that the list below a picture needs, inches."""
    found = moments(run)
    lines = -(-min(len(found), NAMED) // COLUMNS) + (len(found) > NAMED)
    return LINE_IN * lines + 0.1 if found else 0.0


def explain(figure: Figure | SubFigure, run: Recording) -> None:
    """The list at the foot of a picture: two columns, read downwards."""
    found = moments(run)
    named = [f"{number}  {at_s:.9g} s  {_short(text)}" for number, (at_s, text) in enumerate(found[:NAMED], 1)]
    per_column = -(-len(named) // COLUMNS)
    more = [f"… and {len(found) - NAMED} more"] if len(found) > NAMED else []
    for column in range(COLUMNS if len(named) > 1 else 1):
        lines = named[column * per_column : (column + 1) * per_column]
        lines += [""] * (per_column - len(lines)) + (more if column == 0 else [""] * len(more))
        figure.text(0.01 + column / COLUMNS, 0.06 / figure.bbox.height * figure.get_dpi(), "\n".join(lines), ha="left",
                    va="bottom", fontsize=7.5, color=style.MUTED, linespacing=1.35)  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
