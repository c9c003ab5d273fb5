# SPDX-License-Identifier: Apache-2.0
"""`show --apply`: only the lines of the node."""

import pytest

from hourglass import scenario
from hourglass.cli.apply import lines
from hourglass.cli.apply_all import show_apply
from hourglass.errors import InputError


def test_the_stack_of_a_node_as_lines_of_sysctl_and_tc() -> None:
    changes = ["stack.tsq=2ms", "stack.client.cc=bbr", "stack.sysctl.net.ipv4.tcp_rmem=4096 131072 6291456"]
    assert lines(scenario.load("L100M", changes), "client") == [
        "tc qdisc replace dev eth0 root handle 1: htb default 1",
        "tc class replace dev eth0 parent 1: classid 1:1"
        " htb rate 100mbit ceil 100mbit burst 14100 cburst 14100 quantum 1514",
        "tc qdisc replace dev eth0 parent 1:1 handle 10: pfifo_fast",
        "sysctl -w net.ipv4.tcp_congestion_control=bbr",
        "sysctl -w net.ipv4.tcp_pacing_ss_ratio=200",
        "sysctl -w net.ipv4.tcp_pacing_ca_ratio=120",
        "# only with the patch of `hourglass kernel patch`: sysctl -w net.ipv4.tcp_tsq_usecs=2000",
        "# only with the patch of `hourglass kernel patch`: sysctl -w net.ipv4.tcp_tsq_mode=1",
        "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
    ]


def test_settings_of_a_device_apply_to_that_device() -> None:
    settings = ["qdisc=cake bandwidth 19mbit", "ingress=cake bandwidth 95mbit", "mtu=1492", "gro=false"]
    script = lines(scenario.load("asymmetric", [f"stack.home.device.wan.{setting}" for setting in settings]), "home")
    assert script[:9] == [
        "ethtool -K wan gro off",
        "ip link set dev wan mtu 1492",
        "ip link add dev ifb4wan type ifb",
        "ip link set dev ifb4wan up",
        "tc qdisc replace dev lan root handle 10: fq_codel",
        "tc qdisc replace dev wan root handle 10: cake bandwidth 19mbit",
        "tc qdisc add dev wan handle ffff: ingress",
        "tc filter add dev wan parent ffff: matchall action mirred egress redirect dev ifb4wan",
        "tc qdisc replace dev ifb4wan root handle 10: cake bandwidth 95mbit",
    ]


def test_a_device_without_a_qdisc_setting_gets_the_default_qdisc() -> None:
    script = lines(scenario.load("R100M"), "router")
    assert script[:2] == [
        "tc qdisc replace dev eth0 root pfifo_fast",
        "tc qdisc replace dev eth1 root handle 1: htb default 1",
    ]
    assert not [line for line in script if "sysctl" in line]
    changed = lines(scenario.load("R100M", ["stack.router.cc=bbr"]), "router")
    assert changed[-1] == "sysctl -w net.ipv4.tcp_congestion_control=bbr"
    assert lines(scenario.load("R100M"), "client")[0] == "tc qdisc replace dev eth0 root pfifo_fast"


def test_a_device_with_several_queues_gets_mq() -> None:
    changes = ["testbed.link.0.nic=igb", "testbed.link.0.queues=2"]
    default, qdisc = (
        [line for line in lines(scenario.load("LR1000M", [*changes, *more]), "client") if line.startswith("tc")]
        for more in ([], ["stack.qdisc=mq fq"])
    )
    assert default == ["tc qdisc replace dev eth0 root mq"]
    assert qdisc == [
        "tc qdisc replace dev eth0 root handle 10: mq",
        "tc qdisc replace dev eth0 parent 10:1 handle 11: fq",
        "tc qdisc replace dev eth0 parent 10:2 handle 12: fq",
    ]


def test_a_switch_has_only_the_qdiscs_of_its_ports() -> None:
    assert lines(scenario.load("lan", ["stack.cc=bbr", "stack.east.qdisc=fq_codel"]), "east") == [
        "tc qdisc replace dev core root handle 10: fq_codel",
        "tc qdisc replace dev west root handle 10: fq_codel",
    ]


def test_an_unknown_node_is_one_line() -> None:
    with pytest.raises(InputError, match=r'no such node\. Did you mean "client"\? Nodes: client, router, server'):
        show_apply(scenario.load("L100M"), "clint")
