# SPDX-License-Identifier: Apache-2.0
"""LANs that change during a test, or that a test passes in several ways."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import runner
from hourglass.contract.kernels import DEFAULT
from hourglass.results.recording import Recording
from hourglass.scenario import load
from tests.plan.lan_bed import FAST, LINKS, ON_A_STICK, ONE_SWITCH, bed

from .accounts import check_balances
from .conftest import KERNELS, Simulate

pytestmark = pytest.mark.guest

CELL: dict[str, Any] = {"ap": "s:wlan0", "station": [{"at": "client:wlan0"}]}


def run_of(simulate: Simulate, kernel: str, testbed: dict[str, Any], length: float, **tables: Any) -> Recording:
    test = {"name": "ping", "length": length} | tables.pop("test", {})
    return simulate({"name": "lan", "testbed": testbed, "test": test, **tables}, kernel=kernel)


def lost(run: Recording) -> list[int]:
    """Return the numbers of the pings, one each 0.2 s, that had no reply."""
    rows = run.ping_rows.filter((pl.col("stream") == "icmp") & pl.col("rtt_ns").is_null())
    return rows["seq"].sort().to_list()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("keys", [{}, {"vlan": 1}])
def test_a_bridged_access_point_that_restarts_is_a_port_again(
    simulate: Simulate, kernel: str, keys: dict[str, Any]
) -> None:
    restart = {"at": 1, "node": "s", "ap": "restart"}
    run = run_of(simulate, kernel, bed(ONE_SWITCH, [("s:b server:eth0", keys)], wifi=[CELL]), 4, event=[restart])
    assert {*lost(run)} <= {5, 6, 7}, "those of the time without an access point"


@pytest.mark.parametrize("version", [4, 6])
def test_a_trunk_that_comes_up_again_has_its_addresses_and_routes(simulate: Simulate, version: int) -> None:
    events = [{"at": at, "node": "gw", "device": "lan", "link": state} for at, state in ((1, "down"), (2, "up"))]
    links = [*ON_A_STICK[:2], (ON_A_STICK[2][0], {"vlan": [10, 20], "link_up": 0})]
    run = run_of(simulate, DEFAULT, bed(ONE_SWITCH, links, ip=version), 4, event=events)
    assert lost(run) == [5, 6, 7, 8, 9]


def test_a_switch_that_is_off_forwards_nothing(tmp_path: Path) -> None:
    """Its devices lose their carriers, and with them packets that no counter has. Then they negotiate for 2 s. The
    kernel announces a carrier within 1 s."""
    events = [{"at": at, "node": "s", "power": state} for at, state in ((1, "off"), (2, "on"))]
    data = {"testbed": bed(ONE_SWITCH, LINKS), "test": {"name": "ping", "length": 6}, "event": events}
    run = runner.run(load(data), tmp_path / "run")
    check_balances(run)
    assert {*range(5, 20)} <= {*lost(run)} <= {*range(5, 26)}


@pytest.mark.parametrize("version", [4, 6])
def test_packets_arrive_at_the_device_of_their_address(simulate: Simulate, version: int) -> None:
    """Both ends have two devices in the LAN; the server's second device is the first link's."""
    count = "cd /sys/class/net; cat eth0/statistics/rx_packets eth1/statistics/rx_packets"
    program = {"node": "server", "name": "count", "start": 1.9, "command": ["sh", "-c", count]}
    links = ["server:eth1 s:d", *LINKS, "client:eth1 s:c"]
    run = run_of(simulate, DEFAULT, bed(ONE_SWITCH, links, ip=version), 2, app=[program])
    assert run.paths[0].there[-1].to_device == "eth1"
    other, right = (int(line.split()[-1]) for line in run.apps["count"].stdout.splitlines())
    assert other < 20 < right, "broadcasts, and the packets of the neighbours' discovery"


def test_the_set_up_waits_until_all_ports_of_the_test_forward(simulate: Simulate) -> None:
    links = ["client:eth0 gw:a", "gw:b server:eth0", "h:eth0 s:a", "s:b g:eth0", "s:c gw:c"]
    competing = [{"client": "h", "server": "g"}]
    run = run_of(simulate, DEFAULT, bed({"s": {"stp": FAST}}, links), 1, test={"competing": competing})
    assert {"h", "s", "g"} <= {*run.packets["node"].unique()}


def test_a_new_mtu_is_that_of_the_vlans(simulate: Simulate) -> None:
    program = {"node": "gw", "name": "look", "start": 0.6, "command": ["cat", "/sys/class/net/lan.20/mtu"]}
    change = {"at": 0.5, "node": "gw", "device": "lan", "set": {"mtu": 3000}}
    run = run_of(simulate, DEFAULT, bed(ONE_SWITCH, ON_A_STICK), 1, event=[change], app=[program])
    assert run.apps["look"].stdout.split()[-1] == "3000"


def test_sixty_hosts_share_a_switch(simulate: Simulate) -> None:
    links = [*LINKS, *(f"h{number}:eth0 s:p{number}" for number in range(60))]
    assert lost(run_of(simulate, DEFAULT, bed(ONE_SWITCH, links), 1)) == []
