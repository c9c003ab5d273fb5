# SPDX-License-Identifier: Apache-2.0
"""Traps of queues: too short, in the wrong place, or hidden by another one. Defaults are those of tc(8)."""

from collections.abc import Iterator

import polars as pl

from hourglass.results.lint.evidence import (
    FRAME_BYTES,
    Evidence,
    Finding,
    Hop,
    ms_text,
    rate_text,
    size_text,
)
from hourglass.scenario.tc_words import rate_bps, size_bytes, time_us, word_after

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
    if hop.kind in BYTE_LIMITS:
        return size_bytes(limit)
    if hop.kind in PACKET_LIMITS:
        packets = int(limit) if limit.isdecimal() else PACKET_LIMITS[hop.kind]
        return packets * FRAME_BYTES
    return None


def queue_below_bdp(evidence: Evidence) -> Iterator[Finding]:
    """A bottleneck queue that overflowed and is shorter than the bandwidth-delay product."""
    for way in evidence.ways:
        hop, bdp = way.bottleneck, evidence.bdp_bytes(way)
        held = capacity_bytes(hop)
        if hop.kind != "netem" and held is not None and bdp is not None and held < bdp and evidence.drops(hop):
            yield Finding(
                "queue-below-bdp",
                f"the bottleneck's queue at {hop.place} ({hop.qdisc}) holds {size_text(held)}, less than the path's"
                f" bandwidth-delay product of {size_text(bdp)} ({rate_text(hop.rate_bps)} x"
                f" {ms_text(evidence.base_rtt_ns or 0)}), and it overflowed",
                f"loss-based TCP may leave the link idle after a loss; raise the limit to {-(-bdp // FRAME_BYTES)}"
                " packets or more, unless short buffers are the question",
            )


def netem_limit(evidence: Evidence) -> Iterator[Finding]:
    """netem keeps what it delays in a queue of 1000 packets: rate times delay must fit."""
    for way in evidence.ways:
        for hop in (hop for hop in way.hops if hop.kind == "netem"):
            delay_us = time_us(word_after(hop.qdisc, "delay")) or 0
            rate = way.bottleneck.rate_bps
            needed = -(-rate * delay_us // (8 * FRAME_BYTES * 10**6))
            limit = word_after(hop.qdisc, "limit")
            packets = int(limit) if limit.isdecimal() else NETEM_LIMIT
            if needed > packets:
                yield Finding(
                    "netem-limit",
                    f"netem at {hop.place} holds {packets} packets, but {rate_text(rate)} for {delay_us / 1000:g} ms"
                    f" are {needed}: it drops what it should delay",
                    f'give it "limit {2 * needed}", or the link a delay instead',
                )


def netem_own_egress(evidence: Evidence) -> Iterator[Finding]:
    """netem orphans the skbs it delays (net/sched/sch_netem.c, skb_orphan_partial): TCP Small Queues loses them."""
    for way in evidence.ways:
        hop = way.hops[0]
        delays = any(time_us(word_after(hop.qdisc, word)) for word in ("delay", "slot")) or rate_bps(
            word_after(hop.qdisc, "rate")
        )
        if hop.kind == "netem" and delays:
            yield Finding(
                "netem-own-egress",
                f"netem delays at {hop.place}, the sender's own egress: it orphans skbs, so TCP Small Queues does not"
                " count what waits there",
                "put the delay on a link (testbed.link.N.delay) or on a router's egress",
            )


def _median_in_window(evidence: Evidence, hop: Hop, column: str) -> float | None:
    place = (pl.col("node") == hop.node) & (pl.col("device") == hop.device) & evidence.window.holds()
    value = evidence.run.queues.filter(place)[column].drop_nulls().median()
    return float(value) if isinstance(value, int | float) else None


def bql_above_queue(evidence: Evidence) -> Iterator[Finding]:
    """Where BQL lets more into the ring than the qdisc above it can hold, the qdisc under test is not the queue."""
    for hop in evidence.hops():
        held, bql = capacity_bytes(hop), _median_in_window(evidence, hop, "bql_limit")
        if held is not None and bql is not None and not hop.shaped and bql > held:
            yield Finding(
                "bql-above-queue",
                f"BQL's limit at {hop.place} is {size_text(bql)}, more than the queue under test can hold"
                f" ({hop.qdisc}: {size_text(held)})",
                "most of the waiting is in the NIC's ring; shape above the NIC (testbed.shaper), raise the qdisc's"
                " limit or turn TSO off (testbed.link.N.tso)",
            )


def ring_hides_aqm(evidence: Evidence) -> Iterator[Finding]:
    """An AQM acts on the time in its own queue; what waits in the ring below is out of its sight."""
    for way in evidence.ways:
        hop = way.bottleneck
        target_us = time_us(word_after(hop.qdisc, "target")) or AQM_TARGET_US.get(hop.kind)
        ring = _median_in_window(evidence, hop, "ring_bytes")
        if target_us is None or ring is None or hop.rate_bps < hop.line_bps:
            continue
        waits_us = ring * 8 * 10**6 / hop.rate_bps
        if waits_us > target_us:
            yield Finding(
                "ring-hides-aqm",
                f"at {hop.place} the NIC's ring holds {size_text(ring)} ({waits_us / 1000:.3g} ms at"
                f" {rate_text(hop.rate_bps)}) in the median, more than the target of {hop.kind}"
                f" ({target_us / 1000:g} ms) above it",
                "the AQM does not see that queue: shape just below the line rate (testbed.shaper, or cake bandwidth),"
                " or turn TSO and GRO off there",
            )


def shaper_above_link(evidence: Evidence) -> Iterator[Finding]:
    """A shaper that asks for more than its cable carries never queues."""
    for hop in evidence.hops():
        assert evidence.scenario is not None
        rates = [one.rate for one in evidence.scenario.testbed.shaper if str(one.at) == hop.place]
        rates += [rate for word in ("bandwidth", "rate") if (rate := rate_bps(word_after(hop.qdisc, word)))]
        for rate in rates:
            room = hop.line_bps * FRAME_BYTES / FRAME_AND_GAP
            if rate > room:
                yield Finding(
                    "shaper-above-link",
                    f"the shaper at {hop.place} ({rate_text(rate)}) is faster than its link carries"
                    f" ({rate_text(hop.line_bps)}, of which preamble, FCS and gap leave {rate_text(room)})",
                    "the queue is in the NIC, not in the qdisc under test; give the shaper less than the link",
                )
