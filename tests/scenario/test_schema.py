# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas for editors: up to date, accept all shipped files and resolved scenarios, refuse mistakes."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hourglass import schema
from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario import builtin, load

FOLDER = Path(schema.__file__).parent
SCENARIO, SWEEP = (json.loads((FOLDER / f"{kind}.schema.json").read_text("utf-8")) for kind in ("scenario", "sweep"))


def complaints(of: dict[str, Any], data: object) -> list[str]:
    found = Draft202012Validator(of).iter_errors(data)
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in found]


@pytest.mark.parametrize("of", [SCENARIO, SWEEP], ids=["scenario", "sweep"])
def test_it_is_a_schema(of: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(of)


@pytest.mark.parametrize(
    ("of", "file"),
    [
        *((SCENARIO, file) for folder in (SCENARIOS, PRESETS) for file in sorted(folder.glob("*.toml"))),
        *((SWEEP, file) for file in sorted((SCENARIOS / "papers").glob("*.toml"))),
    ],
    ids=lambda one: one.stem if isinstance(one, Path) else "",
)
def test_every_shipped_file_is_valid_and_says_where_its_schema_is(of: dict[str, Any], file: Path) -> None:
    text = file.read_text("utf-8")
    assert complaints(of, tomllib.loads(text)) == []
    named = next(line for line in text.splitlines() if line.startswith("#:schema ")).split()[1]
    checkout = Path(__file__).parents[2] / "scenarios"
    there = checkout / file.resolve().relative_to(SCENARIOS.resolve())
    assert json.loads((there.parent / named).read_text("utf-8")) == of


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_a_resolved_scenario_is_valid(name: str) -> None:
    assert complaints(SCENARIO, json.loads(load(name).to_json())) == []


def test_every_key_has_a_type_and_a_description() -> None:
    tables = {name: part for name, part in SCENARIO["$defs"].items() if "properties" in part}
    keys = {f"{name}.{key}": one for name, part in tables.items() for key, one in part["properties"].items()}
    assert [name for name, one in keys.items() if not {"type", "enum", "anyOf", "const", "$ref"} & one.keys()] == []
    assert [name for name, one in keys.items() if "description" not in one and "$ref" not in one] == []


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
        assert complaints(SWEEP, {"scenario": "L100M"} | form) == []


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
        {"repetitions": 0},
        {"scenario": {"stakc": {}}},
    ],
    ids=str,
)
def test_a_mistake_in_a_sweep_is_refused(change: dict[str, Any]) -> None:
    good = {"scenario": "L100M", "axes": {"stack.tsq": ["off"]}}
    assert complaints(SWEEP, good) == []
    assert complaints(SWEEP, good | change)
