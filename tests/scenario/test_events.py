# SPDX-License-Identifier: Apache-2.0
"""Events: what may be written, and the one line for what may not."""

from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.scenario import Scenario, load


def made(event: dict[str, Any], base: str = "L100M", *changes: str) -> Scenario:
    """A built-in with one event."""
    return load(base, [*changes, ("event", [{"at": 3, "node": "client", **event}])])


GOOD = [
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
def test_what_is_written_comes_back_the_same(event: dict[str, Any]) -> None:
    scenario = made(event)
    assert load(scenario) == scenario
    assert scenario.to_json() == load(scenario).to_json()
    (one,) = scenario.event
    assert one.action in event


def test_without_events_a_scenario_is_the_same_bytes_as_before() -> None:
    assert b"event" not in load("L100M").to_json()


def test_the_only_device_need_not_be_named() -> None:
    assert made({"cable": "pull"}).event[0].device == "eth0"


BAD = [
    ({}, "event.0", "exactly one of tc, ip,"),
    ({"tc": "qdisc del dev eth0 root", "ip": "link set eth0 up"}, "event.0", "not both tc and ip"),
    ({"at": -1, "link": "up"}, "event.0.at = -1", "a number of seconds"),
    ({"node": "clinet", "link": "up"}, "event.0.node = 'clinet'", 'Did you mean "client"?'),
    ({"node": "router", "link": "up"}, "event.0.device = none", "router has several: eth0, eth1"),
    ({"link": "up", "device": "eth7"}, "event.0.device = 'eth7'", 'Did you mean "eth0"?'),
    ({"link": "sideways"}, "event.0.link = 'sideways'", "is one of down, up"),
    ({"cable": "cut"}, "event.0.cable = 'cut'", "is one of pull, plug"),
    ({"tc": "qdisc add dev eth0 root fq", "device": "eth0"}, "event.0", "names its own"),
    ({"link": "up", "every": 1}, "event.0", "every goes with count"),
    ({"link": "up", "count": 2}, "event.0", "every goes with count"),
    ({"tc": "tc qdisc del dev eth0 root"}, "event.0.tc = ", "what follows tc"),
    ({"tc": "qdsic del dev eth0 root"}, "event.0.tc = ", 'Did you mean "qdisc"?'),
    ({"tc": "qdisc chaneg dev eth0 root fq"}, "event.0.tc = ", 'Did you mean "change"?'),
    ({"tc": "qdisc replace dev eth0 root fq_codle"}, "event.0.tc = ", 'Did you mean "fq_codel"?'),
    ({"tc": "qdisc replace dev eth9 root fq"}, "event.0.tc = ", "no such device: eth9"),
    ({"tc": "qdisc replace root fq"}, "event.0.tc = ", "names no device"),
    ({"tc": "qdisc del dev eth0 root; reboot"}, "event.0.tc = ", "words of letters"),
    ({"tc": []}, "event.0.tc = []", "a list of 1 to"),
    ({"ip": "link add dummy0 type dummy"}, "event.0.ip = ", "link is followed by set"),
    ({"ip": "link set eth0 netns server"}, "event.0.ip = ", "stays what and where it is"),
    ({"ip": "netns exec x"}, "event.0.ip = ", "The first word is one of"),
    ({"iw": "dev wlan0 scan"}, "event.0.iw = ", "no such device: wlan0"),
    ({"iw": "phy x info"}, "event.0.iw = ", "begins with dev DEVICE"),
    ({"ethtool": "eth0"}, "event.0.ethtool = ", "begins with an option and the device"),
    ({"sysctl": {"kernel.panic": 1}}, "event.0.sysctl = ", "sysctls of the network only"),
    ({"write": {"/etc/passwd": "x"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"write": {"/sys/../etc/passwd": "x"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"write": {"/proc/sysrq-trigger": "c"}}, "event.0.write = ", "below /sys or /proc/sys"),
    ({"set": {}}, "event.0.set = {}", "at least one of rate"),
    ({"set": {"rate": 0}}, "event.0.set.rate = 0", "from 1bit"),
    ({"set": {"tx_ring": 100}}, "event.0.set.tx_ring = 100", "unknown key"),
    ({"kill": "nginx"}, "event.0.kill = 'nginx'", "no program of client. Programs there: none"),
    ({"pause": "*"}, "event.0.pause = '*'", "client has no program"),
    ({"kill": ["a", "*"]}, "event.0.kill = ['a', '*']", "the name of a program, a list of some"),
    ({"restart": 1}, "event.0.restart = 1", "a list of programs"),
    ({"power": "cycle"}, "event.0.power = 'cycle'", "is one of off, on"),
    ({"station": "leave"}, "event.0.device = none", "has no radio of a station"),
    ({"ap": "restart"}, "event.0.device = none", "has no radio of an access point"),
]


@pytest.mark.parametrize(("event", "key", "allowed"), BAD, ids=lambda one: str(one)[:50])
def test_a_mistake_is_one_line(event: dict[str, Any], key: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        made(event)
    text = str(caught.value)
    assert text.startswith(key), text
    assert allowed in text
    assert "\n" not in text


def test_what_a_trace_decides_is_not_set() -> None:
    with pytest.raises(InputError, match=r"event\.0\.set\.rate = '1mbit': the link has trace"):
        made({"set": {"rate": "1mbit"}}, "L100M", 'testbed.link.0.trace=[[0, "10mbit"]]')


@pytest.mark.parametrize(
    ("node", "event"),
    [("client", {"station": "leave"}), ("ap", {"ap": "restart"}), ("client", {"iw": "dev wlan0 set power_save off"})],
)
def test_radios_have_events_of_their_own(node: str, event: dict[str, Any]) -> None:
    assert made({"node": node, **event}, "wifi-ath9k").event[0].node == node
    with pytest.raises(InputError, match=r"event\.0\.device"):
        made({"node": node, "device": "wlan0", "link": "down"}, "wifi-ath9k")


PROGRAMS = [
    {"name": "one", "node": "client", "command": ["x"]},
    {"name": "two", "node": "client", "command": ["x"]},
    {"name": "far", "node": "server", "command": ["x"]},
]


def test_programs_are_named_or_all_of_their_node() -> None:
    changes = [("app", PROGRAMS), ("test.length", 10)]
    for wanted, names in (("one", ("one",)), (["two", "one"], ("two", "one")), ("*", ("one", "two"))):
        scenario = load("L100M", [*changes, ("event", [{"at": 3, "node": "client", "pause": wanted}])])
        assert scenario.event[0].pause == names
        assert load(scenario) == scenario
    with pytest.raises(InputError, match=r"event\.0\.kill = 'far': no program of client\. .*Programs there: one, two"):
        load("L100M", [*changes, ("event", [{"at": 3, "node": "client", "kill": "far"}])])


def test_a_radio_has_no_power_switch() -> None:
    with pytest.raises(InputError, match=r"event\.0\.power = 'off': client has a radio"):
        made({"power": "off"}, "wifi-ath9k")
