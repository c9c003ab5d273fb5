# SPDX-License-Identifier: Apache-2.0
"""`show --apply`: the node's own lines and no others."""

import pytest

from hourglass import scenario
from hourglass.cli.apply import lines, show_apply
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
        "# only with the tsq hook of Hourglass: sysctl -w net.ipv4.tcp_tsq_ns=2000000",
        "# only with the tsq hook of Hourglass: sysctl -w net.ipv4.tcp_tsq_mode=1",
        "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
    ]


def test_an_unknown_node_is_one_line() -> None:
    with pytest.raises(InputError, match=r"no such node\. Nodes: client, router, server"):
        show_apply(scenario.load("L100M"), "clint")
