# SPDX-License-Identifier: Apache-2.0
"""Printing on stdout: tables through `rich`, without colour codes when nobody sees colours; JSON as it is."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

GAP = 2
"""Blanks between columns."""


def screen() -> Console:
    """The console of stdout: the terminal's width, 80 columns when it is none."""
    return Console(highlight=False, markup=False, emoji=False)


def show(*parts: RenderableType, whole_lines: bool = False) -> None:
    """Prints the parts one below the other; `whole_lines` leaves long lines unwrapped, so that they can be copied.

    No line ends in blanks. They are out when this returns."""
    console = screen()
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=whole_lines)
    for line in captured.get().splitlines():
        print(line.rstrip())
    sys.stdout.flush()


def listing(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what there is to say of each."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, description in rows:
        table.add_row(name, description)
    return table


def bare() -> Table:
    """A table without lines and, so far, columns."""
    return Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")


def grid(head: str, *figures: str) -> Table:
    """An empty table without lines: what a row is about, then its figures."""
    table = bare()
    table.add_column(head, no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right")
    return table


def show_json(value: Any) -> None:
    """Prints one JSON value on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
