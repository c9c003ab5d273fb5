# SPDX-License-Identifier: Apache-2.0
"""Errors of the input as one clear line each: the dotted key, the value, what is allowed."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hourglass.errors import InputError, closest
from hourglass.scenario.stack import STACK_KEYS, NodeStack

_TABLES = ("model_type", "model_attributes_type", "dict_type")


class Abridged(str):
    """Text that stands for a value in a message, without quotes of its own."""

    def __repr__(self) -> str:
        return str(self)


def refusal(key: str, value: object, allowed: str) -> InputError:
    """The error for a value of any kind and size, shortened to fit a line."""
    return InputError(key, abridge(value), allowed)


def abridge(value: object) -> Abridged:
    """A short printable form of any value; never raises."""
    if isinstance(value, Abridged):
        return value
    short = reprlib.Repr()
    short.maxlevel, short.maxdict, short.maxlist, short.maxtuple = 3, 4, 4, 4
    short.maxstring = short.maxother = 80
    try:
        return Abridged(" ".join(short.repr(value).split()))
    except (ValueError, RecursionError):  # an int of thousands of digits
        return Abridged(f"<{type(value).__name__}>")


def dotted(parts: Sequence[object]) -> str:
    """The key as one writes it: testbed.link.0.rate."""
    texts = [str(part) for part in parts]
    return ".".join(text if text.isprintable() and len(text) <= 64 else abridge(text) for text in texts)


def several(names: Iterable[str]) -> str:
    """Names for a message, twenty at most."""
    listed = list(names)
    return ", ".join(listed[:20]) + (", …" if len(listed) > 20 else "")


def explain(error: ValidationError) -> InputError:
    """The first error, unknown keys before all: a misspelt key is also a missing one."""
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda one: one["type"] != "extra_forbidden")
    place = first["loc"]
    shown = tuple(part for part in place if part != "nodes") if place[:2] == ("stack", "nodes") else place
    kind, value = first["type"], first["input"]
    if kind == "extra_forbidden":
        return _unknown(place, shown, value)
    if kind == "missing":
        return refusal(dotted(shown), Abridged("(nothing)"), f"is missing. {_description(place)}")
    allowed = "a table" if kind in _TABLES else str(first["ctx"]["error"]) if kind == "value_error" else first["msg"]
    return refusal(dotted(shown) or "scenario", value, allowed)


def _unknown(place: tuple[Any, ...], shown: tuple[Any, ...], value: object) -> InputError:
    table = _model(place[:-1])
    names = STACK_KEYS if place[:-1] == ("stack",) else tuple(table.model_fields) if table else ()
    if place[:-1] == ("testbed",):
        names = ("preset", *names)
    hint = closest(place[-1], names)
    if table is NodeStack and isinstance(value, dict) and not hint:
        hint = f"What is a device's goes below {dotted((*shown[:-1], 'device', shown[-1]))}. "
    return refusal(dotted(shown), value, f"unknown key. {hint}Known here: {', '.join(names)}")


def _description(place: tuple[Any, ...]) -> str:
    table = _model(place[:-1])
    field = table.model_fields.get(str(place[-1])) if table else None
    return (field.description or "") if field else ""


def _model(place: Sequence[Any]) -> type[BaseModel] | None:
    """The model of the table at a place."""
    from hourglass.scenario.model import Scenario

    model: type[BaseModel] | None = Scenario
    for part in place:
        if isinstance(part, str) and model is not None and part in model.model_fields:
            model = table_of(model.model_fields[part].annotation)
    return model


def table_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as tuple[Link, ...] | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for one in get_args(annotation) if (found := table_of(one))), None)
