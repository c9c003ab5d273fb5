# SPDX-License-Identifier: Apache-2.0
"""The fuzz itself: no key is forgotten, each drawn scenario is valid, and a smaller finding still fails."""

import os
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hourglass import plan, scenario
from hourglass.engine.virtual import Virtual
from hourglass.scenario.toml_text import toml_text
from hourglass.studies.shrink import shrunk

from . import judge
from .__main__ import verdict
from .draw import draw, refused
from .values import LEFT_OUT, LIMITS, SCHEMA, TEXTS, Scope, keys, resolved, value

SCOPE = Scope(["client", "server"], {"client": ["eth0"], "server": ["eth0"]})


def test_every_key_has_a_value() -> None:
    """A new key whose schema does not say enough needs a line in `TEXTS`, or a reason in `LEFT_OUT`."""
    for key, schema in keys():
        for number in range(20):
            value(schema, key, random.Random(number), SCOPE)


def test_patterns_of_keys_match_existing_keys() -> None:
    def all_keys(schema: dict[str, object], path: str) -> list[str]:
        names = []
        for key, schema_ in resolved(schema).get("properties", {}).items():
            inner = f"{path}.{key}" if path else key
            names.append(inner)
            for part in [schema_, *schema_.get("anyOf", [])]:
                inner_schema = resolved(part)
                names += all_keys(inner_schema, inner) + all_keys(resolved(inner_schema.get("items", {})), f"{inner}[]")
                names += all_keys(resolved(inner_schema.get("additionalProperties") or {}), f"{inner}.*")
            additional = resolved(schema_).get("additionalProperties")
            if isinstance(additional, dict):
                names += all_keys(additional, f"{inner}.*")
        return names

    existing = all_keys(SCHEMA, "")
    existing += all_keys({"$ref": "#/$defs/NodeStack"}, "stack.*")
    for pattern in [*TEXTS, *LIMITS, *map(re.escape, LEFT_OUT)]:
        assert any(re.fullmatch(pattern, key) for key in existing), pattern


@pytest.mark.parametrize("number", range(30))
def test_a_drawn_scenario_is_valid_and_short(number: int) -> None:
    data = draw(f"test {number}", "6.1")
    assert draw(f"test {number}", "6.1") == data
    plan.build(scenario.load(data), Virtual.capabilities)
    assert scenario.load(tomllib.loads(toml_text(data))) == scenario.load(data)
    assert data["test"]["length"] <= 1


def test_a_shrunk_finding_still_fails() -> None:
    data = next(case for case in (draw(f"test {number}", "6.1") for number in range(100)) if case.get("event"))
    smaller = shrunk(
        data, lambda cases: [bool(case.get("event")) for case in cases], valid=lambda case: refused(case) is None,
        tries=500,
    )  # fmt: skip
    assert refused(smaller) is None
    assert set(smaller) <= {"testbed", "test", "event"}
    assert len(smaller["event"]) == 1


def test_a_finding_keeps_its_kind() -> None:
    assert judge.kind("counts do not agree: accounts.py: 12 == 13") == judge.kind(
        "counts do not agree: accounts.py: 4 == 5"
    )
    assert judge.kind("the guest failed: the guest kernel panicked") != judge.kind("the second run has other bytes")


def test_findings_decide_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict({"0": None, "1": "refused: stack.qdisc"}) == 0
    assert verdict({"0": None, "1": "the guest failed: it hung"}) == 1
    assert "2 scenarios, 0 refused by a tool, 1 findings\n  1: the guest failed" in capsys.readouterr().out


@pytest.mark.guest
def test_the_command_makes_its_runs(tmp_path: Path) -> None:
    """`make fuzz`, of one scenario, whose runs another process makes [a process of the pool could not import it]."""
    top = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.fuzz", "-n", "1", "--seed", "test", "--kernels", "6.1", "-j", "1"]
    path = os.pathsep.join([str(top), str(top / "src")])
    result = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, text=True, capture_output=True, check=False
    )
    assert (result.returncode, result.stdout.strip()) == (0, "1 scenarios, 0 refused by a tool, 0 findings"), (
        result.stderr
    )
    assert (tmp_path / "runs/fuzz/test.done").read_text() == '["0", null]\n'
