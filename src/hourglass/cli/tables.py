# SPDX-License-Identifier: Apache-2.0
"""Lay out the tables of the terminal: pure functions from figures to objects of `rich`, 80 columns wide, ASCII only."""

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
from hourglass.contract.summary import RunWarning, Summary
from hourglass.results.compare import ComparisonCell, ComparisonRow
from hourglass.results.intervals import MIN_BLOCKS
from hourglass.results.sections import Section, sections, value_text

NOTHING = "-"
"""The text for a missing figure."""
WIDEST = 1000
"""Columns of a terminal that no table needs."""
LINE = 80

OF_RUNS = (
    "change from {0}; * = the 95 % interval of the difference excludes 0\n"
    "(bootstrap over 1 s blocks); * applies to these runs only: more seeds generalise"
)
OF_SEEDS = (
    "means over seeds; change from {0}; * = the 95 % interval of the difference\n"
    f"excludes 0 (bootstrap over seeds, {MIN_BLOCKS} of each at least)"
)


def figures(summary: Summary, test: str) -> Group:
    """Return all figures of a run, section by section."""
    title = f"{summary.scenario}  {test}  Linux {summary.kernel}  seed {summary.seed}"
    parts: list[RenderableType] = [Text(title, style="bold"), Text()]
    for section in sections(summary):
        if not section.detail:
            parts += [drawn(section), Text()]
    return Group(*parts)


def drawn(section: Section) -> RenderableType:
    """Return a section as a table, or as a line if it is a single row without a name."""
    if not section.rows:
        return Text(section.nothing)
    return _Fitted(section) if section.about else Text(_line(section))


def _line(section: Section) -> str:
    """Return a section with one row: "upload 95.6 Mbit/s   fairness 1.00". A long note is below it."""
    (row,) = section.rows
    parts = [
        " ".join(filter(None, (column.title, value_text(value, column.kind, NOTHING), column.unit)))
        for column, value in zip(section.columns, row, strict=True)
    ]
    line, note = "   ".join(parts), f"({section.note})"
    return f"{line}   {note}" if len(line) + len(note) + 3 <= LINE else f"{line}\n{note}"


class _Fitted:
    """A section's table. If it is too wide, a text in the last column moves to lines below. Groups of columns that do
    not fit are only named."""

    def __init__(self, section: Section) -> None:
        self.section = section

    def _columns(self, groups: int) -> list[int]:
        """Return the indices of the columns of these groups and those before."""
        columns = enumerate(self.section.columns)
        return [index for index, column in columns if not column.wide and column.group <= groups]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def width(groups: int) -> int:
            table = _table(self.section, self._columns(groups))
            return Measurement.get(console, options.update(max_width=WIDEST), table).maximum

        last_group = max(column.group for column in self.section.columns)
        groups = next((group for group in range(last_group, 0, -1) if width(group) <= options.max_width), 0)
        shown_columns = self._columns(groups)
        last = self.section.columns[shown_columns[-1]]
        if last.kind != "text" or len(shown_columns) == 1 or width(groups) <= options.max_width:
            yield _table(self.section, shown_columns)
        else:
            yield _table(self.section, shown_columns[:-1])
            for row in self.section.rows:
                if text := row[shown_columns[-1]]:
                    yield Text(f"{row[self.section.key]}  {last.title}: {text}")
        if hidden := self.section.groups[groups + 1 :]:
            yield Text(f"hidden for lack of room: {', '.join(hidden)}; hourglass report has all columns", style="dim")
        if self.section.more:
            yield Text(self.section.more, style="dim")


def _table(section: Section, columns: Sequence[int]) -> Table:
    """Return a table of these columns. Consecutive rows with the same subject show it once."""
    about = f"{section.about} ({section.unit})" if section.unit else section.about
    titles = [about, *(section.columns[column].title for column in columns[1:])]
    kinds = [section.columns[column].kind for column in columns]
    table = _grid(*((title, "left" if kind == "text" else "right") for title, kind in zip(titles, kinds, strict=True)))
    figures = [column for column, kind in zip(columns, kinds, strict=True) if kind != "text"]
    last = None
    for row in section.rows:
        if figures and all(row[column] is None for column in figures):
            continue  # its values are in columns that do not fit
        cells = [value_text(row[column], kind, NOTHING) for column, kind in zip(columns, kinds, strict=True)]
        subject, cells[section.key] = cells[section.key], "" if cells[section.key] == last else cells[section.key]
        table.add_row(*cells)
        last = subject
    return table


def _word_list(rows: Iterable[tuple[str, str]]) -> Table:
    """Return words, each with a wrapped text next to it."""
    table = _grid(("", "left"), ("", "left"))
    table.show_header = False
    for row in rows:
        table.add_row(*row)
    return table


def warnings(summary: Summary) -> RenderableType:
    """Return the warnings, each next to the word "warning"."""
    rows = [("warning", _warning(warning)) for warning in summary.warnings]
    return Group(_word_list(rows), Text()) if rows else Group()


PLAIN = "; faster: hourglass kernel tune"


def footer(summary: Summary, path: Path, picture: Path | None, tuned: bool = True) -> Text:
    """Return the run's path, its time and its digest, unwrapped so that paths can be copied."""
    lines = [f"run      {path}"]
    if picture is not None:
        lines.append(f"picture  {picture}")
    speed = f" ({summary.virtual_s / summary.wall_s:.1f} x real time)" if summary.wall_s else ""
    speed += "" if tuned else PLAIN
    clock = "virtual" if summary.engine == VIRTUAL else "of test"
    lines.append(f"time     {round(summary.virtual_s, 3):g} s {clock} in {summary.wall_s:.2f} s{speed}")
    lines.append(f"digest   {summary.digest[:12]}")
    return Text("\n".join(lines))


def _warning(warning: RunWarning) -> str:
    """Return a warning's text and remedy."""
    remedy = f"; {warning.remedy}" if warning.remedy else ""
    return f"[{warning.id}] {warning.text}{remedy}"


def _grid(*columns: tuple[str, str]) -> Table:
    """Return a table without lines; columns are (header, "left" | "right")."""
    table = output.bare()
    for header, side in columns:
        right = side == "right"
        table.add_column(header, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def comparison(
    rows: Sequence[ComparisonRow], runs: Sequence[str], references: Sequence[int], width: int = 80, note: str = OF_RUNS
) -> Group:
    """Return the runs, named A, B, …, next to each other, in as many tables as the width needs. Each table begins with
    a reference."""
    names = [letter(index) for index in range(len(runs))]
    parts: list[RenderableType] = [_word_list(zip(names, runs, strict=True))]
    cells = _cells(rows, names)
    widths = [max(len(line[column]) for line in cells) + GAP for column in range(len(cells[0]))]
    for reference in dict.fromkeys(references):
        remaining = [run for run, other in enumerate(references) if other == reference and run != reference]
        while remaining:
            fitting, room = [remaining.pop(0)], width + GAP - sum(widths[:2]) - widths[2 + 2 * reference]
            while remaining and sum(sum(widths[2 + 2 * run : 4 + 2 * run]) for run in (*fitting, remaining[0])) <= room:
                fitting.append(remaining.pop(0))
            parts += [Text(), _side_by_side(cells, reference, fitting)]
    base = names[0] if len(set(references)) == 1 else "the first run"
    return Group(*parts, Text(), Text(note.format(base), style="dim"))


def letter(index: int) -> str:
    """Return A … Z, then A1 … Z1, and so on."""
    letters = string.ascii_uppercase
    return letters[index % len(letters)] + (str(index // len(letters)) if index >= len(letters) else "")


def _cells(rows: Sequence[ComparisonRow], names: Sequence[str]) -> list[list[str]]:
    """Return the comparison as text, headers first: figure, unit, then two columns for each run."""
    lines = [["figure", "unit", *(text for name in names for text in (name, "change %"))]]
    for row in rows:
        values = [(value_text(cell.value, "number", NOTHING), _change(cell)) for cell in row.cells]
        lines.append([row.figure, row.unit, *(text for pair in values for text in pair)])
    return lines


def _side_by_side(cells: Sequence[Sequence[str]], reference: int, runs: Sequence[int]) -> Table:
    columns = [0, 1, 2 + 2 * reference, *(column for run in runs for column in (2 + 2 * run, 3 + 2 * run))]
    table = _grid(*((cells[0][column], "left" if column < 2 else "right") for column in columns))
    for line in cells[1:]:
        table.add_row(*(line[column] for column in columns))
    return table


def _change(cell: ComparisonCell) -> str:
    """Return "+12.3 *": the change in percent, and the mark or a blank, so that digits are aligned."""
    if cell.change_percent is None:
        return f"{NOTHING}  "
    return f"{round(cell.change_percent, 1) + 0.0:+.1f} {'*' if cell.significant else ' '}"
