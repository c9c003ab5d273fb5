# SPDX-License-Identifier: Apache-2.0
"""The tables of a run as `records.toml` declares them: columns with their types and meaning, groups spelled out."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final, Literal

import polars as pl
from polars.datatypes import DataType, DataTypeClass
from pydantic import Field

from hourglass.contract.probe import PROBE, Declared

Type = Literal["bool", "u8", "u16", "u32", "u64", "i64", "text"]
Schema = dict[str, "DataType | DataTypeClass"]

POLARS: Final[dict[Type, DataTypeClass]] = {
    "bool": pl.Boolean, "u8": pl.UInt8, "u16": pl.UInt16, "u32": pl.UInt32, "u64": pl.UInt64, "i64": pl.Int64,
    "text": pl.String,
}  # fmt: skip


class Column(Declared):
    """One column. `values` is the enumeration of `probe.toml` that its texts are of, `bits` the width of a bit field
    of the kernel's structure; one that is `late` is not even in the file of a kernel that does not fill it."""

    name: str
    type: Type
    optional: bool = False
    values: str | None = None
    bits: int | None = None
    late: bool = False
    doc: str = ""


class _Each(Column):
    """A column for each value of an enumeration."""

    each: str
    without: list[str] = Field(default_factory=list)


class _Use(Declared):
    """The columns of a group."""

    group: str
    optional: bool = False
    doc: str = ""


class _Group(Declared):
    optional: bool = False
    column: list[Column | _Each]


class _Table(Declared):
    name: str
    doc: str
    agent: bool = True
    column: list[Column | _Each | _Use]


class _File(Declared):
    about: str
    group: dict[str, _Group]
    tables: list[_Table] = Field(alias="table")

    def columns(self, declared: list[Column | _Each | _Use]) -> Iterator[Column]:
        for one in declared:
            match one:
                case _Use():
                    group = self.group[one.group]
                    changed = {"optional": True} if one.optional or group.optional else {}
                    for column in self.columns([*group.column]):
                        yield column.model_copy(update=changed | ({"doc": one.doc} if one.doc else {}))
                case _Each():
                    for value in PROBE.enum(one.each).value:
                        if value.name not in one.without:
                            rest = one.model_dump(exclude={"each", "without", "name", "doc"})
                            yield Column(name=one.name.format(value.name), doc=one.doc or value.doc, **rest)
                case _:
                    yield one


class Table(Declared):
    """A table: what a row of it is, and its columns; whether an agent writes it, or who conducts several."""

    name: str
    doc: str
    columns: list[Column]
    agent: bool


_FILE: Final = _File.model_validate(tomllib.loads((files(__package__) / "records.toml").read_text()))

ABOUT: Final = _FILE.about
"""What holds of all tables."""
TABLES: Final = {
    table.name: Table(name=table.name, doc=table.doc, columns=[*_FILE.columns(table.column)], agent=table.agent)
    for table in _FILE.tables
}
"""Every table by its name, in the order in which the agent counts them."""
SCHEMAS: Final[dict[str, Schema]] = {
    name: {column.name: POLARS[column.type] for column in table.columns} for name, table in TABLES.items()
}
"""The columns of each table as polars reads them from the file: `stream` is a number there."""


def group(name: str) -> list[Column]:
    """The columns of a group."""
    return [*_FILE.columns([_Use(group=name)])]


def empty(name: str) -> pl.DataFrame:
    """The table without rows, as of a run that did not write it."""
    return pl.DataFrame(schema=SCHEMAS[name])
