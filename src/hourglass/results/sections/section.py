# SPDX-License-Identifier: Apache-2.0
"""The model of a section. A renderer decides the look of its table, and nothing else."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from hourglass.results.stats import short

Value: TypeAlias = str | int | float | None
"""A figure, exact; None: unknown."""

Form = Literal["text", "number", "time", "share", "rate", "instant"]
"""`number`: three digits, counts in full; `time`: ms, below 1 ms the whole µs; `share`: of 1, shown in percent;
`rate`: a number, but "<0.001" below that; `instant`: s of test time to the ms."""


LEAST_RATE = 0.001


@dataclass(frozen=True)
class Column:
    """A column. `wide`: only if there is room for more than the 80 columns of a terminal. `group`: a terminal shows
    the first groups above 0 that fit."""

    title: str
    kind: Form = "number"
    unit: str = ""
    wide: bool = False
    group: int = 0


@dataclass(frozen=True)
class Section:
    """A titled table. `about` names the meaning of a row if there is no title, with the `unit` of its figures. `key`:
    the index of the column that identifies rows; adjacent rows with the same value show it once.

    `detail`: shown only on request; a terminal omits it. `nothing`: the text for no rows, if any. `groups`: the names
    of the columns' groups, 0 first; a terminal names those that it omits. `more`: a note on rows left out.
    """

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
    groups: tuple[str, ...] = ()
    more: str = ""

    def without_empty_columns(self) -> "Section":
        """Return the section without columns that are unknown in all rows."""
        indices = [index for index in range(len(self.columns)) if any(row[index] is not None for row in self.rows)]
        rows = tuple(tuple(row[index] for index in indices) for row in self.rows)
        columns = tuple(self.columns[index] for index in indices)
        return replace(self, columns=columns, rows=rows, key=indices.index(self.key))


def value_text(value: Value, kind: Form, nothing: str) -> str:
    """Return a value as text; `nothing` for an unknown one."""
    if value is None:
        return nothing
    if isinstance(value, str):
        return value
    if kind == "share":
        return f"{value:.1%}"
    if kind == "instant":
        return f"{value:.3f}"
    if kind == "rate" and 0 < value < LEAST_RATE:
        return f"<{LEAST_RATE:g}"
    if kind == "time" and 0 < value < 1:
        return f"{value:.3f}"
    return str(value) if isinstance(value, int) else short(value)
