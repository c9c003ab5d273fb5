# SPDX-License-Identifier: Apache-2.0
"""Reads `records.toml`, the declaration of a run's tables: columns with type and meaning, groups expanded."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final, Literal

import polars as pl
from polars.datatypes import DataType, DataTypeClass
from pydantic import Field

from hourglass.contract.probe import PROBE, Declaration

Type = Literal["bool", "u8", "u16", "u32", "u64", "i64", "text"]
Schema = dict[str, "DataType | DataTypeClass"]

POLARS: Final[dict[Type, DataTypeClass]] = {
    "bool": pl.Boolean, "u8": pl.UInt8, "u16": pl.UInt16, "u32": pl.UInt32, "u64": pl.UInt64, "i64": pl.Int64,
    "text": pl.String,
}  # fmt: skip


class RecordColumn(Declaration):
    """A column. `values`: the enumeration of `probe.toml` that its texts belong to. `bits`: the width of a bit field
    of the kernel's structure. `late`: the file has the column only if the kernel fills it."""

    name: str
    type: Type
    optional: bool = False
    values: str | None = None
    bits: int | None = None
    late: bool = False
    doc: str = ""


class _ColumnPerValue(RecordColumn):
    """A column for each value of an enumeration."""

    each: str
    without: list[str] = Field(default_factory=list)


class _GroupUse(Declaration):
    """A reference to a group: its columns are inserted here."""

    group: str
    optional: bool = False
    doc: str = ""


class _ColumnGroup(Declaration):
    optional: bool = False
    column: list[RecordColumn | _ColumnPerValue]


class _TableDeclaration(Declaration):
    name: str
    doc: str
    agent: bool = True
    column: list[RecordColumn | _ColumnPerValue | _GroupUse]


class _RecordsToml(Declaration):
    about: str
    group: dict[str, _ColumnGroup]
    tables: list[_TableDeclaration] = Field(alias="table")

    def columns(self, entries: list[RecordColumn | _ColumnPerValue | _GroupUse]) -> Iterator[RecordColumn]:
        for entry in entries:
            match entry:
                case _GroupUse():
                    group = self.group[entry.group]
                    changed = {"optional": True} if entry.optional or group.optional else {}
                    for column in self.columns([*group.column]):
                        yield column.model_copy(update=changed | ({"doc": entry.doc} if entry.doc else {}))
                case _ColumnPerValue():
                    for value in PROBE.enum(entry.each).value:
                        if value.name not in entry.without:
                            type_keys = entry.model_dump(exclude={"each", "without", "name", "doc"})
                            yield RecordColumn(
                                name=entry.name.format(value.name), doc=entry.doc or value.doc, **type_keys
                            )
                case _:
                    yield entry


class RecordTable(Declaration):
    """A table: the meaning of a row, and the columns. `agent`: an agent writes it, not the coordinator of several."""

    name: str
    doc: str
    columns: list[RecordColumn]
    agent: bool


_FILE: Final = _RecordsToml.model_validate(tomllib.loads((files(__package__) / "records.toml").read_text()))

ABOUT: Final = _FILE.about
"""The text that applies to all tables."""
TABLES: Final = {
    table.name: RecordTable(name=table.name, doc=table.doc, columns=[*_FILE.columns(table.column)], agent=table.agent)
    for table in _FILE.tables
}
"""Every table by its name, in the order in which the agent counts them."""
SCHEMAS: Final[dict[str, Schema]] = {
    name: {column.name: POLARS[column.type] for column in table.columns} for name, table in TABLES.items()
}
"""The columns of each table as polars reads them from the file, where `stream` is a number."""


def group(name: str) -> list[RecordColumn]:
    """Return the columns of a group."""
    return [*_FILE.columns([_GroupUse(group=name)])]


def empty(name: str) -> pl.DataFrame:
    """Return the table without rows, for a run that did not write it."""
    return pl.DataFrame(schema=SCHEMAS[name])
