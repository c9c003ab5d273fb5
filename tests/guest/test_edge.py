# SPDX-License-Identifier: Apache-2.0
"""Policers, shapers, grants and shared media of links, compared frame by frame with independent arithmetic
(edge.py)."""

from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, check_accounts, counters, line
from .edge import HEADERS, NS, ON_LINE, Bucket, Line, Sent, policed, sent_frames, shaped

pytestmark = pytest.mark.guest

MS = 10**6
CLIENT = ("client", "right")
AT_ONCE = {"rx_usecs": 0, "rx_frames": 0}
"""Settings that interrupt for each frame on arrival: one-way delays are those of the link."""
FLOOD = {"name": "udp_flood", "length": 2, "delay": 0.5, "udp_bandwidth": "80mbit", "udp_pktsize": 1200}
GIGABIT = 10**9
BOTTLENECK = "10mbit"


def flooded(test: dict[str, Any] | None = None, **link: Any) -> dict[str, Any]:
    """Return client and server on a cable, with datagrams at 80 Mbit/s. The probe follows all packets."""
    return {**line(nodes=2, **AT_ONCE, **link), "test": {**FLOOD, **(test or {})}, "measure": {"packets": "all"}}


def lost_packets(run: Recording) -> set[tuple[str, int]]:
    """Return the packets from the client that did not arrive."""
    missing = run.datagram_rows.filter(pl.col("owd_ns").is_null() & ~pl.col("refused"))
    unanswered = run.ping_rows.filter(pl.col("rtt_ns").is_null())
    return {*missing.select("stream", "seq").rows(), *unanswered.select("stream", "seq").rows()}


def keys_of(frames: list[Sent]) -> set[tuple[str, int]]:
    return {(frame.stream, frame.seq) for frame in frames}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_policer_drops_exactly_the_frames_without_tokens(simulate: Simulate, kernel: str) -> None:
    rate, burst = 50_000_000, 64_000
    run = simulate(flooded(policer={"forward": {"rate": "50mbit", "burst": "64KB"}}), kernel=kernel)
    frames = sent_frames(run, "client")
    dropped = list(policed(frames, Line(GIGABIT), Bucket(rate, burst)))
    assert len(dropped) > 4000
    assert lost_packets(run) == keys_of(dropped)
    # passed bytes: burst and rate, less than a frame below them
    size = HEADERS + FLOOD["udp_pktsize"]
    flood = run.datagram_rows.sort("seq")
    span_ns = flood["t_ns"][-1] - flood["t_ns"][0]
    inside = [frame for frame in frames if flood["t_ns"][0] <= frame.t_ns <= flood["t_ns"][-1]]
    passed = sum(frame.size for frame in inside) - sum(frame.size for frame in dropped)
    assert 0 <= burst + rate * span_ns / (8 * NS) - passed < size
    # the first dropped frame is the one that exceeds the burst
    first = next(k for k in range(10**6) if (k + 1) * size > burst + rate * flood["t_ns"][k] / (8 * NS)
                 - rate * flood["t_ns"][0] / (8 * NS))  # fmt: skip
    assert dropped[0].seq in (first, first - 1), "a ping may have been between them"
    client = counters(run, *CLIENT)
    assert (client["tx_policed"], client["tx_lost"], client["tx_shaper_full"]) == (len(dropped), 0, 0)
    assert run.summary.drops_by_reason["client"]["right"] == {"wire": {"policer": len(dropped)}}
    assert run.summary.drops["client"]["right"].cable == run.summary.links["client"]["right"].policed == len(dropped)


SHAPERS: dict[str, tuple[dict[str, Any], list[tuple[int, int]], dict[str, int]]] = {
    "rate": ({"rate": "20mbit", "limit": "300KB"}, [(20_000_000, 1514)], {"limit": 300_000}),
    "burst": ({"rate": "33333333bit", "burst": "100KB", "limit": "60KB"}, [(33_333_333, 100_000)], {"limit": 60_000}),
    "peak": (
        {"rate": "20mbit", "burst": "200KB", "peak": "50mbit", "latency": "30ms"},
        [(20_000_000, 200_000), (50_000_000, 1514)],
        {"latency_ns": 30 * MS},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SHAPERS)
def test_each_frame_leaves_a_shaper_at_its_ns_or_is_dropped(simulate: Simulate, kernel: str, name: str) -> None:
    key, buckets, bounds = SHAPERS[name]
    run = simulate(flooded({"length": 1}, shaper={"forward": key}), kernel=kernel)
    of_frames = list(
        shaped(sent_frames(run, "client"), Line(GIGABIT), [Bucket(*parameters) for parameters in buckets], **bounds)
    )
    dropped = [frame for frame, _, leaves in of_frames if leaves is None]
    assert len(dropped) > 1000
    assert lost_packets(run) == keys_of(dropped)
    flood = {row["seq"]: row["owd_ns"] for row in run.datagram_rows.iter_rows(named=True)}
    times = {(frame.stream, frame.seq): (frame, t, leaves) for frame, t, leaves in of_frames if leaves is not None}
    arrived = [(frame, leaves) for frame, _, leaves in times.values() if frame.stream == "udp upload"]
    assert {frame.seq: leaves - frame.t_ns for frame, leaves in arrived} == {
        seq: owd for seq, owd in flood.items() if owd is not None
    }
    check_accounts(run, 1000)
    rows = run.packets.filter((pl.col("way") == "up") & (pl.col("node") == "client"))
    waited = {(row["stream"], row["packet"]): row["shaper_ns"] for row in rows.iter_rows(named=True)}
    # the first ping may count twice in the packet probe; all others agree with the arithmetic
    numbered = {key: leaves - t for key, (_, t, leaves) in times.items() if key[0] != "udp upload"}
    assert {key: waited[key] for key in numbered} == numbered
    assert sorted(ns for (stream, _), ns in waited.items() if stream == "udp upload") == sorted(
        leaves - t for frame, t, leaves in times.values() if frame.stream == "udp upload"
    )
    assert counters(run, *CLIENT)["tx_shaper_full"] == len(dropped)
    assert run.summary.drops_by_reason["client"]["right"] == {"wire": {"shaper is full": len(dropped)}}
    assert run.summary.ping_layers_ms["icmp"]["client"]["shaper"].share > 0.5


def ecn_upload(cc: str, threshold: str, ip: int = 4, ecn: int = 1) -> dict[str, Any]:
    shaper = {"forward": {"rate": "50mbit", "limit": "400KB", "ce_threshold": threshold}}
    testbed = line(nodes=2, delay="5ms", shaper=shaper)
    return {
        "testbed": {**testbed["testbed"], "ip": ip},
        "stack": {"cc": cc, "sysctl": {"net.ipv4.tcp_ecn": ecn}},
        "test": {"name": "tcp_upload", "length": 4, "delay": 1},
        "measure": {"packets": "all"},
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ip", [4, 6])
def test_a_step_marks_exactly_the_packets_that_waited_longer(simulate: Simulate, kernel: str, ip: int) -> None:
    """A DCTCP receiver reports the exact amount of marked data. The flow is aborted, so reports of the last marks may
    be missing. The IP checksum of a marked packet is right, otherwise the receiver would have dropped it."""
    run = simulate(ecn_upload("dctcp", "2ms", ip), kernel=kernel)
    marked = counters(run, *CLIENT)["tx_marked"]
    up = run.packets.filter(pl.col("data") & (pl.col("way") == "up") & (pl.col("node") == "client"))
    data = up.filter(pl.col("stream") == run.flows[0].name)  # pings are not ECN-capable, so they are never marked
    late = data.filter(pl.col("shaper_ns") > 2 * MS)
    assert marked > 500
    assert late.height <= marked, "the receiver did not read the last marked packets"
    assert marked - late.height < 100
    reported = run.tcp.filter("sender")["delivered_ce"].max()
    assert 0 <= marked - reported < 100, "data of a round trip are in flight when the flow is aborted"
    assert run.summary.drops["client"]["right"].cable == 0
    assert run.summary.links == {"client": {"right": run.summary.links["client"]["right"]}}
    assert run.summary.links["client"]["right"].marked == marked
    # a queue of the threshold and little more: sawtooths are small, on 5.10 up to 8.3 ms, later 6
    assert data.filter(pl.col("t_ns") > 3 * NS)["shaper_ns"].max() < (9 if kernel == "5.10" else 6) * MS


@pytest.mark.parametrize("cc", ["cubic", "dctcp"])
def test_packets_without_ecn_are_dropped_instead_of_marked(simulate: Simulate, cc: str) -> None:
    run = simulate(ecn_upload(cc, "2ms", ecn=0), kernel="6.1")
    client = counters(run, *CLIENT)
    assert (client["tx_marked"] > 0) == (cc == "dctcp"), "DCTCP asks for ECN whatever the sysctl says"
    assert (client["tx_shaper_full"] > 0) == (cc == "cubic")


def spans(run: Recording, directions: dict[tuple[str, str], str]) -> list[tuple[int, int]]:
    """Return the times of (first bit, last bit) of every packet on a line, including the gap. `directions`: the sending
    node by (stream, way)."""
    occupied = []
    for (stream, way), node in directions.items():
        rows = run.packets.filter((pl.col("stream") == stream) & (pl.col("way") == way) & (pl.col("node") == node))
        before = pl.sum_horizontal("stack_ns", "qdisc_ns", "ring_ns", "contention_ns")
        first = pl.col("t_ns") + before
        occupied += rows.select(first=first, last=first + pl.col("wire_ns")).rows()
    return sorted(occupied)


def two_directions(duplex: str) -> dict[str, Any]:
    """Return datagrams that offer 80 % of the line's rate in each direction."""
    streams = [
        {"name": "there", "rate": "8mbit", "size": 1000, "burst": 3},
        {"name": "back", "rate": "8mbit", "size": 1000, "burst": 2, "sender": "server", "receiver": "client"},
    ]
    return {
        **line(BOTTLENECK, nodes=2, duplex=duplex),
        "test": {"name": "ping", "length": 2, "delay": 0.5, "datagrams": streams},
        "measure": {"packets": "all"},
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_duplex_is_one_line_for_both_directions(simulate: Simulate, kernel: str) -> None:
    """The line carries one frame at a time, in either direction, without a pause while frames wait."""
    half, full = (simulate(two_directions(duplex), kernel=kernel) for duplex in ("half", "full"))
    directions = {("there", "up"): "client", ("back", "up"): "server"}
    directions |= {
        (ping, way): node for ping in ("icmp", "udp") for way, node in (("up", "client"), ("down", "server"))
    }
    on_line = spans(half, directions)
    assert len(on_line) > 2000
    assert all(end <= start for (_, end), (start, _) in pairwise(on_line))
    assert not all(end <= start for (_, end), (start, _) in pairwise(spans(full, directions)))
    frames = half.datagram_rows.filter(pl.col("owd_ns").is_not_null())
    busy = frames.height * 8 * (1000 + HEADERS + ON_LINE)
    loaded_s = 2
    assert 0.98 * 10**7 * loaded_s < busy <= 10**7 * (loaded_s + 0.5), "frames in the rings left later"
    contention = half.packets.group_by("node").agg(pl.col("contention_ns").sum())
    assert (contention["contention_ns"] > 0).all()
    assert full.packets["contention_ns"].sum() == 0
    check_accounts(half, 1000)


@pytest.mark.parametrize("kernel", KERNELS)
def test_links_on_a_medium_share_its_line_by_direction(simulate: Simulate, kernel: str) -> None:
    """The uplinks of two modems are one line, their downlinks another."""
    nodes = [{"name": name} for name in ("one", "two")] + [{"name": "head", "role": "router"}]
    links = [
        {"ends": [f"{name}:eth0", f"head:{name}"], "rate": BOTTLENECK, "medium": ["up", "down"]}
        for name in ("one", "two")
    ]
    streams = [
        {"name": f"{name} {direction}", "rate": "6mbit", "size": size, "sender": ends[0], "receiver": ends[1]}
        for name, size in (("one", 1000), ("two", 700))
        for direction, ends in (("up", (name, "head")), ("down", ("head", name)))
    ]
    run = simulate(
        {
            "testbed": {"node": nodes, "link": links},
            "test": {
                "name": "ping",
                "client": "one",
                "server": "head",
                "length": 2,
                "delay": 0.5,
                "datagrams": streams,
            },
            "measure": {"packets": "all"},
        },
        kernel=kernel,
    )
    up = spans(run, {("one up", "up"): "one", ("two up", "up"): "two"})
    down = spans(run, {("one down", "up"): "head", ("two down", "up"): "head"})
    for on_line in (up, down):
        assert len(on_line) > 1000
        assert all(end <= start for (_, end), (start, _) in pairwise(on_line))
    assert not all(end <= start for (_, end), (start, _) in pairwise(sorted([*up, *down])))
    check_accounts(run, 1000)


GRANTS = {"rate": "20mbit", "limit": "256KB", "grant_cycle": "2300us", "grant_delay": "4500us"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_grant_comes_a_delay_after_the_next_instant(simulate: Simulate, kernel: str) -> None:
    """Check the uplink of an idle line to the ns; instants count from test time 0 for every cycle."""
    cycle, delay = 2_300_000, 4_500_000
    run = simulate(
        {
            **line(nodes=2, shaper={"forward": GRANTS}, **AT_ONCE),
            "test": {"name": "ping", "length": 10},
            "measure": {"packets": "all"},
        },
        kernel=kernel,
    )
    for ping in run.pings:
        size = HEADERS + ping.payload_bytes
        frame_ns = -(-8 * NS * (size + ON_LINE) // GIGABIT)
        rows = run.ping_rows.filter(pl.col("stream") == ping.name)[1:]
        comes = [row["t_ns"] + frame_ns for row in rows.iter_rows(named=True)]
        waits = [-(-t // cycle) * cycle + delay - t for t in comes]
        late = {rtt - wait - 2 * frame_ns for rtt, wait in zip(rows["rtt_ns"], waits, strict=True)}
        assert late <= {0, frame_ns}, "the answers to two frames of one grant follow one another"
        forward = run.packets.filter((pl.col("stream") == ping.name) & (pl.col("way") == "up") & (pl.col("visit") == 0))
        assert forward["shaper_ns"].to_list()[1:] == waits
    check_accounts(run, 80)


@pytest.mark.parametrize("kernel", KERNELS)
def test_grants_do_not_slow_a_full_line(simulate: Simulate, kernel: str) -> None:
    test = {"name": "tcp_upload", "length": 5, "delay": 2, "flow_cc": "cubic"}
    run = simulate({**line(delay="5ms", nodes=2, shaper={"forward": GRANTS}), "test": test}, kernel=kernel)
    assert run.summary.totals.upload_mbps == pytest.approx(20 * 1448 / 1514, rel=0.015)


def test_a_policer_costs_bbr_losses_and_cubic_rate(simulate: Simulate) -> None:
    """In the built-in `isp-policer` no packet queues, so only losses are a signal, and only CUBIC reacts to them.
    Neither flow exceeds the sold rate, which counts complete frames."""
    run = simulate("isp-policer", kernel="6.1")
    cubic, bbr = sorted(run.summary.flows, key=lambda flow: flow.cc != "cubic")
    assert (cubic.cc, bbr.cc) == ("cubic", "bbr")
    sold, burst_mbps = 50 * 1448 / 1514, 100_000 * 8e-6 / 30
    assert max(cubic.goodput_mbps, bbr.goodput_mbps) <= sold + burst_mbps
    assert bbr.goodput_mbps > 0.95 * sold > cubic.goodput_mbps > 0.8 * sold
    assert bbr.retransmits > 10 * cubic.retransmits > 0
    dropped = run.summary.drops_by_reason["isp"]
    assert {device: list(layers["wire"]) for device, layers in dropped.items()} == {
        "home1": ["policer"], "home2": ["policer"],
    }  # fmt: skip
    assert run.summary.tcp_rtt_ms.p99 < 22
