# SPDX-License-Identifier: Apache-2.0
"""Events as steps: in the order of their times, with the addresses and routes of a device that comes up again."""

from typing import Any

import pytest

from hourglass.contract.plan import AppStep, BatchStep, DaemonStep, IwStep, PlanEvent, TellStep, ToolStep, WriteStep
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL, VETH


def events(
    *declared: dict[str, Any], base: str = "L100M", able: Any = ALL, changes: tuple[str, ...] = ()
) -> list[PlanEvent]:
    return build(load(base, [*changes, ("event", list(declared))]), able).events


def test_repetitions_are_events_in_the_order_of_time() -> None:
    plan_events = events(
        {"at": 2, "every": 1.5, "count": 3, "node": "client", "link": "down"},
        {"at": 2, "node": "server", "sysctl": {"net.ipv4.tcp_ecn": 1}},
        {"at": 0, "node": "client", "label": "first", "ip": "neigh flush dev eth0"},
    )
    assert [(event.at_ns, event.name) for event in plan_events] == [
        (0, "first"),
        (2_000_000_000, "link down eth0"),
        (2_000_000_000, "sysctl net.ipv4.tcp_ecn=1"),
        (3_500_000_000, "link down eth0"),
        (5_000_000_000, "link down eth0"),
    ]


@pytest.mark.parametrize("ip", [4, 6])
def test_a_device_that_comes_up_gets_its_addresses_and_routes_again(ip: int) -> None:
    (up,) = events({"at": 3, "node": "client", "link": "up"}, changes=(f"testbed.ip={ip}",))
    steps = [step for step in up.steps if isinstance(step, ToolStep)]
    assert {step.origin for step in steps} == {"event.0.link"}
    routes = {4: "route replace default via 10.0.0.2", 6: "route replace default via fd00::2"}
    address = ["addr replace fd00::1/64 dev eth0 nodad"] if ip == 6 else []
    assert [line for step in steps for line in step.lines] == ["link set dev eth0 up", *address, routes[ip]]


def test_names_in_lines_of_tools_become_addresses() -> None:
    line = "dev wlan0 station set {client.wlan0.mac} airtime_weight 512"
    lines = ["neigh replace {server.eth0} lladdr {server.eth0.mac} dev eth0", "route replace {server.address} dev eth0"]
    iw, ip = events({"at": 1, "node": "ap", "iw": line}, {"at": 2, "node": "ap", "ip": lines}, base="wifi-ath9k")
    assert iw.name == f"iw {line}"
    (step,) = iw.steps
    assert isinstance(step, IwStep)
    assert step.args == ["dev", "wlan0", "station", "set", "02:00:00:00:01:02", "airtime_weight", "512"]
    (batch,) = ip.steps
    assert isinstance(batch, BatchStep)
    server = "10.0.0.2"
    assert batch.lines == [
        f"neigh replace {server} lladdr 02:00:00:00:00:02 dev eth0",
        f"route replace {server} dev eth0",
    ]
    with pytest.raises(InputError, match=r"event\.0\.ip = .* does not know MAC addresses"):
        events({"at": 1, "node": "client", "ip": "neigh replace 10.0.0.2 lladdr {router.eth0.mac} dev eth0"}, able=VETH)


def test_a_links_keys_are_written_at_both_its_ends() -> None:
    change = {"rate": ["1mbit", "2mbit"], "loss": "0%", "mtu": 1400}
    (event,) = events({"at": 3, "node": "router", "device": "eth0", "set": change})
    assert event.name == "set rate=1mbit/2mbit, loss=0%, mtu=1400 at eth0"
    writes = [(step.node, step.path.rpartition("/")[2], step.value, step.origin) for step in event.steps
            if isinstance(step, WriteStep)]  # fmt: skip
    assert writes == [
        (node, *attribute)
        for node, rate in (("client", "1000000"), ("router", "2000000"))
        for attribute in (
            ("rate_bps", rate, "event.0.set.rate"),
            ("loss_ppb", "0", "event.0.set.loss"),
            ("loss_burst_milli", "0", "event.0.set.loss"),
        )
    ]
    lines = [(step.node, step.lines) for step in event.steps if isinstance(step, ToolStep)]
    assert lines == [("client", ["link set dev eth0 mtu 1400"]), ("router", ["link set dev eth0 mtu 1400"])]


def test_plugging_restores_the_pulled_cable() -> None:
    pull, plug, carrier = events(
        {"at": 1, "node": "server", "cable": "pull"}, {"at": 2, "node": "server", "cable": "plug"}
    )
    values = [step.value for event in (pull, plug, carrier) for step in event.steps if isinstance(step, WriteStep)]
    assert values == ["-1", "-1", "1"]


PULL, PLUG = {"node": "server", "cable": "pull"}, {"node": "server", "cable": "plug"}
DOWN, UP = {"node": "server", "link": "down"}, {"node": "server", "link": "up"}


@pytest.mark.parametrize(
    ("declared", "carriers"),
    [
        ([(1, PULL), (2, PLUG)], [4]),
        ([(1, PULL), (2, PLUG), (3, PULL)], []),
        ([(1, PULL), (2, PLUG), (3, PLUG)], [4]),
        ([(1, PULL), (2, PLUG), (3, PULL), (3.5, PLUG)], [5.5]),
        ([(1, PULL), (39, PLUG)], []),
        ([(1, DOWN), (2, UP)], [4]),
        ([(1, DOWN), (2, UP), (2.5, DOWN), (3, UP)], [5]),
        ([(1, UP)], []),
        ([(1, DOWN), (2, PULL), (3, UP), (4, PLUG)], [6]),
        ([(1, DOWN), (2, PULL), (3, PLUG), (4, UP)], [6]),
        ([(1, PULL), (2, PLUG), (3, DOWN), (4, UP)], [6]),
    ],
)
def test_a_carrier_follows_the_negotiation(declared: list[tuple[float, dict[str, Any]]], carriers: list[float]) -> None:
    """It is `link_up` after the last plug, or after the device comes up, unless something interrupts it."""
    plan_events = events(*({"at": at, **event} for at, event in declared))
    assert [event.at_ns / 10**9 for event in plan_events if event.name == "carrier eth0"] == carriers
    cables = [step.value for event in plan_events for step in event.steps if isinstance(step, WriteStep)]
    assert cables[-1:] == (["1"] if carriers else cables[-1:]), "the last step connects the cable"


@pytest.mark.parametrize("change", ["link_up=0s", "nic=ixgbe"])
def test_a_link_without_negotiation_carries_at_once(change: str) -> None:
    changes = (f"testbed.link.1.{change}",)
    pull, plug, down, up = events({"at": 1, **PULL}, {"at": 2, **PLUG}, {"at": 3, **DOWN}, {"at": 4, **UP},
                                  changes=changes)  # fmt: skip
    assert [step.value for event in (pull, plug) for step in event.steps if isinstance(step, WriteStep)] == ["-1", "1"]
    assert not [step for event in (down, up) for step in event.steps if isinstance(step, WriteStep)]


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
def test_a_channel_is_sent_to_hostapd(base: str, radio: tuple[int | str, ...], channel: int, line: str) -> None:
    """IEEE 802.11-2020, 19.3.15 and 21.3.14: pairs of channels, centres of 80 MHz at 42 and 58."""
    changes = tuple(f"testbed.wifi.0.{key}={value}" for key, value in zip(("width", "band"), radio, strict=False))
    (event,) = events({"at": 1, "node": "ap", "channel": channel}, base=base, changes=changes)
    (step,) = event.steps
    assert isinstance(step, TellStep)
    assert step.line == f"CHAN_SWITCH 5 {line}"
    assert event.name == f"channel {channel}"


def test_a_returning_station_uses_the_current_channel() -> None:
    plan_events = events(
        {"at": 1, "node": "ap", "channel": 48},
        {"at": 2, "node": "client", "station": "return"},
        {"at": 3, "node": "ap", "ap": "restart"},
        base="wifi-ath9k",
    )
    frequencies = [
        step.args[-1]
        for event in plan_events[1:]
        for step in event.steps
        if isinstance(step, IwStep)
        if "-w" in step.args
    ]
    assert frequencies == ["5240", "5180"]


@pytest.mark.parametrize(("node", "channel"), [("ap", 37), ("ap", 6), ("client", 40)])
def test_a_channel_has_to_be_one_of_the_band_and_an_access_points(node: str, channel: int) -> None:
    with pytest.raises(InputError, match=r"event\.0\.(channel = (37|6): must be a channel of 5GHz: 36, 40|device)"):
        events({"at": 1, "node": node, "channel": channel}, base="wifi-ath9k")


def test_an_access_point_restarts_with_its_present_stations() -> None:
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
        ({"at": 40, "link": "up"}, r"event\.0\.at = 40: must be within the test, which ends at 40 s"),
        ({"at": 30, "every": 5, "count": 3, "link": "up"}, r"event\.0\.count = 3: must be within the test"),
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


def test_power_off_pulls_cables_first_and_power_on_restarts_programs() -> None:
    apps = [{"name": name, "node": node, "command": ["x"]} for name, node in (("a", "client"), ("b", "router"))]
    off, on, carrier, second, start = events(
        {"at": 1, "node": "router", "power": "off"},
        {"at": 2, "node": "router", "power": "on"},
        changes=["testbed.link.1.link_up=3s", ("app", apps)],  # type: ignore[arg-type]
    )

    def actions(event: PlanEvent) -> list[tuple[str, str]]:
        return [
            (step.path.split("/")[4], step.value) if isinstance(step, WriteStep) else (str(step.app), step.act)
            for step in event.steps
            if isinstance(step, WriteStep | AppStep)
        ]

    assert actions(off) == [("eth0", "-1"), ("eth1", "-1"), ("1", "kill")]
    assert actions(on) == [("eth0", "-1"), ("eth1", "-1")]
    assert [(event.at_ns / 10**9, event.name, *actions(event)) for event in (carrier, second, start)] == [
        (4, "carrier eth0", ("eth0", "0")),
        (5, "carrier eth1", ("eth1", "1")),
        (5, "programs start", ("1", "restart")),
    ]
    assert {step.origin for step in off.steps} == {"event.0.power"}
