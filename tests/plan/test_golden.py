# SPDX-License-Identifier: Apache-2.0
"""Plans as text, in golden/. After a wanted change: UPDATE_GOLDEN=1 pytest tests/plan; then read the diff."""

import os
from pathlib import Path

import pytest

from hourglass.plan import build
from hourglass.scenario import load

from .text import plan_text

GOLDEN = Path(__file__).parent / "golden"

CASES: dict[str, tuple[str, list[str]]] = {
    "L100M": ("L100M", []),
    "R100M": ("R100M", []),
    "LR1000M-fq": ("LR1000M", ["stack.qdisc=fq", "stack.client.tsq=3ms", "stack.gso=1ms", "stack.server.cc=bbr"]),
    "asymmetric": ("asymmetric", []),
    "mobile": ("mobile", []),
    "parking-lot": ("parking-lot", []),
    "nic": ("LR1000M", ["testbed.link.0.tx_ring=256", "testbed.link.0.rx_usecs=0", "testbed.link.0.tso=false"]),
}


def compare(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", CASES)
def test_plan(name: str) -> None:
    source, changes = CASES[name]
    compare(name, plan_text(build(load(source, changes))))


def test_plan_for_a_real_machine() -> None:
    compare("L100M-veth", plan_text(build(load("L100M"), links="veth")))


def test_there_is_no_golden_file_without_a_test() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {*CASES, "L100M-veth"}
