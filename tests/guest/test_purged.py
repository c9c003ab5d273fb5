# SPDX-License-Identifier: Apache-2.0
"""Queues are purged. Some qdiscs keep packets in a tree or store data in them, and overwrite their device (`skb->dev`).
Code that handles the end of such a packet must not read it. Found by tests/fuzz: the guest's kernel panicked."""

from typing import Any

import polars as pl
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


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("preset", ["wifi-ath9k", "wifi-ax"])
def test_frames_that_wait_at_a_radio_that_goes_down_are_dropped_there(preset: str, kernel: str, tmp_path: Any) -> None:
    """The access point needs 1 ms for each of 1,000 datagrams, and goes down after 0.6 s."""
    flood = {"name": "flood", "size": 100, "rate": "1.6mbit", "start": 0, "stop": 0.5}
    source = {
        "testbed": {"preset": preset},
        "test": {"name": "ping", "length": 1, "delay": 0.2, "datagrams": [flood]},
        "event": [{"at": 0.6, "node": "ap", "ip": "link set dev wlan0 down"}],
    }
    run = runner.run(scenario.load(source, ["testbed.node.1.cpu.received=1ms"], kernel=kernel), tmp_path / "run")
    check_balances(run)
    dropped = run.drops.filter(stream="flood", node="ap", device="wlan0", place="rx", reason="down")["packets"].sum()
    assert dropped > 350
    last = run.balance.filter(pl.col("t_ns") == pl.col("t_ns").max())
    waiting = run.queues.filter(node="client", device="wlan0").sort("t_ns").tail(1).select("txq_packets", "ring_skbs")
    assert last["in_flight"].sum() == sum(waiting.row(0)), "the client goes on sending"
