# SPDX-License-Identifier: Apache-2.0
"""The tables of the terminal: pure functions from figures to what `rich` draws, 80 columns wide, ASCII only."""

import string
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.summary import Summary, Warning
from hourglass.results.compare import Cell, Row
from hourglass.results.sections import Section, sections, shown

NOTHING = "-"
"""What stands where there is no figure."""

FIGURE_WIDTH, UNIT_WIDTH, BASE_WIDTH, OTHER_WIDTH = 21, 9, 10, 20
"""Columns of the comparison with margins: the figure, its unit, the first run, each further run with its change."""


def figures(summary: Summary, test: str) -> Group:
    """All figures of one run, section by section."""
    title = f"{summary.scenario}  {test}  Linux {summary.kernel}  seed {summary.seed}"
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    for section in sections(summary):
        if not section.detail:
            parts += [_drawn(section), Text()]
    return Group(*parts)


def _drawn(section: Section) -> RenderableType:
    if not section.rows:
        return Text(section.nothing)
    return _table(section) if section.about else Text(_line(section))


def _line(section: Section) -> str:
    """A section of one row: "upload 95.6 Mbit/s   fairness 1.00"."""
    (row,) = section.rows
    parts = [
        " ".join(filter(None, (column.title, shown(value, column.kind, NOTHING), column.unit)))
        for column, value in zip(section.columns, row, strict=True)
    ]
    return "   ".join([*parts, f"({section.note})"])


def _table(section: Section) -> Table:
    """The columns for which there is room; what a row is about stands once, where it begins."""
    places = [place for place, column in enumerate(section.columns) if not column.wide]
    about = f"{section.about} ({section.unit})" if section.unit else section.about
    titles = [about, *(section.columns[place].title for place in places[1:])]
    kinds = [section.columns[place].kind for place in places]
    table = _grid(*((title, "left" if kind == "text" else "right") for title, kind in zip(titles, kinds, strict=True)))
    figures = [place for place, kind in zip(places, kinds, strict=True) if kind != "text"]
    last = None
    for row in section.rows:
        if all(row[place] is None for place in figures):
            continue  # what it tells is in columns for which there is no room
        cells = [shown(row[place], kind, NOTHING) for place, kind in zip(places, kinds, strict=True)]
        table.add_row("" if cells[0] == last else cells[0], *cells[1:])
        last = cells[0]
    return table


def footer(summary: Summary, place: Path, picture: Path | None) -> Text:
    """What to beware of, where the run is and what it took; not wrapped, so that paths can be copied."""
    lines = [f"warning  {_warning(warning)}" for warning in summary.warnings]
    lines += [""] if lines else []
    lines.append(f"run      {place}")
    if picture is not None:
        lines.append(f"picture  {picture}")
    speed = f" ({summary.virtual_s / summary.wall_s:.1f} x real time)" if summary.wall_s else ""
    clock = "virtual" if summary.engine == VIRTUAL else "of test"
    lines.append(f"time     {summary.virtual_s:g} s {clock} in {summary.wall_s:.2f} s{speed}")
    lines.append(f"digest   {summary.digest[:12]}")
    return Text("\n".join(lines))


def _warning(warning: Warning) -> str:
    """One line: what was found and what to do about it."""
    remedy = f"; {warning.remedy}" if warning.remedy else ""
    return f"[{warning.id}] {warning.text}{remedy}"


def _grid(*columns: tuple[str, str]) -> Table:
    """A table without lines; columns are (header, "left" | "right")."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header, side in columns:
        right = side == "right"
        table.add_column(header, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def comparison(rows: Sequence[Row], runs: Sequence[str], width: int = 80) -> Group:
    """The runs, named A, B, …, side by side; as many tables as the width needs, A in each of them."""
    names = [_letter(place) for place in range(len(runs))]
    parts: list[RenderableType] = [Text(f"{name}  {run}") for name, run in zip(names, runs, strict=True)]
    room = max(1, (width - FIGURE_WIDTH - UNIT_WIDTH - BASE_WIDTH) // OTHER_WIDTH)
    for first in range(1, len(runs), room):
        parts += [Text(), _side_by_side(rows, names, range(first, min(first + room, len(runs))))]
    note = (
        "change from A in %; * = the 95 % interval of the difference excludes 0\n"
        "(bootstrap over 1 s blocks); * applies to these runs only: more seeds generalise"
    )
    return Group(*parts, Text(), Text(note, style="dim"))


def _letter(place: int) -> str:
    """A … Z, then A1 … Z1, and so on."""
    letters = string.ascii_uppercase
    return letters[place % len(letters)] + (str(place // len(letters)) if place >= len(letters) else "")


def _side_by_side(rows: Sequence[Row], names: Sequence[str], others: range) -> Table:
    columns = [(names[0], "right")]
    for other in others:
        columns += [(names[other], "right"), ("change", "right")]
    table = _grid(("figure", "left"), ("unit", "left"), *columns)
    for row in rows:
        cells = [shown(row.cells[0].value, "number", NOTHING)]
        for other in others:
            cells += [shown(row.cells[other].value, "number", NOTHING), _change(row.cells[other])]
        table.add_row(row.figure, row.unit, *cells)
    return table


def _change(cell: Cell) -> str:
    """ "+12.3 *": the change in percent, and the mark or a blank, so that the digits stay in line."""
    if cell.change_percent is None:
        return f"{NOTHING}  "
    return f"{round(cell.change_percent, 1) + 0.0:+.1f} {'*' if cell.significant else ' '}"
