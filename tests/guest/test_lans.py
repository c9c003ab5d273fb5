# SPDX-License-Identifier: Apache-2.0
"""Switches: the cost of a hop, VLANs, the spanning tree compared with the plan's, access points as bridges."""

import random
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import runner
from hourglass.plan.network import Network
from hourglass.results.recording import Recording
from hourglass.scenario import load
from tests.plan.lan_bed import FAST, ON_A_STICK, bed

from .accounts import check_balances
from .conftest import KERNELS, Simulate, check_accounts, counters

pytestmark = pytest.mark.guest

FRAME = 14 + 20 + 8 + 56 + 24
"""The bytes of a ping on a line: headers, payload; FCS, preamble and gap."""
TAG = 4
FAR = {"delay": "1ms"}
"""So far that the answer does not come with the interrupt that completes the request, 72 us after it."""
SHOUT = """
import socket
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(5):
    client.sendto(b"hello", ("10.0.0.255", 9))
"""
BLOCKING = 4
"""BR_STATE_BLOCKING of include/uapi/linux/if_bridge.h."""


def pinged(simulate: Simulate, kernel: str, testbed: dict[str, Any], *overrides: str, **tables: Any) -> Recording:
    data = {"name": "lan", "testbed": testbed, "test": {"name": "ping", "length": 2}, **tables}
    return simulate(data, *overrides, kernel=kernel)


def rtts_ns(run: Recording) -> list[int]:
    """Return the times of the ICMP pings."""
    rows = run.ping_rows.filter((pl.col("stream") == "icmp") & pl.col("rtt_ns").is_not_null())
    return rows.sort("seq")["rtt_ns"].to_list()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_switch_costs_the_time_of_a_frame(simulate: Simulate, kernel: str) -> None:
    """A frame goes on when its last bit has come: each switch adds its length at the line's rate, each way."""
    direct = pinged(simulate, kernel, bed({}, ["client:eth0 server:eth0"]))
    links = ["client:eth0 s:a", "s:b t:a", "t:b server:eth0"]
    run = pinged(simulate, kernel, bed({"s": {}, "t": {}}, links))
    frame_ns = FRAME * 8
    assert {*rtts_ns(run)} == {rtt + 4 * frame_ns for rtt in rtts_ns(direct)}
    assert len(rtts_ns(run)) == len(rtts_ns(direct)) > 5
    check_accounts(run, packets=10)
    assert run.packets["node"].unique().sort().to_list() == ["client", "s", "t", "server"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_vlans_are_apart_and_a_router_joins_them(simulate: Simulate, kernel: str) -> None:
    """Frames of two VLANs meet only at the router, whose cable they pass twice with tags of 4 bytes."""
    links = [
        ("client:eth0 s:a", {"vlan": 10, **FAR}),
        "s:b t:a",
        ("t:b server:eth0", {"vlan": 20}),
        ("t:c gw:lan", {"vlan": [10, 20]}),
    ]
    run = pinged(simulate, kernel, bed({"s": {}, "t": {}}, links))
    (path,) = run.paths
    assert [hop.node for hop in path.there] == ["client", "s", "t", "gw", "t"]
    switches: dict[str, Any] = {"s": {}, "t": {}, "u": {}}
    links = [("client:eth0 s:a", FAR), "s:b t:a", "t:b gw:lan", "gw:wan u:a", "u:b server:eth0"]
    untagged = pinged(simulate, kernel, bed(switches, links))
    assert {*rtts_ns(run)} == {rtt + 2 * 3 * TAG * 8 for rtt in rtts_ns(untagged)}
    check_accounts(run, packets=10)


@pytest.mark.parametrize(("vlan", "heard"), [(1, 5), (2, 0)])
def test_a_broadcast_stays_in_its_vlan(simulate: Simulate, vlan: int, heard: int) -> None:
    links: list[Any] = ["client:eth0 s:a", "server:eth0 s:b", ("quiet:eth0 s:c", {"vlan": vlan})]
    program = {"node": "client", "start": 1, "command": ["python3", "-c", SHOUT]}
    run = pinged(simulate, "6.1", bed({"s": {}}, links), app=[program], apps={"packages": ["python3"]})
    assert counters(run, "quiet")["rx_frames"] == heard


def blocked_links(run: Recording) -> set[int]:
    """Return the links with a port that is blocked, as the kernel says."""
    scenario = run.scenario
    assert scenario is not None
    blocked = set()
    for link, row in enumerate(scenario.testbed.link):
        for end in row.ends:
            look = run.apps.get(f"look-{end.node}")
            if look and f"{end.device} {BLOCKING}" in look.stdout.splitlines():
                blocked.add(link)
    return blocked


def ring(chance: random.Random) -> dict[str, Any]:
    """Return random switches with redundant links, and two hosts."""
    count = chance.randint(3, 6)
    switches = {
        f"s{number}": {"stp": {"priority": chance.choice([4096, 32768, 32768]), **FAST}} for number in range(count)
    }
    pairs = [(chance.randrange(number), number) for number in range(1, count)]
    pairs += [(chance.randrange(count - 1), count - 1) for _ in range(chance.randint(1, 5))]
    links: list[Any] = []
    for index, (near, far) in enumerate(pairs):
        links.append(
            (f"s{near}:a{index} s{far}:b{index}", {"rate": chance.choice(["10mbit", "100mbit", "1gbit", "10gbit"])})
        )
    links += ["client:eth0 s0:c", f"server:eth0 s{count - 1}:d"]
    chance.shuffle(links)
    return bed(switches, links)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(3))
def test_the_plan_knows_the_spanning_tree(kernel: str, seed: int, tmp_path: Path) -> None:
    testbed = ring(random.Random(f"{kernel} {seed}"))
    look = "cd /sys/class/net; for port in */brport; do echo $(dirname $port) $(cat $port/state); done"
    programs = [
        {"node": name, "name": f"look-{name}", "command": ["sh", "-c", look]}
        for name in (node["name"] for node in testbed["node"] if node["role"] == "switch")
    ]
    data = {"kernel": kernel, "testbed": testbed, "test": {"name": "ping", "length": 1}, "app": programs}
    run = runner.run(load(data), tmp_path / "run")
    assert run.scenario is not None
    expected = Network(run.scenario.testbed).lans.blocked
    assert expected
    assert blocked_links(run) == expected


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cable_that_is_pulled_costs_two_delays(simulate: Simulate, kernel: str) -> None:
    """The switch that loses its way to the root has another port to it: this one listens, learns and forwards."""
    stp = {"forward_delay": "3s", "hello": "1s", "max_age": "6s"}
    switches = {f"s{number}": {"stp": {"priority": 4096 * number, **stp}} for number in (1, 2, 3)}
    links = ["client:eth0 s1:p", "server:eth0 s3:p", "s1:a s2:a", "s1:b s3:a", "s2:b s3:b"]
    pull = {"at": 2.05, "node": "s1", "device": "b", "cable": "pull"}
    run = pinged(simulate, kernel, bed(switches, links), "test.length=12", event=[pull])
    assert [hop.node for hop in run.paths[0].there] == ["client", "s1", "s3"]
    rows = run.ping_rows.filter(pl.col("stream") == "icmp").sort("t_ns")
    lost = rows.filter(pl.col("rtt_ns").is_null())["t_ns"] / 10**9
    answered = rows.filter(pl.col("rtt_ns").is_not_null())["t_ns"] / 10**9
    assert lost.min() > 2.05
    assert 8.05 < answered.filter(answered > 2.05).min() < 8.05 + 0.23
    assert run.packets.filter((pl.col("node") == "s2") & (pl.col("t_ns") < 8 * 10**9)).is_empty()
    assert not run.packets.filter(pl.col("node") == "s2").is_empty()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("version", [4, 6])
def test_an_access_point_is_a_bridge(simulate: Simulate, kernel: str, version: int) -> None:
    """A station has an address of the LAN, and its frames go on to a cable without a router."""
    cell = {"ap": "s:wlan0", "station": [{"at": "client:wlan0"}]}
    testbed = bed({"s": {}}, ["s:lan server:eth0"], wifi=[cell], ip=version)
    run = pinged(simulate, kernel, testbed, "test.name=tcp_upload", "test.delay=0.5")
    (path,) = run.paths
    assert [(hop.node, hop.medium) for hop in path.there] == [("client", "air"), ("s", "cable")]
    subnets = {ip_interface(str(text)).network for text in (path.there[0].address, path.there[-1].to_address)}
    assert len(subnets) == 1
    assert run.ping_rows.filter(pl.col("rtt_ns").is_null()).is_empty()
    check_accounts(run, packets=100)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_flood_is_copies_of_a_packet(simulate: Simulate, kernel: str) -> None:
    """A switch that does not know an address sends frames to all ports, until the server answers the next ping. The
    other hosts drop their copies."""
    links = ["client:eth0 s:a", "server:eth0 s:b", "one:eth0 s:c", "two:eth0 s:d"]
    forget = {"at": 1.05, "node": "s", "bridge": "fdb delete {server.eth0.mac} dev b master"}
    call = {"name": "call", "sender": "client", "receiver": "server", "rate": "8mbit", "size": 1000}
    test = {"name": "ping", "delay": 0.5, "length": 2, "datagrams": [call]}
    run = pinged(simulate, kernel, bed({"s": {}}, links), test=test, event=[forget])
    check_balances(run)
    copies = run.balance.group_by("stream").agg(pl.col("duplicated").sum())
    pinged_ms = run.ping_rows.filter(pl.col("t_ns") > 1.05 * 10**9)["t_ns"].min() / 10**6
    assert dict(copies.rows())["call"] == pytest.approx(2 * (pinged_ms - 1050), abs=4), "a datagram each ms"
    duplicates = run.drops.filter(pl.col("node").is_in(["one", "two"]) & pl.col("stream").is_not_null())
    assert duplicates["packets"].sum() == copies["duplicated"].sum()
    assert run.balance["unmatched"].sum() == 0
    sent = run.balance.filter(pl.col("stream") == "call")["sent"].sum()
    assert run.balance.filter(pl.col("stream") == "call")["delivered"].sum() == sent


def test_equal_packets_at_a_trunk_are_distinguished(simulate: Simulate) -> None:
    """Copies of a packet wait at a cable, while others enter the device of a VLAN above it."""
    changes = ["test.name=tcp_upload", "test.delay=0.5", "testbed.link.0.duplicate=30%", "testbed.link.2.rate=1mbit"]
    run = pinged(simulate, "6.1", bed({"s": {}}, ON_A_STICK), *changes)
    assert run.balance["duplicated"].sum() > 20
    assert run.balance["unmatched"].sum() == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_equal_acknowledgments_of_one_poll_are_distinguished(simulate: Simulate, kernel: str) -> None:
    """The router's stack has several, and forwards one after the other through two devices."""
    changes = ["test.name=tcp_upload", "test.delay=0.5", "testbed.link.0.loss=3%", "testbed.link.2.rx_usecs=5000"]
    run = pinged(simulate, kernel, bed({"s": {}}, ON_A_STICK), *changes, "testbed.link.2.rx_frames=0")
    assert run.balance["unmatched"].sum() == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_drop_below_a_vlan_counts_once(simulate: Simulate, kernel: str) -> None:
    """The kernel also counts it at the device of the VLAN."""
    slow = 'testbed.link.2.rate=["1mbit", "1gbit"]'
    changes = ["test.name=tcp_upload", "test.delay=0.5", "stack.gw.qdisc=pfifo limit 10", slow]
    drops = pinged(simulate, kernel, bed({"s": {}}, ON_A_STICK), *changes).summary.drops["gw"]
    assert drops["lan"].qdisc
    assert not any(drops["lan.20"].model_dump().values())
