# SPDX-License-Identifier: Apache-2.0
"""Plans as text, in golden/. After an intended change: UPDATE_GOLDEN=1 pytest tests/plan; then read the diff."""

import os
from pathlib import Path

import pytest

from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL, VETH
from .text import plan_text

GOLDEN = Path(__file__).parent / "golden"

CASES: dict[str, tuple[str, list[str]]] = {
    "L100M": ("L100M", []),
    "R100M": ("R100M", []),
    "LR1000M-fq": ("LR1000M", ["stack.qdisc=fq", "stack.client.tsq=3ms", "stack.gso=1ms", "stack.server.cc=bbr"]),
    "asymmetric": ("asymmetric", []),
    "mobile": ("mobile", []),
    "parking-lot": ("parking-lot", []),
    "wifi-ath9k": ("wifi-ath9k", ["testbed.netem.0.delay=10ms", "testbed.wifi.0.pacing_shift=10"]),
    "wifi-ath9k-htc": ("wifi-ath9k-htc", ["stack.qdisc=fq_codel", "testbed.wifi.0.error=1%"]),
    "wifi-ax": ("wifi-ax", ["testbed.wifi.0.others.mcs=0", "testbed.wifi.0.station.0.snr=25", "testbed.ip=6"]),
    "home": (
        "home",
        [
            'stack.router.device.wan={qdisc="cake bandwidth 19mbit", ingress="cake bandwidth 95mbit", mtu=1492}',
            'test.datagrams.1={rate=[[0, "1mbit"], [0.5, 0]], repeat=10, sender="server", receiver="laptop"}',
            'test.competing.0={client="phone", start=2, stop=9, rate="8mbit"}',
        ],
    ),
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
    compare(name, plan_text(build(load(source, changes), ALL)))


def test_plan_for_a_real_machine() -> None:
    compare("L100M-veth", plan_text(build(load("L100M"), VETH)))


def test_every_golden_file_has_a_test() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {*CASES, "L100M-veth"}
