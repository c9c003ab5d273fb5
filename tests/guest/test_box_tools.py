# SPDX-License-Identifier: Apache-2.0
"""The examples of scenarios/box/ in one guest. Each shows its effect. A second run, next to a process that keeps the
machine busy, has the same bytes."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hourglass.resources import SCENARIOS

from .test_box import BOX

pytestmark = [pytest.mark.guest, pytest.mark.slow]

PACKAGES = ("bird2", "frr", "keepalived", "python3", "wireguard-tools")
EXAMPLES = {
    "ospf": "sh bird.sh ospf",
    "bgp": "sh bird.sh bgp",
    "frr": "sh frr.sh ospf",
    "vrrp": "sh vrrp.sh",
    "wireguard": "sh wireguard_mesh.sh",
    "kathara": "python3 kathara.py kathara pc1 ping -c 4 -q 200.1.1.7",
}
"""The command of each example. The tutorial has the same."""

SCRIPT = "\n".join(f"echo == {name}; {command}; ip -all netns delete" for name, command in EXAMPLES.items())


@contextmanager
def busy_machine() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            yield
        finally:
            burner.kill()


def run() -> dict[str, Any]:
    packages = [word for name in PACKAGES for word in ("--package", name)]
    command = [*BOX, *packages, "--json", "--", "sh", "-c", SCRIPT]
    report: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=SCENARIOS / "box", capture_output=True, check=False).stdout
    )
    return report


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run()


@pytest.fixture(scope="module")
def outputs(report: dict[str, Any]) -> dict[str, str]:
    """Return the output of each example."""
    parts = re.split(r"^== (\w+)\n", report["stdout"], flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def number(text: str, pattern: str) -> float:
    (match,) = re.findall(pattern, text)
    return float(match)


def test_a_silent_cut_lasts_for_the_dead_interval_of_ospf(outputs: dict[str, str]) -> None:
    """A hello comes each second, and the neighbour is dead 4 s after the last, of BIRD and of FRR. BIRD computes its
    routes once a second."""
    for example in ("ospf", "frr"):
        assert 3000 < number(outputs[example], r"ospf: (\d+) ms") < 5050
        assert "ospf: now to-r3" in outputs[example]


def test_a_silent_cut_lasts_for_the_hold_time_of_bgp(outputs: dict[str, str]) -> None:
    assert 2000 < number(outputs["bgp"], r"bgp: (\d+) ms") < 3050
    assert "bgp: now to-r3" in outputs["bgp"]


def test_a_second_gateway_takes_over_after_three_advertisements(outputs: dict[str, str]) -> None:
    """It waits 3.609 s from the last advertisement, which came up to 1 s before the cut."""
    assert 2609 < number(outputs["vrrp"], r"vrrp: (\d+) ms") < 3650
    assert outputs["vrrp"].splitlines()[-1] == "192.0.2.254"


def test_each_peer_of_a_wireguard_mesh_reaches_each(outputs: dict[str, str]) -> None:
    """A peer delays what it sends by 10 ms times its number."""
    lines = re.findall(r"(\d) to (\d): ([\d.]+) ms", outputs["wireguard"])
    assert len(lines) == 4 * 3
    assert all(float(rtt_ms) == pytest.approx(10 * (int(a) + int(b)), abs=0.01) for a, b, rtt_ms in lines)


def test_a_lab_of_kathara_runs(outputs: dict[str, str]) -> None:
    assert "4 received" in outputs["kathara"]


def test_the_tutorial_quotes_the_outputs(outputs: dict[str, str]) -> None:
    page = (SCENARIOS.resolve().parent / "docs/tutorials/namespace-tools.md").read_text()
    (block,) = re.findall(r"In one guest they print:\n\n```text\n(.*?)```", page, re.DOTALL)
    printed = "".join(outputs.values()).splitlines()
    assert [line for line in block.splitlines() if line not in {*printed, "…"}] == []


def test_a_second_run_has_the_same_bytes_on_a_busy_machine(report: dict[str, Any]) -> None:
    with busy_machine():
        repeated = run()
    assert (repeated["digest"], repeated["stdout"]) == (report["digest"], report["stdout"])
    assert report["exit"] == 0
