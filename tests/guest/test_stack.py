# SPDX-License-Identifier: Apache-2.0
"""The guest's kernels have every name that a scenario may use, and settings take effect."""

import polars as pl
import pytest

from hourglass.contract.kernels import DEFAULT
from hourglass.results.recording import Recording
from hourglass.scenario import CONGESTION_CONTROLS, QDISCS
from hourglass.scenario.vocabulary import QDISCS_SINCE

from .conftest import KERNELS, Simulate, line

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")

NEEDED = {
    "red": "limit 400000 min 30000 max 90000 avpkt 1000",
    "choke": "limit 1000 min 100 max 300 bandwidth 100mbit",
    "ets": "bands 3",
    "tbf": "rate 20mbit burst 20kb latency 50ms",
}
"""Parameters of the qdiscs that need some in `tc`."""

DETAILS = {"bbr": "bbr_bw", "dctcp": "dctcp_alpha", "vegas": "vegas_rtt"}
"""A field of the congestion-control part of tcp_info that only sockets of one congestion control fill."""

VEGAS_LIKE = {"vegas", "nv", "westwood", "yeah", "illinois"}
"""Congestion controls that report through the structure of Vegas."""


def upload(run: Recording) -> float:
    return run.summary.totals.upload_mbps


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_congestion_control_carries_data(simulate: Simulate, kernel: str) -> None:
    """Each congestion control is set by name on its flow's sockets, which fails if the kernel lacks it. Some also
    report their name."""
    count = len(CONGESTION_CONTROLS)
    test = {"name": "tcp_nup", "upload_streams": count, "flow_cc": list(CONGESTION_CONTROLS), "length": 5, "delay": 1}
    run = simulate({**line("100mbit", "1ms"), "test": test}, kernel=kernel)
    assert run.flow_events["event"].to_list().count("connected") == count
    assert run.flow_events["event"].to_list().count("stopped") == count
    used = {flow.name: flow.cc for flow in run.flows}
    assert sorted(used.values()) == sorted(CONGESTION_CONTROLS)
    for cc, column in DETAILS.items():
        filled = run.tcp.filter(pl.col("sender") & pl.col(column).is_not_null())["stream"].unique()
        assert {used[flow] for flow in filled} == (VEGAS_LIKE if cc == "vegas" else {cc})
    assert all(flow.goodput_mbps > 1 for flow in run.summary.flows)
    assert upload(run) == pytest.approx(100 * 1448 / 1538, rel=0.01)


@pytest.mark.parametrize(("qdisc", "kernel"), [(name, "7.3" if name in QDISCS_SINCE else DEFAULT) for name in QDISCS])
def test_every_qdisc_works_below_htb(simulate: Simulate, qdisc: str, kernel: str) -> None:
    setting = f"{qdisc} {NEEDED.get(qdisc, '')}".strip()
    run = simulate("L100M", *SHORT, f"stack.qdisc={setting}", kernel=kernel)
    leaf = run.qdisc.filter((pl.col("node") == "client") & (pl.col("handle") == "10:"))
    assert set(leaf["kind"]) == {qdisc}
    assert leaf["packets"].max() > 100
    assert run.info.warnings == []
    mbps = 20 if qdisc == "tbf" else 100
    assert upload(run) == pytest.approx(mbps * 1448 / 1514, rel=0.03)


@pytest.mark.parametrize("kernel", KERNELS)
def test_parameters_of_a_tc_line_reach_the_qdisc(simulate: Simulate, kernel: str) -> None:
    """codel's delay settles at its target. netem delays one direction."""
    low, high = (
        simulate(
            "L100M", "test.length=5", "test.delay=1", f"stack.client.qdisc={setting}", "stack.tsq=off", kernel=kernel
        )
        for setting in ("codel target 2ms interval 20ms", "codel target 40ms interval 400ms")
    )
    ping = [run.summary.ping_ms["icmp"].p50 for run in (low, high)]
    assert ping[1] > 3 * ping[0]
    late = simulate(line(), "stack.client.qdisc=netem delay 7ms", kernel=kernel)
    assert min(late.ping_rows["rtt_ns"]) >= 7_000_000
    assert max(late.ping_rows["rtt_ns"][2:]) < 7_500_000


@pytest.mark.parametrize("kernel", KERNELS)
def test_ecn_marks_instead_of_drops(simulate: Simulate, kernel: str) -> None:
    ecn = ("stack.tsq=off", "stack.qdisc=codel", "test.length=5", "test.delay=1")
    without = simulate("L100M", *ecn, kernel=kernel)
    with_ecn = simulate("L100M", *ecn, "stack.qdisc=codel ecn", "stack.sysctl.net.ipv4.tcp_ecn=1", kernel=kernel)
    marks = [run.tcp.filter(pl.col("sender"))["delivered_ce"].max() for run in (without, with_ecn)]
    assert marks[0] == 0
    assert marks[1] > 0
    dropped = [run.summary.drops["client"]["eth0"].qdisc for run in (without, with_ecn)]
    assert dropped[0] > 0
    assert dropped[1] < dropped[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_ipv6_carries_data_at_its_own_overhead(simulate: Simulate, kernel: str) -> None:
    """The header of IPv6 has 20 bytes more per frame."""
    run = simulate("L100M", "test.length=5", "test.delay=1", "testbed.ip=6", kernel=kernel)
    assert upload(run) == pytest.approx(100 * 1428 / 1514, rel=0.01)
    assert ":" in run.flow_events["detail"][0]
    assert run.summary.ping_ms["icmp"].lost == 0


def test_a_node_s_own_stack(simulate: Simulate) -> None:
    """Settings of one node apply only there."""
    run = simulate(
        "L100M", *SHORT, "stack.router.qdisc=fq_codel", "stack.client.cc=reno", "stack.client.pacing.ca=150",
        "stack.server.sysctl.net.ipv4.tcp_timestamps=0",
        kernel="6.1",
    )  # fmt: skip
    kinds = {node: set(run.qdisc.filter(pl.col("node") == node)["kind"]) for node in ("client", "router", "server")}
    shaped = {"htb", "htb class"}
    assert kinds == {"client": {*shaped, "pfifo_fast"}, "router": {*shaped, "fq_codel"}, "server": {"pfifo_fast"}}
    assert {flow.cc for flow in run.flows} == {"reno"}
    assert run.tcp.filter(pl.col("state") == 1)["snd_mss"].max() == 1460, "no time stamps: one end refuses them"


def test_a_sysctl_reaches_the_kernel(simulate: Simulate) -> None:
    """A send buffer of 16 KiB holds one skb (64 KiB) beyond its limit, which cannot fill a path of 40 ms."""
    path, test = line("100mbit", "10ms"), ("test.name=tcp_upload", "test.length=3", "test.delay=1")
    small = simulate(path, *test, "stack.sysctl.net.ipv4.tcp_wmem=4096 16384 16384")
    large = simulate(path, *test)
    assert set(small.tcp.filter("sender")["sk_sndbuf"]) == {16384}
    assert upload(small) < (16384 + 65536) * 8 / 0.04 / 1e6
    assert upload(large) > 3 * upload(small)
