# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a study's file, for editors. Every key of a scenario can be set or be an axis, by its dotted name
or in tables."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from hourglass.scenario.schema import DIALECT, scenario_schema
from hourglass.scenario.stack import STACK_KEYS
from hourglass.scenario.value_kinds import Schema, list_of
from hourglass.studies.axes import RANGE_ORDER
from hourglass.studies.file import StudyFile
from hourglass.studies.grid import BASE, ENGINE

ITEM, SYSCTL = "[0-9]+", ".+"
NODE = rf"(?!({'|'.join(STACK_KEYS)})(\.|$))[A-Za-z][A-Za-z0-9_-]{{0,31}}"
"""The patterns of a dotted key for an item of a list, a sysctl, a node."""

_TEXT = {"type": "string", "minLength": 1}
_BASE = {"anyOf": [_TEXT, {"$ref": "#/$defs/Scenario"}]}
_RANGE = {
    "type": "object",
    "properties": {key: {"type": "string" if key == "unit" else "number"} for key in RANGE_ORDER},
    "required": ["from", "to"],
    "additionalProperties": False,
}
_COLUMN = {"description": "The column of the compared axis.", "anyOf": [
    {"type": "string", "pattern": "\\{.+\\}"}, {"type": "array", "contains": {"type": "string", "pattern": "\\{.+\\}"}},
]}  # fmt: skip
_SEEDS = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, _TEXT, {"$ref": "#/$defs/Seeds"}]}


def study_schema() -> Schema:
    """Return the schema of a study's file."""
    scenario = scenario_schema()
    definitions = scenario.pop("$defs")
    del scenario["$schema"]
    definitions |= {"Scenario": scenario, "Range": _RANGE, "Base": _BASE, "Column": _COLUMN}
    keys = list(_keys("Scenario", definitions, ""))
    engines = list_of(_TEXT, minItems=1)
    grid: dict[str, Schema] = {
        "set": _table(keys, lambda value: {"anyOf": [value, {"$ref": "#/$defs/Column"}]}),
        "axes": _table(keys, _axis, {BASE: list_of({"$ref": "#/$defs/Base"}, minItems=1), ENGINE: engines}),
    }
    definitions |= {"Set": grid["set"], "Axes": grid["axes"]}
    definitions["Rule"] = _table(keys, lambda value: True, {BASE: True, ENGINE: True})
    study: dict[str, Any] = StudyFile.model_json_schema()
    models = study.pop("$defs")
    assert not models.keys() & definitions.keys()
    for table in (study, models["PartTable"]):
        for key, form in (("scenario", {"$ref": "#/$defs/Base"}), ("set", {"$ref": "#/$defs/Set"}),
                          ("axes", {"$ref": "#/$defs/Axes"}), ("zip", list_of({"$ref": "#/$defs/Axes"})),
                          ("exclude", list_of({"$ref": "#/$defs/Rule"})), ("seeds", _SEEDS)):  # fmt: skip
            table["properties"][key] = {**form, "description": table["properties"][key]["description"]}
    return {"$schema": DIALECT, **study, "title": "Hourglass study", "$defs": definitions | models}


def _axis(value: Schema) -> Schema:
    return {"anyOf": [list_of(value, minItems=1), {"$ref": "#/$defs/Range"}]}


def _table(keys: list[tuple[str, str]], form: Callable[[Schema], Schema | bool], extra: Schema | None = None) -> Schema:
    """Return the schema of dotted keys: `form` makes that of each value. Tables of tables are not checked."""
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
        "properties": plain | nested | (extra or {}),
        "patternProperties": patterns,
        "additionalProperties": False,
    }


def _keys(table: str, parts: dict[str, Schema], before: str) -> Iterator[tuple[str, str]]:
    """Yield (dotted key as a regular expression, pointer to its schema) of a table and of all tables in it."""
    for name, key in parts[table]["properties"].items():
        path, pointer = f"{before}{re.escape(name)}", f"#/$defs/{table}/properties/{name}"
        yield path, pointer
        if inner := _name(key):
            yield from _keys(inner, parts, f"{path}\\.")
        if inner := _name(key.get("items", {})):
            yield f"{path}\\.{ITEM}", f"{pointer}/items"
            yield from _keys(inner, parts, f"{path}\\.{ITEM}\\.")
        if name == "device" and "additionalProperties" in key:
            yield f"{path}\\.{NODE}", f"{pointer}/additionalProperties"
            yield from _keys(_name(key["additionalProperties"]), parts, f"{path}\\.{NODE}\\.")
        if name == "sysctl":
            yield f"{path}\\.{SYSCTL}", f"{pointer}/additionalProperties"
    if nodes := _name(parts[table].get("additionalProperties") or {}):
        yield f"{before}{NODE}", f"#/$defs/{nodes}"
        yield from _keys(nodes, parts, f"{before}{NODE}\\.")


def _name(key: Schema) -> str:
    """Return the table that a key is, or may be; "" if it is none."""
    names = [form["$ref"].rsplit("/", 1)[1] for form in (key, *key.get("anyOf", ())) if "$ref" in form]
    return names[-1] if names else ""
