# SPDX-License-Identifier: Apache-2.0
"""Pitfalls of queues: too short, in the wrong place, or hidden by another queue. Defaults are those of tc(8)."""

from collections.abc import Iterator
from itertools import chain

import polars as pl

from hourglass.contract.plan import Hop
from hourglass.contract.summary import RunWarning
from hourglass.qdisc_line import FRAME_BYTES
from hourglass.results.lint.context import (
    LintContext,
    device_name,
    line_of,
    ms_text,
    queue_name,
    rate_text,
    size_text,
)

FRAME_AND_GAP = 1538
NEARLY = 0.95
"""The part of the bandwidth-delay product from which a queue is long enough: the shortest ping includes sending."""


def capacity_bytes(hop: Hop) -> int | None:
    """Return the minimum bytes in a full qdisc: its limit, with each packet counted as one full frame. None: no hard
    limit."""
    limit = line_of(hop).limit
    return limit and limit.size * (1 if limit.in_bytes else FRAME_BYTES)


def queue_below_bdp(context: LintContext) -> Iterator[RunWarning]:
    """A bottleneck queue that overflowed and is shorter than the bandwidth-delay product."""
    for flow_path in context.flow_paths:
        bdp = context.bdp_bytes(flow_path)
        for hop in context.states(flow_path.bottleneck):
            limit, capacity = line_of(hop).limit, capacity_bytes(hop)
            if limit is None or capacity is None or bdp is None or line_of(hop).kind == "netem":
                continue
            if capacity < NEARLY * bdp and context.drops(hop):
                enough = f"{bdp} bytes" if limit.in_bytes else f"{-(-bdp // FRAME_BYTES)} packets"
                key = f" (stack.{hop.node}.qdisc)" if hop.node in context.switches else ""
                yield RunWarning(
                    id="queue-below-bdp",
                    text=f"the bottleneck's queue at {queue_name(hop)} ({hop.qdisc}) holds {size_text(capacity)}, less"
                    f" than the path's bandwidth-delay product of {size_text(bdp)} ({rate_text(flow_path.rate_bps)} x"
                    f" {ms_text(context.base_rtt_ns or 0)}), and it overflowed",
                    remedy=f"loss-based TCP may leave the link idle after a loss; raise the limit{key} to at least"
                    f" {enough}, unless you test short buffers",
                )


def netem_limit(context: LintContext) -> Iterator[RunWarning]:
    """netem stores delayed packets in a queue of 1000 packets: rate times delay must fit."""
    for flow_path in context.flow_paths:
        for hop in chain.from_iterable(map(context.states, flow_path.hops)):
            qdisc, rate = line_of(hop), flow_path.rate_bps
            needed = -(-rate * qdisc.delay_us // (8 * FRAME_BYTES * 10**6))
            if qdisc.delay_us and qdisc.limit and needed > qdisc.limit.size:
                yield RunWarning(
                    id="netem-limit",
                    text=f"netem at {queue_name(hop)} holds {qdisc.limit.size} packets, but {rate_text(rate)} for"
                    f" {qdisc.delay_us / 1000:g} ms are {needed}; it drops packets that it should delay",
                    remedy=f'set its "limit {2 * needed}", or use the link\'s delay instead',
                )


def netem_own_egress(context: LintContext) -> Iterator[RunWarning]:
    """netem orphans the skbs it delays (net/sched/sch_netem.c, skb_orphan_partial): TCP Small Queues loses them."""
    for flow_path in context.flow_paths:
        hop = next((hop for hop in context.states(flow_path.hops[0]) if line_of(hop).delays_packets), None)
        if hop is not None:
            yield RunWarning(
                id="netem-own-egress",
                text=f"netem delays packets at {queue_name(hop)}, the sender's egress; it orphans skbs, so TCP Small"
                " Queues does not count the packets that wait in it",
                remedy="set the delay on a link (testbed.link.N.delay) or at a router's egress",
            )


def _median_in_window(context: LintContext, hop: Hop, column: str) -> float | None:
    rows = (pl.col("node") == hop.node) & (pl.col("device") == hop.device) & context.window.contains()
    value = context.run.queues.filter(rows)[column].drop_nulls().median()
    return float(value) if isinstance(value, int | float) else None


def bql_above_queue(context: LintContext) -> Iterator[RunWarning]:
    """Warn if BQL lets more into the ring than the qdisc above can hold: the qdisc under test is then not the queue."""
    for hop in context.hops:
        capacity, bql = capacity_bytes(hop), _median_in_window(context, hop, "bql_limit")
        if capacity is not None and bql is not None and hop.shaper_bps is None and bql > capacity:
            tso = "" if hop.node in context.switches else " or turn TSO off (testbed.link.N.tso)"
            yield RunWarning(
                id="bql-above-queue",
                text=f"BQL's limit at {queue_name(hop)} is {size_text(bql)}, more than the queue under test can hold"
                f" ({hop.qdisc}: {size_text(capacity)})",
                remedy="packets wait mostly in the NIC's ring; shape above the NIC (testbed.shaper), raise the qdisc's"
                f" limit{tso}",
            )


def ring_hides_aqm(context: LintContext) -> Iterator[RunWarning]:
    """An AQM acts on the time in its queue. It does not see packets that wait in the NIC below, in its ring and its
    FIFO. The wait is the mean of data packets; without the packet probe, it is the ring's content at the line's
    rate."""
    for flow_path in context.flow_paths:
        hop = flow_path.bottleneck
        target_us = line_of(hop).target_us
        if target_us is None or hop.rate_bps < hop.line_bps:
            continue
        waits_ms, holds = context.ring_ms(flow_path), "ring and FIFO hold packets for"
        if waits_ms is None or hop.medium == "air":
            ring = _median_in_window(context, hop, "ring_bytes")
            waits_ms = None if ring is None else ring * 8 * 10**3 / hop.rate_bps
            holds = "ring holds" if ring is None else f"ring holds {size_text(ring)},"
        if waits_ms is not None and waits_ms * 1000 > target_us:
            yield RunWarning(
                id="ring-hides-aqm",
                text=f"at {queue_name(hop)} the NIC's {holds} {waits_ms:.3g} ms at {rate_text(hop.rate_bps)}, more"
                f" than the target of {line_of(hop).kind} ({target_us / 1000:g} ms) above it",
                remedy="the AQM does not see that queue; shape just below the line rate (testbed.shaper, or cake"
                " bandwidth)",
            )


def shaper_above_link(context: LintContext) -> Iterator[RunWarning]:
    """A shaper with a rate above its cable's or radio's never queues."""
    for hop in context.hops:
        usable_bps, reason = hop.line_bps, "in the air"
        if hop.medium == "cable":
            usable_bps = hop.line_bps * FRAME_BYTES // FRAME_AND_GAP
            reason = f"of which preamble, FCS and gap leave {rate_text(usable_bps)}"
        own_bps = line_of(hop).frame_bps if line_of(hop).kind != "fq" else None
        for rate, name in ((hop.shaper_bps, device_name(hop)), (own_bps, queue_name(hop))):
            if rate is not None and rate > usable_bps:
                yield RunWarning(
                    id="shaper-above-link",
                    text=f"the shaper at {name} ({rate_text(rate)}) is faster than its link carries"
                    f" ({rate_text(hop.line_bps)}, {reason})",
                    remedy="packets wait in the NIC, not in the qdisc under test; set the shaper below the link's rate",
                )
