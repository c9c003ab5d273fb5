# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass diff`: the first difference of two runs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import hourglass
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.cli.options import Json
from hourglass.cli.tables import NOTHING
from hourglass.results.diff import Change, Diff, Value, exact_seconds

MOST = 12
"""Changes of a row that the terminal shows; `--json` has all."""


@examples("""\
hourglass diff runs/A runs/B
hourglass diff runs/A runs/B --json""")
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A run directory.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another run directory.")],
    json: Json = False,
) -> int:
    """Find the first difference of two runs: the packet, its layer and its socket.

    Exits with 0 if the records are the same bytes, with 1 if they differ.
    """
    difference = hourglass.diff(hourglass.load(first), hourglass.load(second))
    if json:
        output.show_json({"schema": 1, "runs": [str(first), str(second)], **asdict(difference)})
    else:
        _show(difference, first, second)
    return int(not difference.same)


def _show(difference: Diff, first: Path, second: Path) -> None:
    output.show(Text(f"A  {first}\nB  {second}\n"))
    if difference.asked:
        output.show(_changes("setting", difference.asked), Text())
    if difference.same:
        output.show(Text("the same records, byte by byte"))
        return
    if difference.packet:
        output.show(Text(f"first packet that differs:\n{difference.packet.text}"))
        output.show(_changes("packet", difference.packet.changes), Text())
    if difference.socket_ns is not None:
        output.show(
            Text(f"its sender's socket at the next sample, at {exact_seconds(difference.socket_ns)}"),
            _changes("socket", difference.socket),
            Text(),
        )
    if difference.tables:
        output.show(_tables(difference))
    else:
        output.show(Text("no other difference except the order of rows, or facts about the machine"))


def _changes(head: str, changes: tuple[Change, ...]) -> Table:
    table = output.grid(head, "A", "B")
    for change in changes[:MOST]:
        table.add_row(change.what, _value(change.what, change.first), _value(change.what, change.second))
    if len(changes) > MOST:
        table.add_row(f"and {len(changes) - MOST} more")
    return table


def _tables(difference: Diff) -> Table:
    table = output.grid("table", "rows A", "rows B", "differ", "first at", "of")
    table.columns[-1].justify = "left"
    for rows in difference.tables:
        keys = " ".join(str(value) for value in rows.about.values())
        changed = ", ".join(
            f"{c.what} {_value(c.what, c.first)} / {_value(c.what, c.second)}" for c in rows.changes[:1]
        )
        difference_text = f"{keys}: {changed}" if keys else changed
        table.add_row(
            rows.name,
            *map(str, (*rows.rows, rows.differ)),
            exact_seconds(rows.t_ns),
            difference_text,
        )
    return table


def _value(column: str, value: Value) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("_ns") and isinstance(value, int):
        return exact_seconds(value) if column in ("t_ns", "end_ns") else f"{value / 1e6:.6f} ms"
    return str(value)
