# SPDX-License-Identifier: Apache-2.0
"""The packet probe as `probe.toml` declares it: layers and other enumerations, structures with the place of each field.

A structure is laid out as C lays it out; `Struct.layout` refuses one in which C would leave a gap.
"""

import tomllib
from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Literal["u8", "u16", "u32", "u64", "s64", "char"]
WIDTHS: Final[dict[str, int]] = {"char": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "s64": 8}


class Declared(BaseModel):
    """A part of the declaration."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Value(Declared):
    """A value of an enumeration."""

    name: str
    doc: str = ""
    colour: str | None = None


class Enum(Declared):
    """An enumeration: its values are numbered from `first`."""

    name: str
    prefix: str
    first: int
    doc: str
    value: list[Value]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.value)


class Member(Declared):
    """A field of a structure."""

    name: str
    type: str
    count: int | str | None = None
    enum: str | None = None
    doc: str = ""


class Struct(Declared):
    """A structure; `follows` stands behind it as often as one of its fields says."""

    name: str
    doc: str
    field: list[Member]
    follows: Member | None = None


class Command(Declared):
    """A line written to the probe."""

    form: str
    doc: str


class Constant(Declared):
    name: str
    value: int
    doc: str


class Probe(Declared):
    """The whole declaration."""

    about: str
    command: list[Command]
    constant: list[Constant]
    enums: list[Enum] = Field(alias="enum")
    structs: list[Struct] = Field(alias="struct")

    def enum(self, name: str) -> Enum:
        return next(enum for enum in self.enums if enum.name == name)

    def struct(self, name: str) -> Struct:
        return next(struct for struct in self.structs if struct.name == name)

    def count(self, member: Member) -> int:
        """How many there are of a field: 1 where it is no array."""
        match member.count:
            case str(name):
                return len(self.enum(name).value)
            case count:
                return 1 if count is None else count

    def layout(self, struct: Struct) -> Iterator[tuple[Member, int]]:
        """The fields, each with its offset in bytes. Raises `ValueError` where C would leave a gap."""
        offset = 0
        for member in struct.field:
            if offset % self._alignment(member.type):
                raise ValueError(f"struct {struct.name}: a gap before {member.name}")
            yield member, offset
            offset += self._width(member.type) * self.count(member)
        if offset % max(self._alignment(member.type) for member in struct.field):
            raise ValueError(f"struct {struct.name}: a gap at its end")

    def size(self, struct: Struct) -> int:
        """Bytes of the structure, without what follows it."""
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
"""The layers, in the order in which a packet passes them at one node."""
LAYER_COLUMNS: Final = tuple(f"{layer}_ns" for layer in LAYERS)
"""The columns that the tables `packet` and `layer` have for them."""
LAYER_COLOURS: Final = {value.name: value.colour for value in PROBE.enum("layer").value if value.colour}
"""The layers that have a colour of their own in the report, as CSS."""
WAYS: Final = PROBE.enum("direction").names
TERMS: Final = PROBE.enum("term").names
