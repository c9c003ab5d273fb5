# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas for editors: accept all shipped files and resolved scenarios, refuse mistakes."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hourglass import schema
from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario import builtin, load
from hourglass.schema.__main__ import PACKAGE, main

PAPERS = Path(__file__).parents[2] / "papers/studies"
SCENARIO, STUDY = (schema.SCHEMAS[f"{kind}.schema.json"]() for kind in ("scenario", "study"))


def complaints(schema: dict[str, Any], data: object) -> list[str]:
    errors = Draft202012Validator(schema).iter_errors(data)
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors]


@pytest.mark.parametrize("schema", [SCENARIO, STUDY], ids=["scenario", "study"])
def test_the_schema_is_valid(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        *((SCENARIO, file) for folder in (SCENARIOS, PRESETS) for file in sorted(folder.glob("*.toml"))),
        *((STUDY, file) for file in sorted((SCENARIOS / "studies").glob("*.toml"))),
        *((STUDY, file) for file in sorted(PAPERS.glob("*.toml"))),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_every_shipped_file_is_valid_and_names_its_schema(schema: dict[str, Any], file: Path) -> None:
    text = file.read_text("utf-8")
    assert complaints(schema, tomllib.loads(text)) == []
    schema_path = next(line for line in text.splitlines() if line.startswith("#:schema ")).split()[1]
    name = "scenario" if schema is SCENARIO else "study"
    assert (file.resolve().parent / schema_path).resolve() == PACKAGE.resolve() / f"{name}.schema.json"


def test_the_program_writes_the_schemas(tmp_path: Path) -> None:
    main([str(tmp_path / "schemas")])
    contents = {path.name: json.loads(path.read_text("utf-8")) for path in (tmp_path / "schemas").iterdir()}
    assert contents == {name: make() for name, make in schema.SCHEMAS.items()}


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_a_resolved_scenario_is_valid(name: str) -> None:
    assert complaints(SCENARIO, json.loads(load(name).to_json())) == []


def test_every_key_has_a_type_and_a_description() -> None:
    tables = {name: part for name, part in SCENARIO["$defs"].items() if "properties" in part}
    keys = {
        f"{name}.{key}": properties for name, part in tables.items() for key, properties in part["properties"].items()
    }
    assert [
        name for name, properties in keys.items() if not {"type", "enum", "anyOf", "const", "$ref"} & properties.keys()
    ] == []
    assert [
        name for name, properties in keys.items() if "description" not in properties and "$ref" not in properties
    ] == []


@pytest.mark.parametrize(
    "change",
    [
        {"stakc": {}},
        {"stack": {"tqs": "off"}},
        {"stack": {"tsq": "3m"}},
        {"stack": {"cc": "cubci"}},
        {"stack": {"qdisc": "fifo"}},
        {"stack": {"client": {"pacing": {"sss": 1}}}},
        {"testbed": {"preset": "L200M"}},
        {"testbed": {"ip": 4}},
        {"testbed": {"node": [{"name": "a"}], "link": [{"ends": ["a:b"]}]}},
        {"testbed": {"node": [{"name": "a"}], "link": [{"ends": ["a:b", "c:d"], "rate": "100 mbit"}]}},
        {"testbed": {"node": [{"name": "a"}], "link": [{"ends": ["a:b", "c:d"], "trace": [[1]]}]}},
        {"testbed": {"node": [{"name": "a"}], "link": [{"ends": ["a:b", "c:d"], "loss": {"burst": 5}}]}},
        {"test": {"name": "tcp_nupp"}},
        {"test": {"upload_streams": 0}},
        {"measure": {"packets": "some"}},
    ],
    ids=str,
)
def test_a_mistake_in_a_scenario_is_refused(change: dict[str, Any]) -> None:
    good = {"testbed": {"preset": "L100M"}}
    assert complaints(SCENARIO, good) == []
    assert complaints(SCENARIO, good | change)


SETTINGS = [
    "stack.tsq", "stack.client.tsq", "testbed.link.0.delay", "testbed.preset", "stack.pacing.ca",
    "stack.sysctl.net.ipv4.tcp_ecn", "stack.client.sysctl.net.ipv4.tcp_ecn", "testbed.wifi.0.station.1.mcs",
    "testbed.link.0.loss", "testbed.link.0.loss.burst",
]  # fmt: skip
VALUES = ["off", "3ms", "10ms", "L100M", 120, 1, 2, 7, {"model": "gilbert-elliott", "rate": "1%", "burst": 2.5}, 2]


def test_every_form_of_a_key_can_be_set_and_be_an_axis() -> None:
    settings = dict(zip(SETTINGS, VALUES, strict=True))
    nested = {"stack": {"tsq": ["off", "3ms"]}}
    for form in (
        {"set": settings, "axes": {"seed": {"from": 1, "to": 9}}},
        {"axes": {key: [value] for key, value in settings.items()}},
        {"axes": nested, "exclude": [{"stack.tsq": "off"}]},
        {"axes": {"scenario": ["L100M", "R100M"]}, "zip": [{"testbed.link.0.delay": ["1ms", "2ms"], "seed": [1, 2]}]},
    ):
        assert complaints(STUDY, {"scenario": "L100M"} | form) == []


@pytest.mark.parametrize(
    "change",
    [
        {"axis": {}},
        {"axes": {"stack.tqs": ["off"]}},
        {"axes": {"stack.tsq": ["3m"]}},
        {"axes": {"stack.tsq": "off"}},
        {"axes": {"seed": {"from": 1}}},
        {"set": {"testbed.link.x.delay": "1ms"}},
        {"set": {"testbed.link.0.delay": "1 ms"}},
        {"zip": {"seed": [1]}},
        {"seeds": 0},
        {"seeds": {"range": "1-5", "until": "tomorrow"}},
        {"figure": [{"name": "goodput", "bound": ">= 1mbit"}]},
        {"scenario": {"stakc": {}}},
    ],
    ids=str,
)
def test_a_mistake_in_a_study_is_refused(change: dict[str, Any]) -> None:
    good = {"scenario": "L100M", "axes": {"stack.tsq": ["off"]}}
    assert complaints(STUDY, good) == []
    assert complaints(STUDY, good | change)
