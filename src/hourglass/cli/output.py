# SPDX-License-Identifier: Apache-2.0
"""Print on stdout: tables with `rich`, without colour codes if stdout is not a terminal; JSON unchanged."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from hourglass.visible import styled, visible_json

GAP = 2
"""Blanks between columns."""


def screen() -> Console:
    """Return the console of stdout, with the terminal's width, or 80 columns without a terminal."""
    return Console(highlight=False, markup=False, emoji=False)


def show(*parts: RenderableType, whole_lines: bool = False) -> None:
    """Print the parts below each other. `whole_lines` leaves long lines unwrapped, so they can be copied.

    Lines have no trailing blanks. Everything is flushed.
    """
    console = screen()
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=whole_lines)
    for line in captured.get().split("\n")[:-1]:
        print(styled(line.rstrip()))
    sys.stdout.flush()


def listing(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and descriptions."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, description in rows:
        table.add_row(name, description)
    return table


def bare() -> Table:
    """Return a table without lines and columns."""
    return Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")


def grid(heading: str, *figures: str) -> Table:
    """Return an empty table without lines: a heading for the rows, then the figures."""
    table = bare()
    table.add_column(heading, no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right")
    return table


def show_json(value: Any) -> None:
    """Print a JSON value on stdout."""
    print(visible_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)))
