# SPDX-License-Identifier: Apache-2.0
"""The time that packets take on their node's CPU, compared with closed forms to the ns."""

from typing import Any

import polars as pl
import pytest

from .conftest import KERNELS, Simulate, line
from .test_exactness import HEADERS, OVERHEAD, RX_USECS

pytestmark = pytest.mark.guest

RECEIVED_NS, SENT_NS, TIMER_NS = 3000, 5000, 40_000


def with_cpus(scenario: dict[str, Any], **cpus: dict[str, str]) -> dict[str, Any]:
    """Return a scenario whose nodes of these names have a CPU."""
    nodes = [
        node | ({"cpu": cpus[node["name"]]} if node["name"] in cpus else {}) for node in scenario["testbed"]["node"]
    ]
    return scenario | {"testbed": scenario["testbed"] | {"node": nodes}}


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_idle_round_trip_is_the_sum_of_its_parts(simulate: Simulate, kernel: str) -> None:
    """Three nodes send a packet of each direction or forward it: four frames, sent and received."""
    delay_ns = 123_457
    path = line(delay=f"{delay_ns}ns") | {"test": {"name": "ping", "length": 1}}
    cost = {"received": f"{RECEIVED_NS}ns", "sent": f"{SENT_NS}ns"}
    run = simulate(with_cpus(path, client=cost, router1=cost, server=cost), kernel=kernel)
    for probe in run.pings:
        frame_ns = 8 * (HEADERS[probe.name] + probe.payload_bytes + OVERHEAD)
        rtts = run.ping_rows.filter(pl.col("stream") == probe.name)["rtt_ns"][1:]
        assert set(rtts) == {4 * (SENT_NS + frame_ns + delay_ns + RX_USECS * 1000 + RECEIVED_NS)}
    assert run.balance["unmatched"].sum() == 0


@pytest.mark.parametrize(
    ("kernel", "cpu"),
    [("6.1", {"received": "10us"}), *((kernel, {"received": "7us", "sent": "3us"}) for kernel in KERNELS)],
)
def test_a_router_forwards_as_many_packets_as_its_cpu_has_time_for(
    simulate: Simulate, kernel: str, cpu: dict[str, str]
) -> None:
    """A flood of 200,000 packets per second passes a router at exactly 100,000. Its ring drops the others.

    They arrive in groups: the kernel hands frames that GRO does not merge to the stack in batches of eight. The
    server's NIC also moderates its interrupts. The window is a multiple of both periods."""
    flood = {"name": "flood", "size": 100, "rate": "160mbit", "start": 0, "stop": 0.04}
    path = line() | {"test": {"name": "ping", "length": 0.2, "delay": 0.1, "datagrams": [flood]}}
    run = simulate(with_cpus(path, router1=cpu) | {"measure": {"packets": "all"}}, kernel=kernel)
    (figures,) = run.summary.datagrams
    assert sum(drop.nic for drop in run.summary.drops["router1"].values()) == figures.lost > 3700
    arrivals = run.packets.filter(pl.col("stream") == "flood").group_by("packet").last()["end_ns"].sort()
    start_ns, window_ns = arrivals[500], 24 * 10**6
    assert arrivals.is_between(start_ns, start_ns + window_ns, closed="left").sum() == window_ns / 10_000


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_work_of_a_cpu_is_recorded(simulate: Simulate, kernel: str) -> None:
    """The work is the cost of each frame that the router's NICs received and sent. The test begins and ends in silence,
    so none is pending. Small datagrams are sent one by one."""
    stream = {"name": "stream", "size": 100, "rate": "8mbit", "start": 0, "stop": 0.6}
    path = line() | {"test": {"name": "ping", "length": 1, "delay": 0, "datagrams": [stream]}}
    cost = {"received": f"{RECEIVED_NS}ns", "sent": f"{SENT_NS}ns"}
    run = simulate(with_cpus(path, router1=cost), kernel=kernel)
    ends = [run.cpu.row(0, named=True), run.cpu.row(-1, named=True)]
    devices = run.devices.filter(node="router1")
    received, sent = (
        sum(int(each[name].last() - each[name].first()) for each in devices.partition_by("device"))
        for name in ("rx_packets", "tx_packets")
    )
    assert received == sent > 5000
    growth = {name: ends[1][name] - ends[0][name] for name in ends[0] if name.endswith("_ns")}
    work = {"received_ns": received * RECEIVED_NS, "sent_ns": sent * SENT_NS, "calls_ns": 0, "pending_ns": 0}
    assert growth == {"t_ns": 10**9} | work
    (figures,) = run.summary.cpu.values()
    assert figures.busy_percent == pytest.approx(100 * sum(work.values()) / 10**9, rel=1e-5)
    assert run.cpu["node"].unique().to_list() == ["router1"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_late_timer_shifts_each_paced_segment_by_its_lateness(simulate: Simulate, kernel: str) -> None:
    """TCP gives a late segment credit, so the lateness does not add up. The first ten segments are not paced. The times
    are without those of interrupts, which other frames may share."""
    path = line() | {
        "stack": {"client": {"device": {"right": {"tso": False, "gso": False}}}},
        "test": {"name": "tcp_1up", "length": 0.2, "delay": 0, "stream_rates": ["20mbit"]},
        "measure": {"packets": "all"},
    }
    plain, late = (
        simulate(scenario, kernel=kernel)
        .packets.filter((pl.col("stream") == "upload::1") & (pl.col("way") == "up"))
        .group_by("packet")
        .agg(pl.col("end_ns").last() - pl.col("rx_ns").sum())
        for scenario in (path, with_cpus(path, client={"timer": f"{TIMER_NS}ns"}))
    )
    shifts = plain.join(late, on="packet").sort("packet").select(pl.col("end_ns_right") - pl.col("end_ns")).to_series()
    assert len(shifts) > 100
    assert set(shifts[:10]) == {0}
    assert set(shifts[20:]) == {TIMER_NS}


@pytest.mark.parametrize("preset", ["wifi-ath9k", "wifi-ath9k-htc", "wifi-ax"])
def test_a_radio_passes_one_frame_per_time_of_its_cpu(simulate: Simulate, preset: str) -> None:
    """A flood of 2,000 datagrams per second in each direction; the client needs 1 ms for each frame it receives or
    sends. A beacon takes the time of a frame. ath9k sends aggregates of what was ready."""
    flood = {"size": 100, "rate": "1.6mbit", "start": 0, "stop": 0.3}
    down = {"name": "down", "sender": "server", "receiver": "client"} | flood
    up = {"name": "up", "sender": "client", "receiver": "server"} | flood
    for direction, key in ((down, "received"), (up, "sent")):
        scenario = {
            "testbed": {"preset": preset},
            "test": {"name": "ping", "length": 0.6, "delay": 0.2, "datagrams": [direction]},
            "measure": {"packets": "all"},
        }
        run = simulate(scenario, f"testbed.node.0.cpu.{key}=1ms", kernel="6.1")
        name = direction["name"]
        arrivals = run.packets.filter(pl.col("stream") == name).group_by("packet").last()["end_ns"].sort()
        if key == "received":
            gaps = arrivals[50:250].diff().drop_nulls()
            assert gaps.median() == 10**6
            assert set(gaps) <= {10**6, 2 * 10**6}
        start_ns = arrivals[0] + 100 * 10**6
        assert arrivals.is_between(start_ns, start_ns + 150 * 10**6).sum() == pytest.approx(150, abs=32)
