# SPDX-License-Identifier: Apache-2.0
"""Traps of queues: too short, in the wrong place, or hidden by another one. Defaults are those of tc(8)."""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.plan import Hop
from hourglass.contract.summary import Warning
from hourglass.results.lint.subject import FRAME_BYTES, Subject, kind, ms_text, place, rate_text, size_text
from hourglass.tc_words import rate_bps, size_bytes, time_us, word_after

NETEM_LIMIT = 1000
PACKET_LIMITS = {"pfifo": 1000, "pfifo_fast": 1000, "codel": 1000, "fq_codel": 10240, "pie": 1000, "fq_pie": 10240,
                 "fq": 10000, "sfq": 127, "netem": NETEM_LIMIT}  # fmt: skip
"""Default limits in packets; those of pfifo and pfifo_fast are the device's txqueuelen."""
BYTE_LIMITS = ("bfifo", "tbf", "red")
AQM_TARGET_US = {"codel": 5000, "fq_codel": 5000, "cake": 5000, "pie": 15000, "fq_pie": 15000}
FRAME_AND_GAP = 1538


def capacity_bytes(hop: Hop) -> int | None:
    """The least a qdisc holds when it is full: its limit, a packet counted as one full frame. None: no hard limit."""
    limit = word_after(hop.qdisc, "limit")
    if kind(hop) in BYTE_LIMITS:
        return size_bytes(limit)
    if kind(hop) in PACKET_LIMITS:
        packets = int(limit) if limit.isdecimal() else PACKET_LIMITS[kind(hop)]
        return packets * FRAME_BYTES
    return None


def queue_below_bdp(subject: Subject) -> Iterator[Warning]:
    """A bottleneck queue that overflowed and is shorter than the bandwidth-delay product."""
    for way in subject.ways:
        hop, bdp = way.bottleneck, subject.bdp_bytes(way)
        held = capacity_bytes(hop)
        if kind(hop) != "netem" and held is not None and bdp is not None and held < bdp and subject.drops(hop):
            yield Warning(
                id="queue-below-bdp",
                text=f"the bottleneck's queue at {place(hop)} ({hop.qdisc}) holds {size_text(held)}, less than the"
                f" path's bandwidth-delay product of {size_text(bdp)} ({rate_text(way.rate_bps)} x"
                f" {ms_text(subject.base_rtt_ns or 0)}), and it overflowed",
                remedy="loss-based TCP may leave the link idle after a loss; raise the limit to"
                f" {-(-bdp // FRAME_BYTES)} packets or more, unless short buffers are the question",
            )


def netem_limit(subject: Subject) -> Iterator[Warning]:
    """netem keeps what it delays in a queue of 1000 packets: rate times delay must fit."""
    for way in subject.ways:
        for hop in (hop for hop in way.hops if kind(hop) == "netem"):
            delay_us = time_us(word_after(hop.qdisc, "delay")) or 0
            rate = way.rate_bps
            needed = -(-rate * delay_us // (8 * FRAME_BYTES * 10**6))
            limit = word_after(hop.qdisc, "limit")
            packets = int(limit) if limit.isdecimal() else NETEM_LIMIT
            if needed > packets:
                yield Warning(
                    id="netem-limit",
                    text=f"netem at {place(hop)} holds {packets} packets, but {rate_text(rate)} for"
                    f" {delay_us / 1000:g} ms are {needed}: it drops what it should delay",
                    remedy=f'give it "limit {2 * needed}", or the link a delay instead',
                )


def netem_own_egress(subject: Subject) -> Iterator[Warning]:
    """netem orphans the skbs it delays (net/sched/sch_netem.c, skb_orphan_partial): TCP Small Queues loses them."""
    for way in subject.ways:
        hop = way.hops[0]
        delays = any(time_us(word_after(hop.qdisc, word)) for word in ("delay", "slot")) or rate_bps(
            word_after(hop.qdisc, "rate")
        )
        if kind(hop) == "netem" and delays:
            yield Warning(
                id="netem-own-egress",
                text=f"netem delays at {place(hop)}, the sender's own egress: it orphans skbs, so TCP Small Queues does"
                " not count what waits there",
                remedy="put the delay on a link (testbed.link.N.delay) or on a router's egress",
            )


def _median_in_window(subject: Subject, hop: Hop, column: str) -> float | None:
    rows = (pl.col("node") == hop.node) & (pl.col("device") == hop.device) & subject.window.holds()
    value = subject.run.queues.filter(rows)[column].drop_nulls().median()
    return float(value) if isinstance(value, int | float) else None


def bql_above_queue(subject: Subject) -> Iterator[Warning]:
    """Where BQL lets more into the ring than the qdisc above it can hold, the qdisc under test is not the queue."""
    for hop in subject.hops:
        held, bql = capacity_bytes(hop), _median_in_window(subject, hop, "bql_limit")
        if held is not None and bql is not None and hop.shaper_bps is None and bql > held:
            yield Warning(
                id="bql-above-queue",
                text=f"BQL's limit at {place(hop)} is {size_text(bql)}, more than the queue under test can hold"
                f" ({hop.qdisc}: {size_text(held)})",
                remedy="most of the waiting is in the NIC's ring; shape above the NIC (testbed.shaper), raise the"
                " qdisc's limit or turn TSO off (testbed.link.N.tso)",
            )


def ring_hides_aqm(subject: Subject) -> Iterator[Warning]:
    """An AQM acts on the time in its own queue; what waits in the ring below is out of its sight."""
    for way in subject.ways:
        hop = way.bottleneck
        target_us = time_us(word_after(hop.qdisc, "target")) or AQM_TARGET_US.get(kind(hop))
        ring = _median_in_window(subject, hop, "ring_bytes")
        if target_us is None or ring is None or hop.rate_bps < hop.line_bps:
            continue
        waits_us = ring * 8 * 10**6 / hop.rate_bps
        if waits_us > target_us:
            yield Warning(
                id="ring-hides-aqm",
                text=f"at {place(hop)} the NIC's ring holds {size_text(ring)} ({waits_us / 1000:.3g} ms at"
                f" {rate_text(hop.rate_bps)}) in the median, more than the target of {kind(hop)}"
                f" ({target_us / 1000:g} ms) above it",
                remedy="the AQM does not see that queue: shape just below the line rate (testbed.shaper, or cake"
                f" bandwidth){', or turn TSO and GRO off there' if hop.medium == 'cable' else ''}",
            )


def shaper_above_link(subject: Subject) -> Iterator[Warning]:
    """A shaper that asks for more than its cable or radio carries never queues."""
    for hop in subject.hops:
        own = (rate_bps(word_after(hop.qdisc, word)) for word in ("bandwidth", "rate"))
        room, why = hop.line_bps, "in the air"
        if hop.medium == "cable":
            room = hop.line_bps * FRAME_BYTES // FRAME_AND_GAP
            why = f"of which preamble, FCS and gap leave {rate_text(room)}"
        for rate in (hop.shaper_bps, *own):
            if rate is not None and rate > room:
                yield Warning(
                    id="shaper-above-link",
                    text=f"the shaper at {place(hop)} ({rate_text(rate)}) is faster than its link carries"
                    f" ({rate_text(hop.line_bps)}, {why})",
                    remedy="the queue is in the NIC, not in the qdisc under test; give the shaper less than the link",
                )
