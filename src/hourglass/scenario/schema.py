# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a scenario's file, for editors: names, types, units and defaults as one writes them.

Made from the models; what a file may hold beside them (a preset, nodes in `[stack]`, the short forms of a trace) is
added here. It accepts whatever `load` accepts, but not the other way round: it knows no bounds of texts like "10ms",
and nothing of how keys fit each other.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hourglass.scenario.kinds import Schema
from hourglass.scenario.load import presets
from hourglass.scenario.model import Scenario
from hourglass.scenario.table import Table

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Untitled(GenerateJsonSchema):
    """Without the titles of keys, which only repeat them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def scenario_schema() -> Schema:
    """The schema of a scenario's file."""
    schema = Scenario.model_json_schema(schema_generator=_Untitled)
    parts = schema["$defs"]
    _write_defaults(Scenario, schema["properties"])
    for table in Table.__subclasses__():
        _write_defaults(table, parts.get(table.__name__, {}).get("properties", {}))
    _add_preset(parts["Testbed"])
    _add_nodes(parts["Stack"])
    _add_traces(parts)
    _add_ways(parts)
    about = {"$schema": DIALECT, "title": "Hourglass scenario"}
    return about | schema | {"title": "Hourglass scenario", "description": "A run, fully described."}


def _write_defaults(table: type[Table], properties: dict[str, Schema]) -> None:
    """As one would write them; none of what is a table or empty."""
    example = table.model_construct()
    for name, key in properties.items():
        if "default" in key:
            del key["default"]
            default = example.model_dump(mode="json", include={name}, warnings=False).get(name)
            if default is not None and default not in ("", [], {}) and not isinstance(default, dict):
                key["default"] = default


def _add_preset(testbed: Schema) -> None:
    """A preset stands for nodes and links."""
    about = "The preset that the testbed is; without one, nodes and links are spelled out."
    testbed["properties"]["preset"] = {"enum": [name for name, _ in presets()], "description": about}
    del testbed["required"]
    testbed["anyOf"] = [{"required": ["preset"]}, {"required": ["node"]}]


def _add_nodes(stack: Schema) -> None:
    """Tables that are no keys of the stack are nodes."""
    stack["additionalProperties"] = stack["properties"].pop("nodes")["additionalProperties"]


def _add_traces(parts: dict[str, Schema]) -> None:
    """A trace is steps, a file's name or a table; one for both directions or one each."""
    rate = parts["Trace"]["properties"]["rate"]
    steps = next(form for form in rate["anyOf"] if form["type"] == "array")
    either = [steps, {"type": "string", "minLength": 1}, {"$ref": "#/$defs/Trace"}]
    for key in (parts["Link"]["properties"]["trace"], *parts["Traces"]["properties"].values()):
        forms = [*either, *key["anyOf"]]
        key["anyOf"] = [form for place, form in enumerate(forms) if form not in forms[:place]]


def _add_ways(parts: dict[str, Schema]) -> None:
    """What is of one direction may be written once, for both."""
    for name, table in (("policer", "Policer"), ("shaper", "LinkShaper")):
        parts["Link"]["properties"][name]["anyOf"].insert(0, {"$ref": f"#/$defs/{table}"})
