# SPDX-License-Identifier: Apache-2.0
"""The tables of the terminal: pure functions from figures to what `rich` draws, 80 columns wide, ASCII only."""

import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hourglass.cli import output
from hourglass.cli.output import GAP
from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.summary import Summary, Warning
from hourglass.results.bootstrap import MIN_BLOCKS
from hourglass.results.compare import Cell, Row
from hourglass.results.sections import Section, sections, shown

NOTHING = "-"
"""What stands where there is no figure."""
WIDEST = 1000
"""Columns of a terminal that no table needs."""
LINE = 80

OF_RUNS = (
    "change from A in %; * = the 95 % interval of the difference excludes 0\n"
    "(bootstrap over 1 s blocks); * applies to these runs only: more seeds generalise"
)
OF_SEEDS = (
    "means over seeds; change from A in %; * = the 95 % interval of the difference\n"
    f"excludes 0 (bootstrap over seeds, {MIN_BLOCKS} of each at least)"
)


def figures(summary: Summary, test: str) -> Group:
    """All figures of one run, section by section."""
    title = f"{summary.scenario}  {test}  Linux {summary.kernel}  seed {summary.seed}"
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    for section in sections(summary):
        if not section.detail:
            parts += [drawn(section), Text()]
    return Group(*parts)


def drawn(section: Section) -> RenderableType:
    """A section as a table, or as a line when it is a single row without a name."""
    if not section.rows:
        return Text(section.nothing)
    return _Fitted(section) if section.about else Text(_line(section))


def _line(section: Section) -> str:
    """A section of one row: "upload 95.6 Mbit/s   fairness 1.00"; its note below it where both are long."""
    (row,) = section.rows
    parts = [
        " ".join(filter(None, (column.title, shown(value, column.kind, NOTHING), column.unit)))
        for column, value in zip(section.columns, row, strict=True)
    ]
    line, note = "   ".join(parts), f"({section.note})"
    return f"{line}   {note}" if len(line) + len(note) + 3 <= LINE else f"{line}\n{note}"


class _Fitted:
    """A section's table; where it is too wide, its last column, if that is text, stands in lines of its own below."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.places = [place for place, column in enumerate(section.columns) if not column.wide]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        last = self.section.columns[self.places[-1]]
        table = _table(self.section, self.places)
        needed = Measurement.get(console, options.update(max_width=WIDEST), table).maximum
        if last.kind != "text" or len(self.places) == 1 or needed <= options.max_width:
            yield table
            return
        yield _table(self.section, self.places[:-1])
        for row in self.section.rows:
            if told := row[self.places[-1]]:
                yield Text(f"{row[self.section.key]}  {last.title}: {told}")


def _table(section: Section, places: Sequence[int]) -> Table:
    """The columns at these places; what a row is about stands once, where it begins."""
    about = f"{section.about} ({section.unit})" if section.unit else section.about
    titles = [about, *(section.columns[place].title for place in places[1:])]
    kinds = [section.columns[place].kind for place in places]
    table = _grid(*((title, "left" if kind == "text" else "right") for title, kind in zip(titles, kinds, strict=True)))
    figures = [place for place, kind in zip(places, kinds, strict=True) if kind != "text"]
    last = None
    for row in section.rows:
        if figures and all(row[place] is None for place in figures):
            continue  # what it tells is in columns for which there is no room
        cells = [shown(row[place], kind, NOTHING) for place, kind in zip(places, kinds, strict=True)]
        about, cells[section.key] = cells[section.key], "" if cells[section.key] == last else cells[section.key]
        table.add_row(*cells)
        last = about
    return table


def _beside(rows: Iterable[tuple[str, str]]) -> Table:
    """Words, each with a text that is wrapped beside it."""
    table = _grid(("", "left"), ("", "left"))
    table.show_header = False
    for row in rows:
        table.add_row(*row)
    return table


def warnings(summary: Summary) -> RenderableType:
    """What to beware of, each beside the word."""
    found = [("warning", _warning(warning)) for warning in summary.warnings]
    return Group(_beside(found), Text()) if found else Group()


PLAIN = "; faster: hourglass kernel tune"


def footer(summary: Summary, place: Path, picture: Path | None, tuned: bool = True) -> Text:
    """Where the run is and what it took; not wrapped, so that paths can be copied."""
    lines = [f"run      {place}"]
    if picture is not None:
        lines.append(f"picture  {picture}")
    speed = f" ({summary.virtual_s / summary.wall_s:.1f} x real time)" if summary.wall_s else ""
    speed += "" if tuned else PLAIN
    clock = "virtual" if summary.engine == VIRTUAL else "of test"
    lines.append(f"time     {summary.virtual_s:g} s {clock} in {summary.wall_s:.2f} s{speed}")
    lines.append(f"digest   {summary.digest[:12]}")
    return Text("\n".join(lines))


def _warning(warning: Warning) -> str:
    """What was found and what to do about it."""
    remedy = f"; {warning.remedy}" if warning.remedy else ""
    return f"[{warning.id}] {warning.text}{remedy}"


def _grid(*columns: tuple[str, str]) -> Table:
    """A table without lines; columns are (header, "left" | "right")."""
    table = output.bare()
    for header, side in columns:
        right = side == "right"
        table.add_column(header, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def comparison(rows: Sequence[Row], runs: Sequence[str], width: int = 80, note: str = OF_RUNS) -> Group:
    """The runs, named A, B, …, side by side; as many tables as the width needs, A in each of them."""
    names = [letter(place) for place in range(len(runs))]
    parts: list[RenderableType] = [_beside(zip(names, runs, strict=True))]
    cells = _cells(rows, names)
    widths = [max(len(line[column]) for line in cells) + GAP for column in range(len(cells[0]))]
    others = list(range(1, len(runs)))
    while others:
        held, room = [others.pop(0)], width + GAP - sum(widths[:3])
        while others and sum(sum(widths[1 + 2 * place : 3 + 2 * place]) for place in (*held, others[0])) <= room:
            held.append(others.pop(0))
        parts += [Text(), _side_by_side(cells, held)]
    return Group(*parts, Text(), Text(note, style="dim"))


def changes(rows: Sequence[Row]) -> Table:
    """Figures of two runs or groups."""
    return _side_by_side(_cells(rows, ["A", "B"]), [1])


def letter(place: int) -> str:
    """A … Z, then A1 … Z1, and so on."""
    letters = string.ascii_uppercase
    return letters[place % len(letters)] + (str(place // len(letters)) if place >= len(letters) else "")


def _cells(rows: Sequence[Row], names: Sequence[str]) -> list[list[str]]:
    """The whole comparison as text, headers first: figure, unit, A, then two columns for each other run."""
    found = [["figure", "unit", names[0], *(text for name in names[1:] for text in (name, "change"))]]
    for row in rows:
        values = [(shown(cell.value, "number", NOTHING), _change(cell)) for cell in row.cells]
        found.append([row.figure, row.unit, values[0][0], *(text for pair in values[1:] for text in pair)])
    return found


def _side_by_side(cells: Sequence[Sequence[str]], others: Sequence[int]) -> Table:
    columns = [0, 1, 2, *(column for place in others for column in (1 + 2 * place, 2 + 2 * place))]
    table = _grid(*((cells[0][column], "left" if column < 2 else "right") for column in columns))
    for line in cells[1:]:
        table.add_row(*(line[column] for column in columns))
    return table


def _change(cell: Cell) -> str:
    """ "+12.3 *": the change in percent, and the mark or a blank, so that the digits stay in line."""
    if cell.change_percent is None:
        return f"{NOTHING}  "
    return f"{round(cell.change_percent, 1) + 0.0:+.1f} {'*' if cell.significant else ' '}"
