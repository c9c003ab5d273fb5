# SPDX-License-Identifier: Apache-2.0
"""DualPI2, compared with its definition (RFC 9332), and the counters of Accurate ECN, with the marks of the queue."""

from typing import Any

import polars as pl
import pytest

from hourglass.contract.kernels import KERNELS
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.scenario.vocabulary import QDISCS_SINCE

from .conftest import Simulate, counters, line

pytestmark = pytest.mark.guest

L4S = [name for name in KERNELS if tuple(map(int, name.split("."))) >= QDISCS_SINCE["dualpi2"]]
TO_L = "filter add dev right parent 10: protocol ip u32 match ip dsfield 0xb8 0xfc classid 10:1"
"""EF goes to the queue for low latency, since classes also select it. It is not ECT, so it is dropped instead of
marked."""
DELAY_S, SETTLED_S, END_S = 1, 9, 41
"""The start of the load, the time by which PI2's loop has settled, and the end of the load. With an unresponsive load
the loop has 2.3 rad/s and a damping of 0.4."""
UDP_FRAME = 1200 + 8 + 20 + 14 + 24
"""Bytes on the cable: with headers, preamble, FCS and gap."""


def mean(run: Recording, name: str) -> float:
    """Return the mean of a counter of the client's DualPI2, after it settled."""
    return float(
        settled(run.qdisc_stats).filter((pl.col("node") == "client") & (pl.col("name") == name))["value"].mean()
    )


def settled(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("t_ns").is_between(SETTLED_S * 10**9, END_S * 10**9 - 1))


def last(run: Recording, name: str) -> int:
    """Return a counter of the client's DualPI2 at the end."""
    rows = run.qdisc_stats.filter((pl.col("node") == "client") & (pl.col("name") == name))
    assert not rows.is_empty(), name
    return int(rows.sort("t_ns")["value"][-1])


@pytest.mark.parametrize("kernel", L4S)
@pytest.mark.parametrize("coupling", [1, 2, 3])
def test_pi2_settles_at_the_rate_of_the_cable(simulate: Simulate, coupling: int, kernel: str) -> None:
    """Of an unresponsive load C loses p² of its packets and L loses k p. The rest, C (1 - p²) + L (1 - k p), finally is
    the cable's rate. This has one solution for p. The delay is PI2's target."""
    test = {
        "name": "ping", "length": END_S - DELAY_S, "delay": DELAY_S, "ping_interval": 1,
        "datagrams": [{"name": "C", "interval": "1000us"}, {"name": "L", "interval": "10ms", "marking": "EF"}],
    }  # fmt: skip
    rate = 9_700_000
    cables = line(f"{rate}bit", "1ms", nodes=2)
    qdisc = f"dualpi2 target 15ms coupling_factor {coupling} step_thresh 1s"
    event = {"at": 0, "node": "client", "tc": TO_L}
    run = simulate(cables | {"test": test, "event": [event]}, f"stack.client.qdisc={qdisc}", kernel=kernel)
    passed, c, l4s = rate / 8 / UDP_FRAME, 1000.0, 100.0
    # C p² + L k p = C + L - passed
    p = (-l4s * coupling + ((l4s * coupling) ** 2 + 4 * c * (c + l4s - passed)) ** 0.5) / (2 * c)
    assert 0.15 < p < 1 / coupling, "no overload, in which RFC 9332 has other rules"
    sent = {name: settled(run.datagram_rows).filter(pl.col("stream") == name) for name in ("C", "L")}
    shares = {name: rows["owd_ns"].is_null().mean() for name, rows in sent.items()}
    assert mean(run, "prob") / 1e9 == pytest.approx(p, rel=0.05)
    assert shares["C"] == pytest.approx(p**2, rel=0.05)
    assert shares["L"] == pytest.approx(coupling * p, rel=0.05)
    assert shares["L"] / shares["C"] ** 0.5 == pytest.approx(coupling, rel=0.05)
    assert mean(run, "delay_c") == pytest.approx(15_000, rel=0.05)


DCTCP = ("stack.cc=dctcp", "stack.sysctl.net.ipv4.tcp_ecn=3", "measure.packets=all")


@pytest.mark.parametrize("kernel", L4S)
@pytest.mark.parametrize("step_us", [1000, 2000])
def test_the_step_marks_exactly_the_packets_that_waited_longer(simulate: Simulate, step_us: int, kernel: str) -> None:
    """Check each packet with its wait by the probe. PI2 is far from its target of 1 s."""
    test: dict[str, Any] = {"name": "tcp_upload", "length": 3, "delay": 1}
    cables = line("50mbit", "5ms", nodes=2, tso=False, gso=False)
    qdisc = f"dualpi2 any_ect target 1s step_thresh {step_us}us"
    run = simulate(cables | {"test": test}, *DCTCP, f"stack.client.qdisc={qdisc}", kernel=kernel)
    flow = run.flows[0]
    waited = run.packets.filter(belongs_to(flow) & (pl.col("way") == "up") & (pl.col("node") == "client"))
    longer = waited.filter(pl.col("qdisc_ns") > step_us * 1000).height
    marks = last(run, "step_marks")
    assert marks == last(run, "ecn_mark") > 30
    assert longer == marks


@pytest.mark.parametrize("kernel", L4S)
def test_accurate_ecn_counts_the_marks_of_the_queue(simulate: Simulate, kernel: str) -> None:
    """Both ends count exactly. The flow is paced above the cable's rate until that rate rises. Then no packet waits or
    is marked, so all marks are reported long before the flow ends."""
    test: dict[str, Any] = {"name": "tcp_upload", "length": 5, "delay": 1, "stream_rates": ["30mbit"]}
    event = {"at": 4, "node": "client", "device": "right", "set": {"rate": "1gbit"}}
    cables = line("20mbit", "5ms", nodes=2)
    run = simulate(
        cables | {"test": test, "event": [event]}, *DCTCP, "stack.client.qdisc=dualpi2 any_ect", kernel=kernel
    )
    rows = run.tcp.filter(belongs_to(run.flows[0])).sort("t_ns")
    sender, receiver = (rows.filter(pl.col("sender") == end)[-1] for end in (True, False))
    marks = last(run, "ecn_mark")
    assert marks > 100
    assert (sender["ecn_mode"].item(), receiver["ecn_mode"].item()) == (2, 2), "both speak AccECN"
    assert sender["delivered_ce"].item() == receiver["received_ce"].item() == marks
    assert sender["delivered_ce_bytes"].item() == receiver["received_ce_bytes"].item() > 1000 * marks
    assert run.summary.marks == {"client": {"right": {"qdisc": {"upload::1": marks}}}}
    arrived = run.packets.filter(belongs_to(run.flows[0]) & (pl.col("way") == "up") & (pl.col("node") == "server"))
    assert arrived.filter(pl.col("ecn") == "ce").height == marks
    check_conservation(run)


@pytest.mark.parametrize("kernel", L4S)
def test_a_nic_segments_skbs_of_accecn_only_if_it_can(simulate: Simulate, kernel: str) -> None:
    """The chips of the profiles cannot. Before, all of them could."""
    accecn = ("stack.sysctl.net.ipv4.tcp_ecn=3",)
    base = {**line("100mbit", "1ms", nodes=2), "test": {"name": "tcp_upload", "length": 1, "delay": 1}}
    able = {"event": [{"at": 0, "node": "client", "ethtool": "-K right tx-tcp-accecn-segmentation on"}]}
    runs = [simulate(base, kernel=kernel), simulate(base, *accecn, kernel=kernel)]
    runs.append(simulate(base | able, *accecn, kernel=kernel))
    classic, default, capable = (counters(run, "client", "right") for run in runs)
    assert default["tx_tso_skbs"] == 0
    assert default["tx_skbs"] == default["tx_frames"]
    assert classic["tx_tso_skbs"] > 100
    assert capable["tx_tso_skbs"] > 100


def check_conservation(run: Recording) -> None:
    """Check for each codepoint that all packets sent with it, or marked with it, are accounted for, and that the
    changes equal the marks."""
    rows = run.codepoints
    assert rows.height > 0
    before, after = pl.col("sent") + pl.col("duplicated"), pl.col("delivered") + pl.col("dropped") + pl.col("in_flight")
    assert rows.filter(before.cast(pl.Int64) + pl.col("became") != after.cast(pl.Int64)).is_empty()
    for row in rows.iter_rows(named=True):
        marks = run.marks.filter((pl.col("stream") == row["stream"]) & (pl.col("way") == row["way"]))
        into, out = (marks.filter(pl.col(column) == row["ecn"]).height for column in ("ecn", "was"))
        assert row["became"] == into - out


@pytest.mark.parametrize("kernel", KERNELS)
def test_datagrams_are_marked_by_the_step_that_they_build_up(simulate: Simulate, kernel: str) -> None:
    """Streams of a total rate S above the cable's rate C build a queue. In it packet n waits n (1/C - 1/S), including
    the ring. The marked packets are exactly those that wait longer in the queue than its step and are ECN-capable.
    Queue, probe and receiver have the same counts."""
    step_us, interval_us, rate = 2000, 900, 10_000_000
    streams = [
        {"name": "L4S", "interval": f"{2 * interval_us}us", "ecn": "ect1"},
        {"name": "before", "interval": f"{4 * interval_us}us", "ecn": "ect0"},
        {"name": "without", "interval": f"{4 * interval_us}us"},
    ]
    test = {"name": "ping", "length": 1, "delay": 0.5, "ping_ecn": "ect1", "datagrams": streams}
    cables = line(f"{rate}bit", "1ms", nodes=2)
    qdisc = f"fq_codel flows 1 target 1s ce_threshold {step_us}us"
    run = simulate(cables | {"test": test}, f"stack.client.qdisc={qdisc}", "measure.packets=all", kernel=kernel)
    at_client = (pl.col("way") == "up") & (pl.col("node") == "client")
    waited = run.packets.filter(at_client & pl.col("stream").is_in(["L4S", "before"]))
    longer = waited.filter(pl.col("qdisc_ns") > step_us * 1000)
    assert (longer["ecn"] == "ce").all()
    assert waited.filter(pl.col("ecn") == "ce").height == longer.height
    growth_us = UDP_FRAME * 8 / rate * 1e6 - interval_us
    load = run.packets.filter(at_client & pl.col("stream").is_in([stream["name"] for stream in streams])).sort("end_ns")
    waits_us = (load["qdisc_ns"] + load["ring_ns"]) / 1000
    assert waits_us[-1] == pytest.approx(load.height * growth_us, rel=0.05)
    assert 0.5 * waited.height < longer.height < waited.height
    ecn = run.summary.ecn
    assert {name: (counts.ect1 > 0, counts.ect0 > 0) for name, counts in ecn.items() if name in ("L4S", "before")} == {
        "L4S": (True, False), "before": (False, True)
    }  # fmt: skip
    assert "without" not in ecn
    received = run.datagram_rows.filter(pl.col("ecn") == "ce").group_by("stream").len()
    marks = run.summary.marks["client"]["right"]["qdisc"]
    assert {name: count for name, count in marks.items() if name in ("L4S", "before")} == dict(received.rows())
    assert last(run, "ce_mark") == sum(marks.values())
    check_conservation(run)
