# SPDX-License-Identifier: Apache-2.0
"""Lints on complete runs: built-in scenarios have no findings, and real traps are found in the kernel's records."""

import pytest

from guest.conftest import KERNELS, line

pytestmark = pytest.mark.guest

S = 10**9


def ids(run):
    return [warning.id for warning in run.summary.warnings]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["L100M", "L10M", "R100M", "asymmetric", "mobile", "parking-lot"])
def test_built_in_scenarios_raise_no_false_alarm(simulate, name):
    assert ids(simulate(name)) == []


def test_a_small_receive_buffer_is_found_by_its_sysctl_and_by_the_kernel(simulate):
    base = line(rate="100mbit", delay="10ms")
    base["test"] = {"name": "tcp_upload", "length": 20.5, "delay": 1}
    assert ids(simulate(base)) == []
    run = simulate(base, 'stack.server.sysctl.net.ipv4.tcp_rmem="4096 65536 131072"')
    assert ids(run) == ["receive-buffer-below-bdp", "rwnd-limited"]


def test_netem_with_its_default_limit_drops_and_is_found(simulate):
    base = line(rate="100mbit", delay="1ms")
    base["test"] = {"name": "tcp_upload", "length": 20.5, "delay": 1}
    run = simulate(base, 'stack.router1.qdisc="netem delay 200ms"')
    assert "netem-limit" in ids(run)


TREE = [
    "qdisc replace dev eth0 root handle 10: htb default 10",
    "class add dev eth0 parent 10: classid 10:1 htb rate 900mbit",
    "class add dev eth0 parent 10:1 classid 10:10 htb rate 900mbit",
    "qdisc add dev eth0 parent 10:10 handle 100: netem delay 200ms",
]
"""The lines that users paste into a shell of the client of LR1000M."""


def findings(run, name):
    return [warning.text.partition(",")[0] for warning in run.summary.warnings if warning.id == name]


@pytest.mark.parametrize("maker", ["event", "program"])
def test_qdiscs_of_the_test_count(simulate, maker):
    script = "\n".join(f"tc {line}" for line in TREE)
    program = {"name": "setup", "node": "client", "user": "root", "command": ["sh", "/setup"], "expect": "any",
               "files": {"/setup": {"text": script}}}  # fmt: skip
    event = {"at": 0, "node": "client", "tc": TREE}
    run = simulate(
        {
            "name": "changed",
            "testbed": {"preset": "LR1000M"},
            "test": {"name": "tcp_upload", "length": 3, "delay": 1},
            **({"event": [event]} if maker == "event" else {"app": [program]}),
        }
    )
    assert findings(run, "netem-limit") == ["netem at client:eth0 (100:) holds 1000 packets"]
    assert findings(run, "netem-own-egress") == ["netem delays packets at client:eth0 (100:)"]
    assert findings(run, "queue-below-bdp") == []
    words = dict(run.qdisc_changes.select("handle", "options").iter_rows())
    assert words == {
        "10:": "htb",
        "10:1": "htb class ceil 900mbit",
        "10:10": "htb class ceil 900mbit",
        "100:": "netem limit 1000 delay 200ms",
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_qdiscs_of_the_set_up_are_no_changes(simulate, kernel):
    assert simulate("L100M", "test.length=2", "test.delay=1", kernel=kernel).qdisc_changes.is_empty()


DSL = "stab linklayer atm overhead -4 tbf rate 840kbit latency 300ms burst 1696"
CAKE = "cake bandwidth 840kbit besteffort overhead 10 atm"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_shaper_counts_the_cells_of_a_dsl_line(simulate, kernel):
    """A full frame and its overhead fill 32 cells of 53 bytes: 16.152 ms at 840 kbit/s."""
    base = {
        "name": "dsl",
        "kernel": kernel,
        "testbed": {"preset": "LR1000M"},
        "stack": {"gso": "1us", "sysctl": {"net.ipv4.tcp_min_tso_segs": 1}},
        "test": {"name": "tcp_upload", "length": 20, "delay": 1, "ping_interval": 900, "udp_interval": 900},
    }
    sent = {}
    for qdisc in (DSL, CAKE):
        run = simulate(base, f"stack.client.qdisc={qdisc}")
        rows = run.devices.filter((run.devices["node"] == "client") & run.devices["t_ns"].is_between(5 * S, 20 * S))
        sent[qdisc] = rows["tx_packets"].max() - rows["tx_packets"].min()
    frames = 15 * 840_000 / (32 * 53 * 8)
    assert list(sent.values()) == pytest.approx([frames] * 2, abs=1)
