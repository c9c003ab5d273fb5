# SPDX-License-Identifier: Apache-2.0
"""The columns of a study: the values of the compared axis, and the keys of the scenario that follow them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hourglass.errors import InputError, closest
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.scenario.blame import refusal
from hourglass.scenario.vocabulary import NOT_IN_LINUX
from hourglass.studies import grid as grids
from hourglass.studies.axes import Assignment
from hourglass.studies.file import PartTable
from hourglass.studies.grid import BASE, ENGINE, SEED, Grid

ANY_COLUMN = "any"
"""A column, where it does not matter which."""
SPECIAL = (BASE, ENGINE, "kernel", SEED)
"""Axes without a dot that are keys."""


@dataclass(frozen=True)
class ColumnGrid:
    """The grid of a part. `tied`: the keys that follow the column; `columns`: by their values, as text, the column."""

    grid: Grid
    tied: tuple[str, ...]
    columns: Mapping[tuple[str, ...], str]
    label_by: Sequence[str]

    def column(self, cell: Assignment) -> str:
        """Return the column of a cell."""
        return self.columns[tuple(str(cell[key]) for key in self.tied)]

    def setting(self, cell: Assignment) -> dict[str, Any]:
        """Return the values of all other axes except the seed."""
        return {key: cell[key] for key in self.grid.keys if key not in (*self.tied, SEED)}

    def label(self, setting: Mapping[str, Any]) -> str:
        """Return the label of a setting."""
        return ", ".join(filter(None, (self.grid.label(key, setting[key]) for key in self.label_by or setting)))


def named(words: Sequence[str], axis: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the columns of the user's words, and the file or folder of each column that has one. The column of a file
    has its name. Raises `InputError`."""
    columns = tuple(Path(word).stem if word.endswith(".c") or "/" in word else word for word in words)
    for column, word in zip(columns, words, strict=True):
        if axis == "cc" and column == word and word not in (*CONGESTION_CONTROLS, *NOT_IN_LINUX):
            hint = closest(word, CONGESTION_CONTROLS)
            raise InputError("--cc", word, f"no congestion control of Linux, and no file. {hint}".strip())
        equal = [other for other, name in zip(words, columns, strict=True) if name == column and other != word]
        if equal or (column != word and column in CONGESTION_CONTROLS):
            raise InputError("--cc", word, f"its column would be named {column!r}, like that of {[*equal, column][0]}")
    return columns, {column: word for column, word in zip(columns, words, strict=True) if column != word}


def column_grid(
    name: str,
    table: PartTable,
    folder: Path,
    axis: str,
    columns: Sequence[str],
    quick: bool,
    seeds: Sequence[int],
    sources: Mapping[str, str],
) -> ColumnGrid:
    """Return the grid of a part for these columns.

    `quick`: the values that the file names for it, and the first seed. `seeds`: replace those of the file. `sources`:
    by column the file or folder that stands for it.
    """
    values = [sources.get(column, column) for column in columns]
    placeholder = f"{{{axis}}}"
    if not axis:
        tied: dict[str, list[Any]] = {}
    elif axis in SPECIAL or "." in axis:
        tied = {axis: list(values)}
    else:
        tied = {
            key: [_substituted(value, placeholder, word) for word in values]
            for key, value in table.fixed.items()
            if _substituted(value, placeholder, "") != value
        }
        if not tied:
            allowed = f'no key has {placeholder}, like "stack.client.cc" = "{placeholder}"'
            raise refusal(f"{table.id}: set" if table.id else "set", table.fixed, allowed)
    axes = dict(table.axes)
    if seeds or table.seeds:
        if table.seeds and SEED in axes and not seeds:
            raise refusal("seeds", list(table.seeds.range), "seed is an axis already")
        axes[SEED] = list(seeds or (table.seeds.range if table.seeds else ()))
    grid = grids.build(
        table.id or name, "", table.scenario, {key: value for key, value in table.fixed.items() if key not in tied},
        axes, [*table.zips, *([tied] if tied else [])], table.excludes, table.labels, folder,
    )  # fmt: skip
    if quick:
        selected: list[object] = [*seeds] or [grid.cells[0].get(SEED)]
        cells = [cell for cell in grid.cells if all(cell[key] in options for key, options in table.quick.items())]
        grid = replace(grid, cells=tuple(cell for cell in cells if cell.get(SEED) in selected))
    by_values = {tuple(str(column[number]) for column in tied.values()): name for number, name in enumerate(columns)}
    return ColumnGrid(grid, tuple(tied), by_values, table.label_by)


def _substituted(value: Any, placeholder: str, word: str) -> Any:
    """Return a value with the column instead of the placeholder."""
    if isinstance(value, list):
        return [_substituted(item, placeholder, word) for item in value]
    if value == placeholder:
        return word  # with its mark of origin
    return value.replace(placeholder, word) if isinstance(value, str) else value
