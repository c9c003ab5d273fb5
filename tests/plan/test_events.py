# SPDX-License-Identifier: Apache-2.0
"""Events as steps: in the order of their times, with what a device needs that comes up again."""

from typing import Any

import pytest

from hourglass.contract.plan import AppStep, BatchStep, DaemonStep, Event, IwStep, TellStep, WriteStep
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL, VETH


def events(*wanted: dict[str, Any], base: str = "L100M", able: Any = ALL, changes: tuple[str, ...] = ()) -> list[Event]:
    return build(load(base, [*changes, ("event", list(wanted))]), able).events


def test_repetitions_are_events_in_the_order_of_time() -> None:
    made = events(
        {"at": 2, "every": 1.5, "count": 3, "node": "client", "link": "down"},
        {"at": 2, "node": "server", "sysctl": {"net.ipv4.tcp_ecn": 1}},
        {"at": 0, "node": "client", "label": "first", "ip": "neigh flush dev eth0"},
    )
    assert [(one.at_ns, one.name) for one in made] == [
        (0, "first"),
        (2_000_000_000, "link down eth0"),
        (2_000_000_000, "sysctl net.ipv4.tcp_ecn=1"),
        (3_500_000_000, "link down eth0"),
        (5_000_000_000, "link down eth0"),
    ]


@pytest.mark.parametrize("ip", [4, 6])
def test_a_device_that_comes_up_gets_back_what_it_lost(ip: int) -> None:
    (up,) = events({"at": 3, "node": "client", "link": "up"}, changes=(f"testbed.ip={ip}",))
    (step,) = up.steps
    assert isinstance(step, BatchStep)
    assert step.origin == "event.0.link"
    routes = {4: "route replace 10.0.1.0/24 via 10.0.0.2", 6: "route replace fd00:0:0:1::/64 via fd00::2"}
    address = ["addr replace fd00::1/64 dev eth0 nodad"] if ip == 6 else []
    assert step.lines == ["link set dev eth0 up", *address, routes[ip]]


def test_a_links_keys_are_written_at_both_its_ends() -> None:
    change = {"rate": ["1mbit", "2mbit"], "loss": "0%", "mtu": 1400}
    (event,) = events({"at": 3, "node": "router", "device": "eth0", "set": change})
    assert event.name == "set rate=1mbit/2mbit, loss=0%, mtu=1400 at eth0"
    told = [(step.node, step.path.rpartition("/")[2], step.value, step.origin) for step in event.steps
            if isinstance(step, WriteStep)]  # fmt: skip
    assert told == [
        (node, *what)
        for node, rate in (("client", "1000000"), ("router", "2000000"))
        for what in (
            ("rate_bps", rate, "event.0.set.rate"),
            ("loss_ppb", "0", "event.0.set.loss"),
            ("loss_burst_milli", "0", "event.0.set.loss"),
        )
    ]
    lines = [(step.node, step.lines) for step in event.steps if isinstance(step, BatchStep)]
    assert lines == [("client", ["link set dev eth0 mtu 1400"]), ("router", ["link set dev eth0 mtu 1400"])]


def test_a_cable_that_is_plugged_in_is_the_one_that_was_pulled() -> None:
    pull, plug = events({"at": 1, "node": "server", "cable": "pull"}, {"at": 2, "node": "server", "cable": "plug"})
    values = [step.value for one in (pull, plug) for step in one.steps if isinstance(step, WriteStep)]
    assert values == ["-1", "1"]


@pytest.mark.parametrize(
    ("base", "radio", "channel", "line"),
    [
        ("wifi-ath9k", (20,), 44, "5220 bandwidth=20 ht"),
        ("wifi-ath9k", (40,), 44, "5220 sec_channel_offset=1 center_freq1=5230 bandwidth=40 ht"),
        ("wifi-ath9k", (40,), 64, "5320 sec_channel_offset=-1 center_freq1=5310 bandwidth=40 ht"),
        ("wifi-ax", (80,), 56, "5280 sec_channel_offset=-1 center_freq1=5290 bandwidth=80 ht vht he"),
        ("wifi-ath9k", (40, "2.4GHz"), 8, "2447 sec_channel_offset=-1 center_freq1=2437 bandwidth=40 ht"),
    ],
)  # fmt: skip
def test_a_channel_is_told_to_hostapd(base: str, radio: tuple[int | str, ...], channel: int, line: str) -> None:
    """IEEE 802.11-2020, 19.3.15 and 21.3.14: pairs of channels, centres of 80 MHz at 42 and 58."""
    changes = tuple(f"testbed.wifi.0.{key}={one}" for key, one in zip(("width", "band"), radio, strict=False))
    (event,) = events({"at": 1, "node": "ap", "channel": channel}, base=base, changes=changes)
    (step,) = event.steps
    assert isinstance(step, TellStep)
    assert step.line == f"CHAN_SWITCH 5 {line}"
    assert event.name == f"channel {channel}"


def test_who_returns_looks_where_the_access_point_is() -> None:
    made = events(
        {"at": 1, "node": "ap", "channel": 48},
        {"at": 2, "node": "client", "station": "return"},
        {"at": 3, "node": "ap", "ap": "restart"},
        base="wifi-ath9k",
    )
    asked = [
        step.args[-1] for event in made[1:] for step in event.steps if isinstance(step, IwStep) if "-w" in step.args
    ]
    assert asked == ["5240", "5180"]


@pytest.mark.parametrize(("node", "channel"), [("ap", 37), ("ap", 6), ("client", 40)])
def test_a_channel_has_to_be_one_of_the_band_and_an_access_points(node: str, channel: int) -> None:
    with pytest.raises(InputError, match=r"event\.0\.(channel = (37|6): at 5GHz: 36, 40|device)"):
        events({"at": 1, "node": node, "channel": channel}, base="wifi-ath9k")


def test_an_access_point_restarts_with_the_stations_that_are_there() -> None:
    leave, restart, back = events(
        {"at": 1, "node": "other1", "station": "leave"},
        {"at": 2, "node": "ap", "ap": "restart"},
        {"at": 3, "node": "other1", "station": "return"},
        base="wifi-ath9k",
        changes=("testbed.wifi.0.others.count=2",),
    )
    assert [step.args[2] for step in leave.steps if isinstance(step, IwStep)] == ["disconnect"]
    assert isinstance(restart.steps[0], DaemonStep)
    joined = [step.node for step in restart.steps if isinstance(step, IwStep) and step.args[2] == "connect"]
    assert joined == ["client", "other2"]
    assert [step.args[2] for step in back.steps if isinstance(step, IwStep)] == ["disconnect", "connect"]


@pytest.mark.parametrize(
    ("event", "refused"),
    [
        ({"at": 40, "link": "up"}, r"event\.0\.at = 40: within the test, which ends at 40 s"),
        ({"at": 30, "every": 5, "count": 3, "link": "up"}, r"event\.0\.count = 3: within the test"),
    ],
)
def test_an_event_is_within_the_test(event: dict[str, Any], refused: str) -> None:
    with pytest.raises(InputError, match=refused):
        events({"node": "client", **event})


@pytest.mark.parametrize("event", [{"cable": "pull"}, {"set": {"rate": "1mbit"}}, {"write": {"/proc/sys/net/x": 1}}])
def test_a_veth_pair_has_no_cable_and_no_attributes(event: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"event\.0\.\w+ = .*: this engine cannot"):
        events({"at": 1, "node": "client", **event}, able=VETH)
    assert events({"at": 1, "node": "client", "link": "down"}, able=VETH)


def test_power_goes_with_the_cables_first_and_comes_back_with_the_programs() -> None:
    apps = [{"name": name, "node": node, "command": ["x"]} for name, node in (("a", "client"), ("b", "router"))]
    off, on = events(
        {"at": 1, "node": "router", "power": "off"},
        {"at": 2, "node": "router", "power": "on"},
        changes=[("app", apps)],  # type: ignore[arg-type]
    )

    def told(event: Event) -> list[tuple[str, str]]:
        return [
            (step.path.split("/")[4], step.value) if isinstance(step, WriteStep) else (str(step.app), step.act)
            for step in event.steps
            if isinstance(step, WriteStep | AppStep)
        ]

    assert told(off) == [("eth0", "-1"), ("eth1", "-1"), ("1", "kill")]
    assert told(on) == [("eth0", "0"), ("eth1", "1"), ("1", "restart")]
    assert {step.origin for step in off.steps} == {"event.0.power"}
