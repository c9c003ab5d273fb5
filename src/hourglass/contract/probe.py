# SPDX-License-Identifier: Apache-2.0
"""Reads `probe.toml`, the declaration of the packet probe: enumerations (such as the layers) and structures.

Structures have the layout of C. `Probe.layout` refuses a structure in which C would leave a gap.
"""

import tomllib
from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Literal["u8", "u16", "u32", "u64", "s64", "char"]
WIDTHS: Final[dict[str, int]] = {"char": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "s64": 8}


class Declaration(BaseModel):
    """A part of the declaration."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Value(Declaration):
    """A value of an enumeration."""

    name: str
    doc: str = ""
    colour: str | None = None


class Enum(Declaration):
    """An enumeration: its values are numbered from `first`."""

    name: str
    prefix: str
    first: int
    doc: str
    value: list[Value]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.value)


class StructField(Declaration):
    """A field of a structure."""

    name: str
    type: str
    count: int | str | None = None
    enum: str | None = None
    doc: str = ""


class Struct(Declaration):
    """A structure. An array of `follows` comes after it; one of its fields is the length."""

    name: str
    doc: str
    field: list[StructField]
    follows: StructField | None = None


class ProbeCommand(Declaration):
    """A line written to the probe."""

    form: str
    doc: str


class Constant(Declaration):
    name: str
    value: int
    doc: str


class Probe(Declaration):
    """The whole declaration."""

    about: str
    command: list[ProbeCommand]
    constant: list[Constant]
    enums: list[Enum] = Field(alias="enum")
    structs: list[Struct] = Field(alias="struct")

    def enum(self, name: str) -> Enum:
        return next(enum for enum in self.enums if enum.name == name)

    def struct(self, name: str) -> Struct:
        return next(struct for struct in self.structs if struct.name == name)

    def count(self, member: StructField) -> int:
        """Return the length of an array field; 1 for other fields."""
        match member.count:
            case str(name):
                return len(self.enum(name).value)
            case count:
                return 1 if count is None else count

    def layout(self, struct: Struct) -> Iterator[tuple[StructField, int]]:
        """Yield the fields, each with its offset in bytes. Raises `ValueError` if C would leave a gap."""
        offset = 0
        for member in struct.field:
            if offset % self._alignment(member.type):
                raise ValueError(f"struct {struct.name}: a gap before {member.name}")
            yield member, offset
            offset += self._width(member.type) * self.count(member)
        if offset % max(self._alignment(member.type) for member in struct.field):
            raise ValueError(f"struct {struct.name}: a gap at its end")

    def size(self, struct: Struct) -> int:
        """Return the size of the structure in bytes, without the array after it."""
        member, offset = list(self.layout(struct))[-1]
        return offset + self._width(member.type) * self.count(member)

    def _width(self, kind: str) -> int:
        return WIDTHS[kind] if kind in WIDTHS else self.size(self.struct(kind))

    def _alignment(self, kind: str) -> int:
        if kind in WIDTHS:
            return WIDTHS[kind]
        return max(self._alignment(member.type) for member in self.struct(kind).field)


PROBE: Final = Probe.model_validate(tomllib.loads((files(__package__) / "probe.toml").read_text()))

LAYERS: Final = PROBE.enum("layer").names
"""The layers, in the order in which a packet passes them at a node."""
LAYER_COLUMNS: Final = tuple(f"{layer}_ns" for layer in LAYERS)
"""Their columns in the tables `packet` and `layer`."""
LAYER_COLOURS: Final = {value.name: value.colour for value in PROBE.enum("layer").value if value.colour}
"""The CSS colours of the layers in the report."""
DIRECTIONS: Final = PROBE.enum("direction").names
TSQ_TERMS: Final = PROBE.enum("term").names
