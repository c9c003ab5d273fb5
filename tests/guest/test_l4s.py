# SPDX-License-Identifier: Apache-2.0
"""DualPI2 against its definition (RFC 9332), and the counters of Accurate ECN against the marks of the queue."""

from typing import Any

import polars as pl
import pytest

from hourglass.contract.kernels import KERNELS
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.scenario.vocabulary import QDISCS_SINCE

from .conftest import Simulate, line

pytestmark = pytest.mark.guest

L4S = [name for name in KERNELS if tuple(map(int, name.split("."))) >= QDISCS_SINCE["dualpi2"]]
TO_L = "filter add dev right parent 10: protocol ip u32 match ip dsfield 0xb8 0xfc classid 10:1"
"""EF goes to the queue for low latency, which classes lead to, too; not ECT, it is dropped where others are marked."""
DELAY_S, SETTLED_S, END_S = 1, 9, 41
"""The load begins; PI2's loop has settled (around one that does not answer: 2.3 rad/s, a damping of 0.4); it ends."""
UDP_FRAME = 1200 + 8 + 20 + 14 + 24
"""Bytes on the cable: with headers, preamble, FCS and gap."""


def mean(run: Recording, name: str) -> float:
    """Of a counter of the client's DualPI2, once it has settled."""
    return float(
        settled(run.qdisc_stats).filter((pl.col("node") == "client") & (pl.col("name") == name))["value"].mean()
    )


def settled(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("t_ns").is_between(SETTLED_S * 10**9, END_S * 10**9 - 1))


def last(run: Recording, name: str) -> int:
    """A counter of the client's DualPI2 at the end."""
    rows = run.qdisc_stats.filter((pl.col("node") == "client") & (pl.col("name") == name))
    assert not rows.is_empty(), name
    return int(rows.sort("t_ns")["value"][-1])


@pytest.mark.parametrize("kernel", L4S)
@pytest.mark.parametrize("coupling", [1, 2, 3])
def test_pi2_settles_where_what_passes_is_what_the_cable_takes(simulate: Simulate, coupling: int, kernel: str) -> None:
    """Of a load C and L that does not answer C (1 - p²) + L (1 - k p) passes, which is the cable's rate in the end: one
    solution for p. C then loses p² of its packets, L k p; and the delay is PI2's target."""
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
def test_the_step_marks_what_waited_longer_and_nothing_else(simulate: Simulate, step_us: int, kernel: str) -> None:
    """Packet by packet, as the probe saw them wait. PI2 itself is far from its target of 1 s."""
    test: dict[str, Any] = {"name": "tcp_upload", "length": 3, "delay": 1}
    cables = line("50mbit", "5ms", nodes=2, tso=False, gso=False)
    qdisc = f"dualpi2 any_ect target 1s step_thresh {step_us}us"
    run = simulate(cables | {"test": test}, *DCTCP, f"stack.client.qdisc={qdisc}", kernel=kernel)
    flow = run.flows[0]
    waited = run.packets.filter(of(flow) & (pl.col("way") == "up") & (pl.col("node") == "client"))
    longer = waited.filter(pl.col("qdisc_ns") > step_us * 1000).height
    marks = last(run, "step_marks")
    assert marks == last(run, "ecn_mark") > 30
    assert longer == marks


@pytest.mark.parametrize("kernel", L4S)
def test_accurate_ecn_counts_the_marks_of_the_queue(simulate: Simulate, kernel: str) -> None:
    """Exactly, at both ends. The flow is paced above the cable's rate until that is raised: then nothing waits and
    nothing is marked any more, and what was marked has long been told when the flow ends."""
    test: dict[str, Any] = {"name": "tcp_upload", "length": 5, "delay": 1, "stream_rates": ["30mbit"]}
    event = {"at": 4, "node": "client", "device": "right", "set": {"rate": "1gbit"}}
    cables = line("20mbit", "5ms", nodes=2)
    run = simulate(
        cables | {"test": test, "event": [event]}, *DCTCP, "stack.client.qdisc=dualpi2 any_ect", kernel=kernel
    )
    rows = run.tcp.filter(of(run.flows[0])).sort("t_ns")
    sender, receiver = (rows.filter(pl.col("sender") == end)[-1] for end in (True, False))
    marks = last(run, "ecn_mark")
    assert marks > 100
    assert (sender["ecn_mode"].item(), receiver["ecn_mode"].item()) == (2, 2), "both speak AccECN"
    assert sender["delivered_ce"].item() == receiver["received_ce"].item() == marks
    assert sender["delivered_ce_bytes"].item() == receiver["received_ce_bytes"].item() > 1000 * marks
    assert run.summary.marks == {"client": {"right": {"qdisc": {"upload::1": marks}}}}
    arrived = run.packets.filter(of(run.flows[0]) & (pl.col("way") == "up") & (pl.col("node") == "server"))
    assert arrived.filter(pl.col("ecn") == "ce").height == marks
    check_conservation(run)


def check_conservation(run: Recording) -> None:
    """Of each codepoint: what was sent with it, or became it, ended somewhere; and what became it are its marks."""
    rows = run.codepoints
    assert rows.height > 0
    before, after = pl.col("sent") + pl.col("duplicated"), pl.col("delivered") + pl.col("dropped") + pl.col("in_flight")
    assert rows.filter(before.cast(pl.Int64) + pl.col("became") != after.cast(pl.Int64)).is_empty()
    for row in rows.iter_rows(named=True):
        own = run.marks.filter((pl.col("stream") == row["stream"]) & (pl.col("way") == row["way"]))
        into, out = (own.filter(pl.col(column) == row["ecn"]).height for column in ("ecn", "was"))
        assert row["became"] == into - out


@pytest.mark.parametrize("kernel", KERNELS)
def test_datagrams_are_marked_by_the_step_that_they_build_up(simulate: Simulate, kernel: str) -> None:
    """Streams of S together above the cable's rate C build a queue, in which packet n waits n (1/C - 1/S) with the ring
    behind it. What waits longer in the queue than its step is marked, if it may be, and nothing else. Queue, probe and
    receiver count the same."""
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
    way = (pl.col("way") == "up") & (pl.col("node") == "client")
    waited = run.packets.filter(way & pl.col("stream").is_in(["L4S", "before"]))
    longer = waited.filter(pl.col("qdisc_ns") > step_us * 1000)
    assert (longer["ecn"] == "ce").all()
    assert waited.filter(pl.col("ecn") == "ce").height == longer.height
    growth_us = UDP_FRAME * 8 / rate * 1e6 - interval_us
    load = run.packets.filter(way & pl.col("stream").is_in([one["name"] for one in streams])).sort("end_ns")
    waits_us = (load["qdisc_ns"] + load["ring_ns"]) / 1000
    assert waits_us[-1] == pytest.approx(load.height * growth_us, rel=0.05)
    assert 0.5 * waited.height < longer.height < waited.height
    ecn = run.summary.ecn
    assert {name: (one.ect1 > 0, one.ect0 > 0) for name, one in ecn.items() if name in ("L4S", "before")} == {
        "L4S": (True, False), "before": (False, True)
    }  # fmt: skip
    assert "without" not in ecn
    told = run.datagram_rows.filter(pl.col("ecn") == "ce").group_by("stream").len()
    marks = run.summary.marks["client"]["right"]["qdisc"]
    assert {name: count for name, count in marks.items() if name in ("L4S", "before")} == dict(told.rows())
    assert last(run, "ce_mark") == sum(marks.values())
    check_conservation(run)
