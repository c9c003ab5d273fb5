# SPDX-License-Identifier: Apache-2.0
"""Events: valid ones, and one line for each mistake."""

from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.scenario import Scenario, load


def load_with(event: dict[str, Any], base: str = "L100M", *changes: str) -> Scenario:
    """Load a built-in with one event."""
    return load(base, [*changes, ("event", [{"at": 3, "node": "client", **event}])])


GOOD = [
    {"tc": "qdisc replace dev eth0 stab linklayer atm overhead -4 handle 1: root tbf rate 1mbit burst 2k latency 1s"},
    {"tc": "qdisc change dev eth0 parent 1:1 handle 10: pfifo_fast"},
    {"tc": ["qdisc del dev eth0 root", "qdisc add dev eth0 root netem delay 10ms limit 1000"]},
    {"tc": "filter add dev eth0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:1"},
    {"ip": "link set dev eth0 mtu 1400"},
    {"ip": "link set eth0 down"},
    {"ip": ["route del 10.0.1.0/24", "route replace 10.0.1.0/24 via 10.0.0.2 dev eth0"]},
    {"ip": "rule add from 10.0.0.0/8 table 7"},
    {"ethtool": "-K eth0 tso off"},
    {"sysctl": {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.ip_forward": 1}},
    {"write": {"/sys/class/net/eth0/queues/tx-0/byte_queue_limits/limit_max": 3000}},
    {"link": "down"},
    {"cable": "pull", "device": "eth0", "label": "the digger"},
    {"set": {"rate": ["10mbit", "2mbit"], "loss": {"model": "gilbert-elliott", "rate": "1%", "burst": 3}}},
    {"power": "off"},
    {"at": "3.5s", "link": "up", "every": 0.5, "count": 4},
]


@pytest.mark.parametrize("event", GOOD, ids=lambda event: str(event)[:50])
def test_an_event_survives_a_round_trip(event: dict[str, Any]) -> None:
    scenario = load_with(event)
    assert load(scenario) == scenario
    assert scenario.to_json() == load(scenario).to_json()
    (declared,) = scenario.event
    assert declared.action in event


def test_a_scenario_without_events_has_no_key_of_them() -> None:
    assert b"event" not in load("L100M").to_json()


def test_the_only_device_need_not_be_named() -> None:
    assert load_with({"cable": "pull"}).event[0].device == "eth0"


BAD = [
    ({}, "event.0", "exactly one of tc, ip,"),
    ({"tc": "qdisc del dev eth0 root", "ip": "link set eth0 up"}, "event.0", "cannot have both tc and ip"),
    ({"at": -1, "link": "up"}, "event.0.at = -1", "a number of seconds"),
    ({"node": "clinet", "link": "up"}, "event.0.node = 'clinet'", 'Did you mean "client"?'),
    ({"node": "router", "link": "up"}, "event.0.device = none", "router has several: eth0, eth1"),
    ({"link": "up", "device": "eth7"}, "event.0.device = 'eth7'", 'Did you mean "eth0"?'),
    ({"link": "sideways"}, "event.0.link = 'sideways'", "is one of down, up"),
    ({"cable": "cut"}, "event.0.cable = 'cut'", "is one of pull, plug"),
    ({"tc": "qdisc add dev eth0 root fq", "device": "eth0"}, "event.0", "names its device"),
    ({"link": "up", "every": 1}, "event.0", "every needs count"),
    ({"link": "up", "count": 2}, "event.0", "every needs count"),
    ({"tc": "tc qdisc del dev eth0 root"}, "event.0.tc = ", "the text after tc"),
    ({"tc": "qdsic del dev eth0 root"}, "event.0.tc = ", 'Did you mean "qdisc"?'),
    ({"tc": "qdisc chaneg dev eth0 root fq"}, "event.0.tc = ", 'Did you mean "change"?'),
    ({"tc": "qdisc replace dev eth0 root fq_codle"}, "event.0.tc = ", 'Did you mean "fq_codel"?'),
    ({"tc": "qdisc replace dev eth9 root fq"}, "event.0.tc = ", "no such device: eth9"),
    ({"tc": "qdisc replace root fq"}, "event.0.tc = ", "names no device"),
    ({"tc": "qdisc del dev eth0 root; reboot"}, "event.0.tc = ", "words of letters"),
    ({"tc": []}, "event.0.tc = []", "a list of 1 to"),
    ({"ip": "link add dummy0 type dummy"}, "event.0.ip = ", "link is followed by set"),
    ({"ip": "link set eth0 netns server"}, "event.0.ip = ", "a device stays the same"),
    ({"ip": "netns exec x"}, "event.0.ip = ", "The first word is one of"),
    ({"iw": "dev wlan0 scan"}, "event.0.iw = ", "no such device: wlan0"),
    ({"ip": "neigh flush to {sever.address}"}, "event.0.ip = ", "no such node"),
    ({"ip": "route replace {server.eth9.mac}"}, "event.0.ip = ", "server has no device eth9. Devices: eth0"),
    ({"ip": "route replace {server}"}, "event.0.ip = ", "or addresses like {client.wlan0.mac}"),
    ({"iw": "phy x info"}, "event.0.iw = ", "must begin with dev DEVICE"),
    ({"ethtool": "eth0"}, "event.0.ethtool = ", "must begin with an option and the device"),
    ({"sysctl": {"kernel.panic": 1}}, "event.0.sysctl = ", "sysctls of the network only"),
    ({"write": {"/etc/passwd": "x"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"write": {"/sys/../etc/passwd": "x"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"write": {"/proc/sysrq-trigger": "c"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"set": {}}, "event.0.set = {}", "at least one of rate"),
    ({"sysctl": {}}, "event.0.sysctl = {}", "at least one sysctl"),
    ({"set": {"rate": 0}}, "event.0.set.rate = 0", "from 1bit"),
    ({"set": {"tx_ring": 100}}, "event.0.set.tx_ring = 100", "unknown key"),
    ({"kill": "nginx"}, "event.0.kill = 'nginx'", "no such program of client. Programs: none"),
    ({"pause": "*"}, "event.0.pause = '*'", "client has no program"),
    ({"kill": ["a", "*"]}, "event.0.kill = ['a', '*']", "the name of a program, a list of names"),
    ({"restart": 1}, "event.0.restart = 1", "a list of programs"),
    ({"power": "cycle"}, "event.0.power = 'cycle'", "is one of off, on"),
    ({"station": "leave"}, "event.0.device = none", "has no radio of a station"),
    ({"ap": "restart"}, "event.0.device = none", "has no radio of an access point"),
]


@pytest.mark.parametrize(("event", "key", "allowed"), BAD, ids=lambda value: str(value)[:50])
def test_a_mistake_is_one_line(event: dict[str, Any], key: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        load_with(event)
    text = str(caught.value)
    assert text.startswith(key), text
    assert allowed in text
    assert "\n" not in text


def test_an_event_cannot_set_the_rate_of_a_trace() -> None:
    with pytest.raises(InputError, match=r"event\.0\.set\.rate = '1mbit': cannot be combined with the link's trace"):
        load_with({"set": {"rate": "1mbit"}}, "L100M", 'testbed.link.0.trace=[[0, "10mbit"]]')


@pytest.mark.parametrize(
    ("node", "event"),
    [("client", {"station": "leave"}), ("ap", {"ap": "restart"}), ("client", {"iw": "dev wlan0 set power_save off"})],
)
def test_some_events_are_for_radios_only(node: str, event: dict[str, Any]) -> None:
    assert load_with({"node": node, **event}, "wifi-ath9k").event[0].node == node
    with pytest.raises(InputError, match=r"event\.0\.device"):
        load_with({"node": node, "device": "wlan0", "link": "down"}, "wifi-ath9k")


PROGRAMS = [
    {"name": "one", "node": "client", "command": ["x"]},
    {"name": "two", "node": "client", "command": ["x"]},
    {"name": "far", "node": "server", "command": ["x"]},
]


def test_an_event_names_programs_or_all_of_its_node() -> None:
    changes = [("app", PROGRAMS), ("test.length", 10)]
    for programs, names in (("one", ("one",)), (["two", "one"], ("two", "one")), ("*", ("one", "two"))):
        scenario = load("L100M", [*changes, ("event", [{"at": 3, "node": "client", "pause": programs}])])
        assert scenario.event[0].pause == names
        assert load(scenario) == scenario
    with pytest.raises(InputError, match=r"event\.0\.kill = 'far': no such program of client\. .*Programs: one, two"):
        load("L100M", [*changes, ("event", [{"at": 3, "node": "client", "kill": "far"}])])


def test_a_radio_has_no_power_switch() -> None:
    with pytest.raises(InputError, match=r"event\.0\.power = 'off': client has a radio"):
        load_with({"power": "off"}, "wifi-ath9k")
