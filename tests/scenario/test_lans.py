# SPDX-License-Identifier: Apache-2.0
"""Mistakes with switches and VLANs: each is one line with the key, the value and what is allowed."""

import re
from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load
from tests.plan.able import ALL, REAL
from tests.plan.lan_bed import LINKS, ONE_SWITCH, STP, bed

PING = {"name": "ping"}
TRUNK = [LINKS[0], ("s:b gw:lan", {"vlan": [1, 20]}), "gw:wan server:eth0"]
MIXED = {"s": STP, "u": STP, "v": {}}
SWITCH = "is a switch, which has no address; give a host or a router"
PAIR = ["10.1.0.1/24", "10.1.0.2/24"]
VLAN = "must be a VLAN, 1 to 4094, or for a trunk a list of different ones, like [10, 20]"


def at_a(**keys: Any) -> dict[str, Any]:
    """Return a switch between client and server, with keys of the client's link."""
    return bed(ONE_SWITCH, [(LINKS[0], keys), LINKS[1]])


def app(text: str) -> dict[str, Any]:
    return {"app": [{"command": ["echo", text], "node": "client"}]}


def event(**keys: Any) -> dict[str, Any]:
    return {"event": [{"at": 1, "node": "s"} | keys]}


CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (bed(ONE_SWITCH, LINKS), {"test": PING | {"client": "s"}}, f"test.client = 's': {SWITCH}"),
    (bed(ONE_SWITCH, LINKS), {"test": PING | {"server": "s"}}, f"test.server = 's': {SWITCH}"),
    (bed(ONE_SWITCH, LINKS), {"test": {"name": "rtt_fair", "hosts": ["s", "server"]}}, f"test.hosts = 's': {SWITCH}"),
    (
        bed(ONE_SWITCH, LINKS), {"test": PING | {"competing": [{"client": "s"}]}},
        f"test.competing.0.client = 's': {SWITCH}",
    ),
    (bed(ONE_SWITCH, LINKS), app("{s.address}"), "app.0.command = '{s.address}': s is a switch, which has no address"),
    (bed(ONE_SWITCH, LINKS), app("{s.a}"), "app.0.command = '{s.a}': s is a switch, which has no address"),
    (
        bed(ONE_SWITCH, TRUNK), app("{gw.lan}"),
        "app.0.command = '{gw.lan}': is a trunk with an address for each VLAN; {gw.address} is the one that this node"
        " reaches",
    ),
    (
        {"node": [{"name": "client", "stp": {}}, {"name": "server"}], "link": [{"ends": ["client:a", "server:a"]}]}, {},
        "testbed.node.0.stp = '{…}': needs a switch; give client role = \"switch\"",
    ),
    (
        bed({"s": {"stp": {"hello": "10s", "max_age": "6s"}}}, LINKS), {},
        "testbed.node.1.stp = {'hello': '10s', 'max_age': '6s'}: max_age must be at least 22s, twice the sum of hello"
        " and 1s",
    ),
    (
        bed({"s": {"stp": {"hello": "1.5001s"}}}, LINKS), {},
        "testbed.node.1.stp.hello = '1.5001s': must be a time in whole hundredths of a second, the kernel's unit",
    ),
    (
        bed({}, [("client:eth0 server:eth0", {"vlan": 3})]), {},
        "testbed.link.0.vlan = 3: needs an end at a switch (role = \"switch\")",
    ),
    (at_a(vlan=4095), {}, f"testbed.link.0.vlan = 4095: {VLAN}"),
    (at_a(vlan=[]), {}, f"testbed.link.0.vlan = []: {VLAN}"),
    (at_a(vlan=[1, 1]), {}, f"testbed.link.0.vlan = [1, 1]: {VLAN}"),
    (at_a(vlan=True), {}, f"testbed.link.0.vlan = true: {VLAN}"),
    (
        at_a(addresses=PAIR), {},
        f"testbed.link.0.addresses = {PAIR}: must be 1 address, of client:eth0; a switch has none",
    ),
    (
        at_a(addresses=PAIR[:1], vlan=[1, 2]), {},
        f"testbed.link.0.addresses = {PAIR[:1]}: must be 2 addresses, of client:eth0, one for each VLAN; a switch"
        " has none",
    ),
    (
        bed({}, [("client:eth0 server:eth0", {"addresses": PAIR[:1]})]), {},
        f"testbed.link.0.addresses = {PAIR[:1]}: must be two addresses, of client:eth0 and server:eth0",
    ),
    (
        bed({"s": {}, "u": {}}, [LINKS[0], ("s:b u:b", {"addresses": PAIR}), "u:a server:eth0"]), {},
        f"testbed.link.1.addresses = {PAIR}: must be absent: a switch has none",
    ),
    (
        bed(ONE_SWITCH, [(LINKS[0], {"addresses": PAIR[:1]}), (LINKS[1], {"addresses": ["10.2.0.1/24"]})]), {},
        "testbed.link.1.addresses = ['10.1.0.1/24', '10.2.0.1/24']: all of a LAN must be in one subnet",
    ),
    (
        bed({"s": STP, "u": {}, "v": STP}, [*LINKS, "s:c u:c", "s:d u:d"]), {},
        "testbed.link.3.ends = ['s:d', 'u:d']: closes a loop, in which frames would circulate forever; give u stp = {},"
        " or remove the link",
    ),
    (
        bed(MIXED, [*LINKS, "s:c u:c", "s:d u:d", "u:e v:e"]), {},
        "testbed.link.3.ends = ['s:d', 'u:d']: closes a loop, in which frames would circulate forever; give v stp = {},"
        " or remove the link",
    ),
    (  # v passes on what s and u say
        bed(MIXED, [*LINKS, ("s:c v:c", {"vlan": 10}), ("v:d u:d", {"vlan": 10}), ("s:e u:e", {"vlan": 1})]), {},
        "testbed.link.4.ends = ['s:e', 'u:e']: closes a loop, in which frames would circulate forever; give v stp = {},"
        " or remove the link",
    ),
    (
        bed(ONE_SWITCH, [("client:abcdefghijklm s:a", {"vlan": [10]}), LINKS[1]]), {},
        "testbed.link.0.ends = 'client:abcdefghijklm': is too long: its VLANs have devices like abcdefghijklm.10,"
        " and a name has at most 15 characters",
    ),
    (
        bed(ONE_SWITCH, ["client:eth0 s:br0", LINKS[1]]), {},
        "testbed.link.0.ends = 's:br0': is the name of the switch's bridge, br0; rename the port",
    ),
    (
        bed(ONE_SWITCH, [LINKS[1]], wifi=[{"ap": "s:br0", "station": [{"at": "client:wlan0"}]}]), {},
        "testbed.wifi.0.ap = 's:br0': is the name of the switch's bridge, br0; rename the port",
    ),
    (
        bed(ONE_SWITCH, [*LINKS, "server:b gw:b"], wifi=[{"ap": "gw:wlan0", "station": [{"at": "s:wlan0"}]}]), {},
        "testbed.wifi.0.station.0.at = 's:wlan0': is a switch; a station is a host or a router",
    ),
    (
        bed(ONE_SWITCH, [*LINKS, *(f"h{number}:eth0 s:p{number}" for number in range(1022))]), {},
        "testbed.link = '1024 ports': a switch has at most 1023; give s fewer",
    ),
    (
        bed(ONE_SWITCH, [*LINKS, "server:b gw:b"]), event(node="gw", bridge="link set dev b cost 5"),
        "event.0.bridge = 'link set dev b cost 5': gw is not a switch",
    ),
    (
        bed(ONE_SWITCH, LINKS), event(bridge="link set cost 5"),
        "event.0.bridge = 'link set cost 5': names no device; add dev a",
    ),
    (
        bed(ONE_SWITCH, LINKS), event(bridge="vlan add dev q vid 3"),
        "event.0.bridge = 'vlan add dev q vid 3': no such device: q. Devices of s: a, b, br0",
    ),
    (
        bed(ONE_SWITCH, LINKS),
        event(bridge="link add dev a"),
        "event.0.bridge = 'link add dev a': link is followed by set",
    ),
    (bed(ONE_SWITCH, LINKS), event(device="br0", link="down"), "event.0.device = 'br0': is not a cable. s has a, b"),
    (
        bed({"s": {}, "u": {}}, ["s:a u:a"]), {},
        "testbed.node = ['s', 'u']: must have at least 2 that are not switches; add a host",
    ),
    (
        bed(ONE_SWITCH, LINKS[:1]), {},
        "testbed.node = ['client', 's']: must have at least 2 that are not switches; add a host",
    ),
    (
        bed({"s": {}, "u": {}}, ["s:a u:a"]), {"test": {"name": "none"}} | app("x"),
        "testbed.node = ['s', 'u']: must have at least 1 that are not switches; add a host",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("testbed", "tables", "message"), CASES, ids=[message[:40] for _, _, message in CASES])
def test_a_mistake_is_one_clear_line(testbed: dict[str, Any], tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        build(load({"testbed": testbed, "test": PING} | tables), ALL)


def test_real_machines_have_no_switches() -> None:
    with pytest.raises(InputError, match=r"^testbed\.node\.1\.role = 'switch': this engine has none"):
        build(load({"testbed": bed(ONE_SWITCH, LINKS), "test": PING}), REAL)


def test_default_subnets_are_65536() -> None:
    links = [(f"gw:e{number} s{number}:a", {"vlan": [*range(1, 4095)]}) for number in range(17)]
    testbed = bed({f"s{number}": {} for number in range(17)}, [*links, "client:eth0 s0:c", "server:eth0 s1:c"])
    with pytest.raises(InputError, match=r"^testbed\.link\.16\.vlan = \d+: the LANs have more VLANs than there are"):
        build(load({"testbed": testbed, "test": PING}), ALL)


USABLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (bed(ONE_SWITCH, ["client:eth0 s:abcdefghijklmno", LINKS[1]]), {}),
    (bed(ONE_SWITCH, ["client:br0 s:a", LINKS[1]]), {}),
    (bed(ONE_SWITCH, LINKS), app("{s.a.mac}")),
    (bed(ONE_SWITCH, TRUNK), app("{gw.lan.mac} {gw.address} {gw.lan.20}")),
    (bed(ONE_SWITCH, LINKS), event(device="a", link="down")),
    (bed(ONE_SWITCH, LINKS), event(power="off")),
    (bed(ONE_SWITCH, LINKS), event(bridge="mdb add dev br0 port a grp 239.1.1.1")),
    (bed(ONE_SWITCH, TRUNK), event(node="gw", ip="link set lan.20 mtu 1400")),
    (bed(ONE_SWITCH, LINKS, shaper=[{"at": "s:b", "rate": "10mbit"}]), {}),
    (bed(ONE_SWITCH, LINKS, netem=[{"at": "s:b", "delay": "10ms"}]), {}),
    (bed({"s": {}, "u": {}}, [*LINKS, "s:c u:c"]), {}),
    (bed(ONE_SWITCH, LINKS), {"app": [{"command": ["true"], "node": "s"}]}),
    (at_a(vlan=[*range(1, 4095)], addresses=None) | {"ip": 6}, {}),
]


@pytest.mark.parametrize(("testbed", "tables"), USABLE, ids=range(len(USABLE)))
def test_a_valid_lan_has_a_plan(testbed: dict[str, Any], tables: dict[str, Any]) -> None:
    testbed["link"] = [{key: value for key, value in row.items() if value is not None} for row in testbed["link"]]
    assert build(load({"testbed": testbed, "test": PING} | tables), ALL).paths
