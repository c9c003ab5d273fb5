# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a scenario's file, for editors: names, types, units and defaults as users write them.

It is made from the models. Forms of the file that the models lack (a preset, nodes in `[stack]`, the short forms of a
trace) are added here. It accepts every scenario that `load` accepts, and more: it has no bounds of texts like "10ms"
and no rules across keys.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hourglass.scenario.load import presets
from hourglass.scenario.scenario_model import Scenario
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Untitled(GenerateJsonSchema):
    """Remove the titles of keys, which only repeat them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def scenario_schema() -> Schema:
    """Return the schema of a scenario's file."""
    schema = Scenario.model_json_schema(schema_generator=_Untitled)
    parts = schema["$defs"]
    _write_defaults(Scenario, schema["properties"])
    for table in TomlTable.__subclasses__():
        _write_defaults(table, parts.get(table.__name__, {}).get("properties", {}))
    _add_preset(parts["Testbed"])
    _add_nodes(parts["Stack"])
    _add_traces(parts)
    _add_both_directions(parts)
    about = {"$schema": DIALECT, "title": "Hourglass scenario"}
    return about | schema | {"title": "Hourglass scenario", "description": "A complete description of a run."}


def _write_defaults(table: type[TomlTable], properties: dict[str, Schema]) -> None:
    """Return defaults as users write them, without tables and empty values."""
    example = table.model_construct()
    for name, key in properties.items():
        if "default" in key:
            del key["default"]
            default = example.model_dump(mode="json", include={name}, warnings=False).get(name)
            if default is not None and default not in ("", [], {}) and not isinstance(default, dict):
                key["default"] = default


def _add_preset(testbed: Schema) -> None:
    """Allow a preset instead of nodes and links."""
    about = "The preset testbed. Without it, nodes and links are spelled out."
    testbed["properties"]["preset"] = {"enum": [name for name, _ in presets()], "description": about}
    del testbed["required"]
    testbed["anyOf"] = [{"required": ["preset"]}, {"required": ["node"]}]


def _add_nodes(stack: Schema) -> None:
    """Allow nodes as tables next to the keys of the stack."""
    stack["additionalProperties"] = stack["properties"].pop("nodes")["additionalProperties"]


def _add_traces(parts: dict[str, Schema]) -> None:
    """Allow a trace as steps, a file's name or a table, for both directions or each."""
    rate = parts["Trace"]["properties"]["rate"]
    steps = next(form for form in rate["anyOf"] if form["type"] == "array")
    forms_of_one = [steps, {"type": "string", "minLength": 1}, {"$ref": "#/$defs/Trace"}]
    for key in (parts["Link"]["properties"]["trace"], *parts["Traces"]["properties"].values()):
        forms = [*forms_of_one, *key["anyOf"]]
        key["anyOf"] = [form for index, form in enumerate(forms) if form not in forms[:index]]


def _add_both_directions(parts: dict[str, Schema]) -> None:
    """Allow a table of one direction for both."""
    for name, table in (("policer", "Policer"), ("shaper", "LinkShaper")):
        parts["Link"]["properties"][name]["anyOf"].insert(0, {"$ref": f"#/$defs/{table}"})
