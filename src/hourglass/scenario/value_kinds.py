# SPDX-License-Identifier: Apache-2.0
"""Kinds of single values: for each its check, its written form, and its text for the reference and for editors. A check
that fails raises ValueError with the permitted values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from pydantic import GetJsonSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import CoreSchema

from hourglass.errors import closest
from hourglass.scenario.quantities import TIME, Bounds, parse_seconds, show

Schema = dict[str, Any]

LIST = PlainSerializer(list)
"""Tuples are dumped as lists, in every mode."""


@dataclass(frozen=True)
class ValueKind:
    """The written form, in words and as JSON Schema (empty: what pydantic makes of it), and the unit of the number
    behind it."""

    type: str
    unit: str = ""
    schema: Schema = field(default_factory=dict, compare=False)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return dict(self.schema) or handler(core)


Parts = tuple[PlainValidator, ValueKind]
QuantityParts = tuple[PlainValidator, PlainSerializer, ValueKind]


def sequence(value: object, noun: str) -> list[Any]:
    """Return the value if it is a list. Raises ValueError otherwise."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list of {noun}")
    return list(value)


def texts(value: object, noun: str) -> list[Any]:
    """Return the texts of a list, or of one text with commas, as in Flent."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return sequence(value, noun)


def list_of(items: Schema, **keywords: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **keywords}


def texts_schema(items: Schema) -> Schema:
    """Return the schema of a list that may be one text with commas."""
    return {"anyOf": [list_of(items), {"type": "string"}]}


def pattern(regex: str, allowed: str) -> Parts:
    """Text that matches the whole pattern."""
    compiled = re.compile(regex, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(f"must be {allowed}")
        return value

    return PlainValidator(check), ValueKind("text", schema={"type": "string", "pattern": f"^{regex}$"})


def one_of(
    names: tuple[str, ...], noun: str, absent: Mapping[str, str] = MappingProxyType({})
) -> Callable[[object], str]:
    """Return a check for one of the names, which suggests the nearest. `absent`: other names and their messages."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            hint = absent.get(value) if isinstance(value, str) else None
            raise ValueError(hint or f"{closest(value, names)}{noun} is one of {', '.join(names)}")
        return value

    return check


def choice(names: tuple[str, ...], noun: str, description: str = "") -> Parts:
    """One of the names. `description`: for the reference; default: all names."""
    quoted = [f'"{name}"' for name in names]
    description = description or " or ".join([", ".join(quoted[:-1]), quoted[-1]])
    return PlainValidator(one_of(names, noun)), ValueKind(description, schema={"enum": list(names)})


def integer(low: int, high: int, noun: str, unit: str = "") -> Parts:
    """A whole number in [low, high]."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number{f' of {noun}' if noun else ''} from {low} to {high}")
        return value

    return PlainValidator(check), ValueKind("integer", unit, {"type": "integer", "minimum": low, "maximum": high})


def zero_or(low: int, high: int, noun: str, unit: str = "") -> Parts:
    """0, or a whole number in [low, high]."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or (value and not low <= value <= high):
            raise ValueError(f"must be 0 or a whole number of {noun} from {low} to {high}")
        return value

    schema = {"anyOf": [{"const": 0}, {"type": "integer", "minimum": low, "maximum": high}]}
    return PlainValidator(check), ValueKind("integer", unit, schema)


def numbers(*allowed: int, unit: str = "") -> Parts:
    """One of a few whole numbers."""
    choices = f"{', '.join(map(str, allowed[:-1]))} or {allowed[-1]}"

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
            raise ValueError(f"must be {choices}{f' ({unit})' if unit else ''}")
        return value

    return PlainValidator(check), ValueKind(choices, unit, {"enum": list(allowed)})


def integer_or(word: str, low: int, high: int, allowed: str, unit: str = "") -> Parts:
    """A whole number in [low, high], or a word."""

    def check(value: object) -> int | str:
        if value == word or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
            return value
        raise ValueError(f"must be {allowed}")

    schema = {"anyOf": [{"type": "integer", "minimum": low, "maximum": high}, {"const": word}]}
    return PlainValidator(check), ValueKind(f'integer or "{word}"', unit, schema)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


SWITCH: Parts = PlainValidator(_switch), ValueKind("true or false", schema={"type": "boolean"})


def quantity(bounds: Bounds, description: str = "") -> QuantityParts:
    """A quantity within bounds. `description`: for the reference."""
    kind = bounds.quantity
    return (
        PlainValidator(bounds.parse),
        PlainSerializer(lambda number: show(number, kind), return_type=str),
        ValueKind(description or kind.called, kind.base, bounds.schema()),
    )


def both_ways(bounds: Bounds) -> QuantityParts:
    """One value for both directions of a link, or [a to b, b to a]."""
    kind = bounds.quantity

    def check(value: object) -> tuple[int, int]:
        values = list(value) if isinstance(value, list | tuple) else [value, value]
        try:
            first, second = (bounds.parse(value) for value in values)
        except ValueError:
            raise ValueError(f"must be {bounds.allowed()}; or a list of two, for the two directions") from None
        return first, second

    def write(pair: tuple[int, int]) -> str | list[str]:
        first, second = (show(number, kind) for number in pair)
        return first if first == second else [first, second]

    schema = {"anyOf": [bounds.schema(), list_of(bounds.schema(), minItems=2, maxItems=2)]}
    return (
        PlainValidator(check),
        PlainSerializer(write),
        ValueKind(f"{kind.called}, or [a to b, b to a]", kind.base, schema),
    )


def seconds(low: Fraction, high: Fraction, description: str = "number") -> Parts:
    """A number of seconds, or a time with its unit."""
    return PlainValidator(lambda value: parse_seconds(value, low, high)), ValueKind(
        description, "s", seconds_schema(low, high)
    )


def seconds_schema(low: Fraction, high: Fraction) -> Schema:
    """Return the schema of `seconds`."""
    return {"anyOf": [{"type": "number", "minimum": float(low), "maximum": float(high)}, TIME.schema()]}
