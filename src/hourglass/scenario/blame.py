# SPDX-License-Identifier: Apache-2.0
"""Errors of the input as one clear line each: the dotted key, the value, what is allowed."""

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hourglass.errors import InputError, closest, written
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
    if value is None or isinstance(value, bool):
        return Abridged(written(value))
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


MISTAKES_SHOWN = 10
"""So many of one input are told together."""


def explain(error: ValidationError, data: object) -> InputError:
    """The mistakes in the order of the data, without those that follow from others: a misspelt key is also a missing
    one."""
    errors = error.errors(include_url=False)
    misspelt = {one["loc"][:-1] for one in errors if one["type"] == "extra_forbidden"}
    told: dict[object, InputError] = {}
    for one in sorted(errors, key=lambda one: _order(data, one["loc"])):
        if one["type"] != "missing" or one["loc"][:-1] not in misspelt:
            missing = one["loc"] if one["type"] == "missing" else None
            told.setdefault((_order(data, one["loc"], written=True), one["msg"], missing), _explain(one))
    return together(list(told.values()))


def together(mistakes: Sequence[InputError]) -> InputError:
    """One error for all mistakes of an input."""
    first, *others = mistakes[:MISTAKES_SHOWN]
    return InputError(first.key, first.value, first.allowed, others)


def _order(data: object, place: tuple[Any, ...], written: bool = False) -> tuple[int, ...]:
    """Where the data have a place: the number of each part among its neighbours; what is missing is at the end. With
    `written`, as far as it is there: what is written once for two directions is one mistake."""
    order: list[int] = []
    for part in place:
        if isinstance(data, dict) and part in data:
            order.append(list(data).index(part))
            data = data[part]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            order.append(part)
            data = data[part]
        elif part != "nodes" and (not written or isinstance(data, dict)):
            order.append(len(data) if isinstance(data, dict | list) else 0)
            data = None
    return tuple(order)


def _explain(first: Any) -> InputError:
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
    hint = _elsewhere(place[-1]) or closest(place[-1], names)
    if table is NodeStack and isinstance(value, dict) and not hint:
        hint = f"What is a device's goes below {dotted((*shown[:-1], 'device', shown[-1]))}. "
    return refusal(dotted(shown), value, f"unknown key. {hint}Known here: {', '.join(names)}")


def _elsewhere(name: str) -> str:
    """'Did you mean test.length? ' of a key that other tables have; the two nearest to the top."""
    from hourglass.scenario.model import Scenario

    found = sorted(_places(Scenario, ()), key=len)
    named = [dotted(place) for place in found if place[-1] == name][:2]
    return f"Did you mean {' or '.join(named)}? " if named else ""


def _places(table: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every key below a table; an item of a list is N."""
    for name, field in table.model_fields.items():
        if field.exclude:
            continue
        yield (*above, name)
        if (below := table_of(field.annotation)) is not None:
            several = "tuple" in str(field.annotation)
            yield from _places(below, (*above, name, *(["N"] if several else [])))


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
