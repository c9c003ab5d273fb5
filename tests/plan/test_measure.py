# SPDX-License-Identifier: Apache-2.0
"""A scenario's `measure` and `capture` in the plan."""

import pytest

from hourglass.contract.plan import PlanCapture
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL, VETH

LINE = {
    "testbed": {
        "node": [{"name": "a"}, {"name": "b"}],
        "link": [{"ends": ["a:x", "b:y"], "rate": ["12.112mbit", "121.12mbit"]}],
    }
}
"""1,000 full frames a second there, 10,000 back."""


@pytest.mark.parametrize(
    ("name", "packets", "one_in"),
    [
        ("L100M", 1000, 9),  # 8,256.3 full frames a second
        ("L100M", 9000, 1),
        ("R100M", 100, 83),
        ("LR1000M", 1000, 83),
        ("L100M", '"all"', 1),
        ("L100M", 0, 0),
        (LINE, 1000, 10),
        (LINE, 9999, 2),
        (LINE, 10_000, 1),
    ],
)
def test_one_packet_in_n_follows_from_the_bottleneck_of_the_faster_direction(name, packets, one_in):
    assert build(load(name, [f"measure.packets={packets}"]), ALL).sampling.packets == one_in


@pytest.mark.parametrize(
    ("flows", "settings", "tcp_ms", "totals_ms"),
    [
        (64, [], 10, 200),
        (65, [], 20, 400),
        (1000, [], 160, 3200),
        (1000, ["test.step=0.1"], 100, 3200),
        (1000, ["measure.tcp=5ms", "measure.devices=10ms"], 5, 160),
    ],
)
def test_samples_per_flow_are_rarer_with_many_flows(flows, settings, tcp_ms, totals_ms):
    sampling = build(load("L100M", [f"test.upload_streams={flows}", *settings]), ALL).sampling
    assert (sampling.tcp_ns, sampling.totals_ns) == (tcp_ms * 10**6, totals_ms * 10**6)


def test_captures_name_device_file_and_length():
    plan = build(load("L100M", ['capture.pcap=["client:eth0", "router:eth1"]', "capture.snaplen=0"]), ALL)
    assert plan.captures == [
        PlanCapture(node="client", device="eth0", file="client-eth0.pcapng", snaplen=0),
        PlanCapture(node="router", device="eth1", file="router-eth1.pcapng", snaplen=0),
    ]
    assert build(load("L100M"), ALL).captures == []


def test_two_devices_that_would_share_a_file_are_refused():
    ends = [["a:b-c", "m:one"], ["a-b:c", "m:two"]]
    nodes = [{"name": name, "role": "router"} for name in ("a", "a-b", "m")]
    testbed = {"node": nodes, "link": [{"ends": pair} for pair in ends]}
    with pytest.raises(
        InputError, match=r"capture\.pcap\.1 = 'a-b:c': would write the same file as a:b-c, a-b-c\.pcapng"
    ):
        load({"testbed": testbed, "capture": {"pcap": ["a:b-c", "a-b:c"]}})


def test_without_wires_nothing_can_be_captured():
    with pytest.raises(InputError, match=r"capture\.pcap = .*cannot capture"):
        build(load("L100M", ['capture.pcap=["client:eth0"]']), VETH)
