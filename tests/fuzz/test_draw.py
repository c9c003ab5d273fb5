# SPDX-License-Identifier: Apache-2.0
"""The fuzz itself: no key is forgotten, whatever is drawn is valid, less of a finding is still one."""

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

from . import judge
from .__main__ import verdict
from .case import toml
from .draw import draw, refused
from .shrink import shrunk
from .values import LEFT_OUT, LIMITS, SCHEMA, TEXTS, Room, keys, resolved, value

ROOM = Room(["client", "server"], {"client": ["eth0"], "server": ["eth0"]})


def test_every_key_has_a_value() -> None:
    """A new key whose schema does not say enough needs a line in `TEXTS`, or a reason in `LEFT_OUT`."""
    for key, schema in keys():
        for number in range(20):
            value(schema, key, random.Random(number), ROOM)


def test_what_is_said_of_keys_is_of_keys_there_are() -> None:
    def all_keys(schema: dict[str, object], path: str) -> list[str]:
        found = []
        for key, one in resolved(schema).get("properties", {}).items():
            inner = f"{path}.{key}" if path else key
            found.append(inner)
            for part in [one, *one.get("anyOf", [])]:
                whole = resolved(part)
                found += all_keys(whole, inner) + all_keys(resolved(whole.get("items", {})), f"{inner}[]")
                found += all_keys(resolved(whole.get("additionalProperties") or {}), f"{inner}.*")
            more = resolved(one).get("additionalProperties")
            if isinstance(more, dict):
                found += all_keys(more, f"{inner}.*")
        return found

    there = all_keys(SCHEMA, "")
    there += all_keys({"$ref": "#/$defs/NodeStack"}, "stack.*")
    for pattern in [*TEXTS, *LIMITS, *map(re.escape, LEFT_OUT)]:
        assert any(re.fullmatch(pattern, key) for key in there), pattern


@pytest.mark.parametrize("number", range(30))
def test_what_is_drawn_is_valid_and_short(number: int) -> None:
    data = draw(f"test {number}", "6.1")
    assert draw(f"test {number}", "6.1") == data
    plan.build(scenario.load(data), Virtual.capabilities)
    assert scenario.load(tomllib.loads(toml(data))) == scenario.load(data)
    assert data["test"]["length"] <= 1


def test_less_of_a_finding_is_still_one() -> None:
    data = next(one for one in (draw(f"test {number}", "6.1") for number in range(100)) if one.get("event"))
    less = shrunk(data, lambda one: bool(one.get("event")), tries=500)
    assert refused(less) is None
    assert set(less) <= {"testbed", "test", "event"}
    assert len(less["event"]) == 1


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
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "1 scenarios, 0 refused by a tool, 0 findings"), done.stderr
    assert (tmp_path / "runs/fuzz/test.done").read_text() == '["0", null]\n'
