# SPDX-License-Identifier: Apache-2.0
"""Queues are purged. Some qdiscs keep packets in a tree or store data in them, and overwrite their device (`skb->dev`).
Code that handles the end of such a packet must not read it. Found by tests/fuzz: the guest's kernel panicked."""

from typing import Any

import pytest

from hourglass import runner, scenario

from .accounts import check_balances
from .conftest import KERNELS, line

pytestmark = pytest.mark.guest

DOWN = [{"at": 0.5, "node": "client", "link": "down"}, {"at": 0.6, "node": "client", "link": "up"}]
REPLACED = [{"at": 0.5, "node": "client", "tc": "qdisc replace dev right root pfifo_fast"}]
TEST = {"name": "tcp_nup", "upload_streams": 8, "length": 0.8, "delay": 0.1}

LATE = {"testbed": {"preset": "wifi-ax"}, "seed": 46, "test": {"name": "cubic_bbr", "length": 0.893, "delay": 0.05}}
SHAKEN: dict[str, Any] = {
    "delay": ["41351ns", "11527ns"],
    "corrupt": ["15.2245766%", "30.0000000%"],
    "mtu": 2743,
}

SCENARIOS: dict[str, dict[str, Any]] = {
    "TCP, out of order": LATE
    | {"event": [{"at": 0.108, "node": "server", "device": "eth0", "set": SHAKEN, "every": 0.37, "count": 3}]},
    "fq, link down": {**line("10mbit", nodes=2), "stack": {"client": {"qdisc": "fq"}}, "test": TEST, "event": DOWN},
    "fq, replaced": {**line("10mbit", nodes=2), "stack": {"client": {"qdisc": "fq"}}, "test": TEST, "event": REPLACED},
    "netem, link down": {
        **line("10mbit", nodes=2), "stack": {"client": {"qdisc": "netem delay 50ms"}}, "test": TEST, "event": DOWN,
    },
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_purged_packets_are_dropped(name: str, kernel: str, tmp_path: Any) -> None:
    run = runner.run(scenario.load(SCENARIOS[name], kernel=kernel), tmp_path / "run")
    check_balances(run)
    assert run.info.warnings == []
