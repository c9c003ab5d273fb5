# SPDX-License-Identifier: Apache-2.0
"""The marks of `rrul` reach the qdiscs: cake's tins and prio's bands count the packets of marked sockets and pings, in
both directions."""

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = pytest.mark.guest

CAKE = "cake bandwidth 50mbit diffserv4"
TINS = {0: ("BK",), 1: ("BE",), 2: (), 3: ("CS5", "EF")}
"""diffserv4 (man tc-cake): CS1 is bulk, CS5 and EF are voice, no stream is video."""
UNSEEN = 100
"""Packets after the last sample (up to 10 ms, and the resets), and packets of no flow (ICMP, ARP)."""


def sent_packets(run: Recording, node: str, labels: tuple[str, ...]) -> int:
    """Return the number of packets that the node's sockets and UDP pings of these labels sent."""
    tcp = run.tcp.with_columns(pl.col("stream").cast(pl.String)).filter(
        pl.col("stream").str.split("::").list.last().is_in(labels)
    )
    upload = pl.col("stream").str.starts_with("upload")
    samples = tcp.filter((upload == pl.col("sender")) if node == "client" else (upload != pl.col("sender")))
    segments = samples.sort("t_ns").group_by("stream").agg(pl.col("segs_out").last())["segs_out"].sum()
    pings = run.ping_rows.with_columns(pl.col("stream").cast(pl.String)).filter(
        pl.col("stream").is_in([f"udp {label}" for label in labels])
    )
    return int(segments) + (pings.height if node == "client" else pings["rtt_ns"].count())


@pytest.mark.parametrize("node", ["client", "server"])
def test_each_mark_lands_in_its_tin(simulate: Simulate, node: str) -> None:
    settings = (f"stack.client.qdisc={CAKE}", f"stack.server.qdisc={CAKE}")
    run = simulate("L100M", "test.name=rrul", "test.length=2", "test.delay=1", *settings)
    counts = run.qdisc_stats.filter(pl.col("node") == node).sort("t_ns").group_by("name").agg(pl.col("value").last())
    counters = dict(counts.iter_rows())
    for tin, labels in TINS.items():
        dropped = counters[f"tin{tin}_drops"] + counters[f"tin{tin}_ack_drops"]
        passed, expected = counters[f"tin{tin}_sent_packets"] + dropped, sent_packets(run, node, labels)
        assert expected <= passed <= expected + (UNSEEN if labels else 0), (tin, passed, expected)
        assert bool(labels) == (passed > 300)


LARGEST = 45
"""Segments of an skb in the queue, at most: 64 KiB."""

PRIO = "prio bands 3 priomap 1 2 2 2 0 2 2 2 1 1 1 1 1 1 1 1"
"""prio classifies by the priority that Linux derives from the four old TOS bits (`ip_tos2prio`, net/ipv4/route.c), not
by the class. EF's 0xb8 has the bits 0x18, interactive bulk (4), which only this map puts into the first band. CS5, CS1
and BE have none of the bits: best effort (0), the second. With prio's default map all four are in one band."""
BANDS = {"1": ("EF",), "2": ("BE", "BK", "CS5")}


def test_prio_separates_ef_from_the_others(simulate: Simulate) -> None:
    """Count when the flows stop: later packets are resets for data in flight."""
    run = simulate("L100M", "test.name=rrul", "test.length=2", "test.delay=1", f"stack.client.qdisc={PRIO}")
    stop_ns = run.flows[0].stop_ns
    classes = run.qdisc.filter(
        (pl.col("node") == "client") & (pl.col("kind") == "prio class") & (pl.col("t_ns") == stop_ns)
    )
    rows = classes.select("handle", "packets", "qlen").iter_rows()
    counts = {handle.split(":")[1]: (packets, queued) for handle, packets, queued in rows}
    assert set(counts) == {"1", "2", "3"}
    assert counts["3"] == (0, 0), "nothing is bulk"
    for band, labels in BANDS.items():
        (passed, queued), expected = counts[band], sent_packets(run, "client", labels)
        assert expected - LARGEST * queued - UNSEEN <= passed <= expected + UNSEEN, (band, passed, queued, expected)
        assert passed > 3000
