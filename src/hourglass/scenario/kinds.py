# SPDX-License-Identifier: Apache-2.0
"""What single values are made of: for each kind its check, how it is written back, what the reference and an editor
are told of it. A check that fails raises ValueError: what is allowed.
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
from hourglass.scenario.units import TIME, Bounds, parse_seconds, show

Schema = dict[str, Any]

LIST = PlainSerializer(list)
"""Tuples are dumped as lists, in every mode."""


@dataclass(frozen=True)
class Kind:
    """What one writes, in words and as JSON Schema (empty: what pydantic makes of it), and the unit of the number
    behind it."""

    type: str
    unit: str = ""
    schema: Schema = field(default_factory=dict, compare=False)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return dict(self.schema) or handler(core)


Parts = tuple[PlainValidator, Kind]
WrittenParts = tuple[PlainValidator, PlainSerializer, Kind]


def sequence(value: object, what: str) -> list[Any]:
    """The value if it is a list, else ValueError."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"a list of {what}")
    return list(value)


def words(value: object, what: str) -> list[Any]:
    """A list, or one text with commas as Flent takes it."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return sequence(value, what)


def list_of(items: Schema, **further: Any) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items, **further}


def words_of(items: Schema) -> Schema:
    """The schema of a list that may be one text with commas."""
    return {"anyOf": [list_of(items), {"type": "string"}]}


def pattern(regex: str, allowed: str) -> Parts:
    """Text that matches the whole pattern."""
    compiled = re.compile(regex, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(allowed)
        return value

    return PlainValidator(check), Kind("text", schema={"type": "string", "pattern": f"^{regex}$"})


def one_of(
    names: tuple[str, ...], what: str, absent: Mapping[str, str] = MappingProxyType({})
) -> Callable[[object], str]:
    """A check for one of the names, that suggests the nearest. `absent`: others, and what is to be said of them."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            known = absent.get(value) if isinstance(value, str) else None
            raise ValueError(known or f"{closest(value, names)}{what} is one of {', '.join(names)}")
        return value

    return check


def choice(names: tuple[str, ...], what: str, shown: str = "") -> Parts:
    """One of the names. `shown`: to the reference, else all of them."""
    quoted = [f'"{name}"' for name in names]
    shown = shown or " or ".join([", ".join(quoted[:-1]), quoted[-1]])
    return PlainValidator(one_of(names, what)), Kind(shown, schema={"enum": list(names)})


def integer(low: int, high: int, what: str, unit: str = "") -> Parts:
    """A whole number in [low, high]."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number{f' of {what}' if what else ''} from {low} to {high}")
        return value

    return PlainValidator(check), Kind("integer", unit, {"type": "integer", "minimum": low, "maximum": high})


def zero_or(low: int, high: int, what: str, unit: str = "") -> Parts:
    """0, or a whole number in [low, high]."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or (value and not low <= value <= high):
            raise ValueError(f"0 or a whole number of {what} from {low} to {high}")
        return value

    schema = {"anyOf": [{"const": 0}, {"type": "integer", "minimum": low, "maximum": high}]}
    return PlainValidator(check), Kind("integer", unit, schema)


def numbers(*allowed: int, unit: str = "") -> Parts:
    """One of a few whole numbers."""
    shown = f"{', '.join(map(str, allowed[:-1]))} or {allowed[-1]}"

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
            raise ValueError(f"{shown}{f' ({unit})' if unit else ''}")
        return value

    return PlainValidator(check), Kind(shown, unit, {"enum": list(allowed)})


def integer_or(word: str, low: int, high: int, allowed: str, unit: str = "") -> Parts:
    """A whole number in [low, high], or a word."""

    def check(value: object) -> int | str:
        if value == word or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
            return value
        raise ValueError(allowed)

    schema = {"anyOf": [{"type": "integer", "minimum": low, "maximum": high}, {"const": word}]}
    return PlainValidator(check), Kind(f'integer or "{word}"', unit, schema)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


SWITCH: Parts = PlainValidator(_switch), Kind("true or false", schema={"type": "boolean"})


def quantity(bounds: Bounds, shown: str = "") -> WrittenParts:
    """A quantity within bounds. `shown`: to the reference."""
    kind = bounds.quantity
    return (
        PlainValidator(bounds.parse),
        PlainSerializer(lambda number: show(number, kind), return_type=str),
        Kind(shown or kind.called, kind.base, bounds.schema()),
    )


def both_ways(bounds: Bounds) -> WrittenParts:
    """One value for both directions of a link, or [a to b, b to a]."""
    kind = bounds.quantity

    def check(value: object) -> tuple[int, int]:
        values = list(value) if isinstance(value, list | tuple) else [value, value]
        try:
            there, back = (bounds.parse(one) for one in values)
        except ValueError:
            raise ValueError(f"{bounds.allowed()}; or a list of two, for the two directions") from None
        return there, back

    def write(pair: tuple[int, int]) -> str | list[str]:
        there, back = (show(number, kind) for number in pair)
        return there if there == back else [there, back]

    schema = {"anyOf": [bounds.schema(), list_of(bounds.schema(), minItems=2, maxItems=2)]}
    return PlainValidator(check), PlainSerializer(write), Kind(f"{kind.called}, or [a to b, b to a]", kind.base, schema)


def seconds(low: Fraction, high: Fraction, shown: str = "number") -> Parts:
    """A number of seconds, or a time with its unit."""
    return PlainValidator(lambda value: parse_seconds(value, low, high)), Kind(shown, "s", seconds_schema(low, high))


def seconds_schema(low: Fraction, high: Fraction) -> Schema:
    """The schema of `seconds`."""
    return {"anyOf": [{"type": "number", "minimum": float(low), "maximum": float(high)}, TIME.schema()]}
