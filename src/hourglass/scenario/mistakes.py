# SPDX-License-Identifier: Apache-2.0
"""Explain the mistakes that pydantic finds in a scenario, each with its key, its value and what is allowed."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hourglass.errors import InputError, closest
from hourglass.scenario.blame import Abridged, dotted, refusal, together
from hourglass.scenario.scenario_model import Scenario
from hourglass.scenario.stack import STACK_KEYS, NodeStack

_TABLES = ("model_type", "model_attributes_type", "dict_type")


def explain(error: ValidationError, data: object) -> InputError:
    """Return the mistakes in the order of the data. Mistakes that follow from others are left out: a misspelt key is
    also a missing one."""
    errors = error.errors(include_url=False)
    misspelt = {mistake["loc"][:-1] for mistake in errors if mistake["type"] == "extra_forbidden"}
    by_position: dict[object, InputError] = {}
    for mistake in sorted(errors, key=lambda mistake: _order(data, mistake["loc"])):
        if mistake["type"] != "missing" or mistake["loc"][:-1] not in misspelt:
            missing = mistake["loc"] if mistake["type"] == "missing" else None
            by_position.setdefault(
                (_order(data, mistake["loc"], written=True), mistake["msg"], missing), _explain(mistake)
            )
    return together(list(by_position.values()))


def _order(data: object, location: tuple[Any, ...], written: bool = False) -> tuple[int, ...]:
    """Return the position of a key in the data: the number of each part among its neighbours; a missing part is at
    the end. With `written`, the position ends at the first missing part: a value for two directions is one mistake."""
    order: list[int] = []
    for part in location:
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
    location = first["loc"]
    shown_key = tuple(part for part in location if part != "nodes") if location[:2] == ("stack", "nodes") else location
    kind, value = first["type"], first["input"]
    if kind == "extra_forbidden":
        return _unknown(location, shown_key, value)
    if kind == "missing":
        return refusal(dotted(shown_key), Abridged("(nothing)"), f"is missing. {_description(location)}")
    allowed = "a table" if kind in _TABLES else str(first["ctx"]["error"]) if kind == "value_error" else first["msg"]
    return refusal(dotted(shown_key) or "scenario", value, allowed)


def _unknown(location: tuple[Any, ...], shown_key: tuple[Any, ...], value: object) -> InputError:
    table = _model(location[:-1])
    names = STACK_KEYS if location[:-1] == ("stack",) else tuple(table.model_fields) if table else ()
    if location[:-1] == ("testbed",):
        names = ("preset", *names)
    hint = _elsewhere(location[-1]) or closest(location[-1], names)
    if table is NodeStack and isinstance(value, dict) and not hint:
        hint = f"Settings of a device belong below {dotted((*shown_key[:-1], 'device', shown_key[-1]))}. "
    return refusal(dotted(shown_key), value, f"unknown key. {hint}Known here: {', '.join(names)}")


def _elsewhere(name: str) -> str:
    """Return 'Did you mean test.length? ' for a key of other tables; at most two, nearest to the top."""
    keys = sorted(_keys(Scenario, ()), key=len)
    candidates = [dotted(key) for key in keys if key[-1] == name][:2]
    return f"Did you mean {' or '.join(candidates)}? " if candidates else ""


def _keys(table: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every key below a table; an item of a list is N."""
    for name, field in table.model_fields.items():
        if field.exclude:
            continue
        yield (*above, name)
        if (below := table_of(field.annotation)) is not None:
            is_list = "tuple" in str(field.annotation)
            yield from _keys(below, (*above, name, *(["N"] if is_list else [])))


def _description(location: tuple[Any, ...]) -> str:
    table = _model(location[:-1])
    field = table.model_fields.get(str(location[-1])) if table else None
    return (field.description or "") if field else ""


def _model(location: Sequence[Any]) -> type[BaseModel] | None:
    """Return the model of the table at a location."""
    model: type[BaseModel] | None = Scenario
    for part in location:
        if isinstance(part, str) and model is not None and part in model.model_fields:
            model = table_of(model.model_fields[part].annotation)
    return model


def table_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside an annotation such as tuple[Link, ...] | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((table for argument in get_args(annotation) if (table := table_of(argument))), None)
