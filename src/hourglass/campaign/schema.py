# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a sweep's file, for editors: every key of a scenario can be set or be an axis, under its dotted
name or in tables."""

import re
from collections.abc import Callable, Iterator

from hourglass.campaign.expand import RANGE_ORDER
from hourglass.campaign.file import BASE, KEYS
from hourglass.scenario.kinds import Schema, list_of
from hourglass.scenario.schema import DIALECT, scenario_schema
from hourglass.scenario.stack import STACK_KEYS

ITEM, SYSCTL = "[0-9]+", ".+"
NODE = rf"(?!({'|'.join(STACK_KEYS)})(\.|$))[A-Za-z][A-Za-z0-9_-]{{0,31}}"
"""What stands in a dotted key for an item of a list, a sysctl, a node."""

_TEXT = {"type": "string", "minLength": 1}
_BASE = {"anyOf": [_TEXT, {"$ref": "#/$defs/Scenario"}]}
_RANGE = {
    "type": "object",
    "properties": {word: {"type": "string" if word == "unit" else "number"} for word in RANGE_ORDER},
    "required": ["from", "to"],
    "additionalProperties": False,
}
_LABELS = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}}


def sweep_schema() -> Schema:
    """The schema of a sweep's file."""
    scenario = scenario_schema()
    parts = scenario.pop("$defs")
    del scenario["$schema"]
    parts |= {"Scenario": scenario, "Range": _RANGE, "Base": _BASE}
    keys = list(_keys("Scenario", parts, ""))
    parts["Set"] = _table(keys, lambda value: value)
    parts["Axes"] = _table(keys, _axis, {BASE: list_of({"$ref": "#/$defs/Base"}, minItems=1)})
    parts["Rule"] = _table(keys, lambda value: True, {BASE: True})
    properties = {
        "name": _TEXT | {"description": "Names the sweep and its folder; default: the file's name."},
        "description": {"type": "string", "description": "One line."},
        "scenario": _BASE | {"description": "The base: a built-in's name, a file beside this one, or a table."},
        "set": _part("Set", "Keys of the scenario that are the same in all runs."),
        "axes": _part("Axes", "Lists or ranges; all are crossed, the first varies slowest."),
        "zip": list_of({"$ref": "#/$defs/Axes"}, description="Keys that go forward together."),
        "exclude": list_of({"$ref": "#/$defs/Rule"}, description="Left out: what agrees with all keys of one."),
        "repetitions": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "So many seeds, from 1."},
        "labels": _LABELS | {"description": "By key: value = what to call it in the table and the pictures."},
    }
    assert set(properties) == set(KEYS)
    return {
        "$schema": DIALECT,
        "title": "Hourglass sweep",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": parts,
    }


def _part(name: str, description: str) -> Schema:
    return {"$ref": f"#/$defs/{name}", "description": description}


def _axis(value: Schema) -> Schema:
    return {"anyOf": [list_of(value, minItems=1), {"$ref": "#/$defs/Range"}]}


def _table(
    keys: list[tuple[str, str]], form: Callable[[Schema], Schema | bool], further: Schema | None = None
) -> Schema:
    """Dotted keys, each with what `form` makes of its value. In tables of tables, anything."""
    plain, patterns, tables = {}, {}, set()
    for key, pointer in keys:
        if any(word in key for word in (NODE, ITEM, SYSCTL)):
            patterns[f"^{key}$"] = form({"$ref": pointer})
        else:
            plain[key.replace("\\.", ".")] = form({"$ref": pointer})
            tables.add(key.split("\\.")[0])
    nested = {name: {"type": "object"} for name in sorted(tables) if any(key.startswith(f"{name}.") for key in plain)}
    return {
        "type": "object",
        "properties": plain | nested | (further or {}),
        "patternProperties": patterns,
        "additionalProperties": False,
    }


def _keys(table: str, parts: dict[str, Schema], before: str) -> Iterator[tuple[str, str]]:
    """(dotted key as a regular expression, pointer to its schema) of a table and of all tables in it."""
    for name, key in parts[table]["properties"].items():
        place, pointer = f"{before}{re.escape(name)}", f"#/$defs/{table}/properties/{name}"
        yield place, pointer
        if inner := _name(key):
            yield from _keys(inner, parts, f"{place}\\.")
        if inner := _name(key.get("items", {})):
            yield f"{place}\\.{ITEM}", f"{pointer}/items"
            yield from _keys(inner, parts, f"{place}\\.{ITEM}\\.")
        if name == "sysctl":
            yield f"{place}\\.{SYSCTL}", f"{pointer}/additionalProperties"
    if nodes := _name(parts[table].get("additionalProperties") or {}):
        yield f"{before}{NODE}", f"#/$defs/{nodes}"
        yield from _keys(nodes, parts, f"{before}{NODE}\\.")


def _name(key: Schema) -> str:
    """The table that a key is, or may be; "" of none."""
    found = [one["$ref"].rsplit("/", 1)[1] for one in (key, *key.get("anyOf", ())) if "$ref" in one]
    return found[-1] if found else ""
