# SPDX-License-Identifier: Apache-2.0
"""What a section is. Whoever shows one decides how a table looks, and nothing else."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from hourglass.results.stats import short

Value: TypeAlias = str | int | float | None
"""A figure, exact; None: not known."""

Form = Literal["text", "number", "time", "share"]
"""`number`: three digits, counts in full; `time`: ms, of less than 1 the whole µs; `share`: of 1, shown in percent."""


@dataclass(frozen=True)
class Column:
    """A column. `wide`: only where there is room for more than the 80 columns of a terminal."""

    title: str
    kind: Form = "number"
    unit: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A titled table. `about` names what a row is where there is no title, with the `unit` of its figures. `key`: the
    place of the column that says so; it is shown once where rows in a row have the same.

    `detail`: for whoever asks; a terminal leaves it out. `nothing`: what to say when there are no rows, if anything."""

    id: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    unit: str = ""
    note: str = ""
    nothing: str = ""
    detail: bool = False
    key: int = 0

    def known(self) -> "Section":
        """Without the columns in which nothing is known of any row."""
        places = [place for place in range(len(self.columns)) if any(row[place] is not None for row in self.rows)]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        columns = tuple(self.columns[place] for place in places)
        return replace(self, columns=columns, rows=rows, key=places.index(self.key))


def shown(value: Value, kind: Form, nothing: str) -> str:
    """A value as text; `nothing` for what is not known."""
    if value is None:
        return nothing
    if isinstance(value, str):
        return value
    if kind == "share":
        return f"{value:.1%}"
    if kind == "time" and 0 < value < 1:
        return f"{value:.3f}"
    return str(value) if isinstance(value, int) else short(value)
