# SPDX-License-Identifier: Apache-2.0
"""Figures that their path does not permit: the records are wrong, or the path is not that of the scenario."""

from collections.abc import Iterator

import numpy as np

from hourglass.contract.capabilities import VIRTUAL
from hourglass.contract.plan import Hop
from hourglass.contract.summary import RunWarning
from hourglass.results.lint.context import LintContext, device_name, line_of, ms_text, rate_text
from hourglass.results.series import NS_PER_MS, NS_PER_S, ping_ms

BURST_BYTES = 4 << 20
"""More than a shaper lets pass at once, unless its burst is set."""
TICK_NS = 64
"""netem rounds a delay down to ticks of this length."""


def faster_than_path(context: LintContext) -> Iterator[RunWarning]:
    """Warn of pings shorter than the delay of their path, and of flows above its rate. Events and programs can change
    both. An engine in real time has no modelled line, so its rates are unknown."""
    run = context.run
    if run.apps or not run.events.is_empty():
        return
    texts = [*_short_pings(context), *(_fast_flows(context) if run.info.engine == VIRTUAL else ())]
    if texts:
        yield RunWarning(
            id="faster-than-path",
            text="; ".join(texts),
            remedy="do not use these figures: the records are wrong, or the path is not that of the scenario",
        )


def _short_pings(context: LintContext) -> Iterator[str]:
    for ping in context.run.pings:
        path = context.paths.get((ping.client, ping.server))
        round_trips_ms = ping_ms(context.run, ping).values
        answered_ms = round_trips_ms[~np.isnan(round_trips_ms)]
        delay_ns = sum(map(_delay_ns, (*path.there, *path.back))) if path else 0
        if answered_ms.size and answered_ms.min() * NS_PER_MS < delay_ns:
            yield f"{ping.name} has a round trip of {answered_ms.min():.4g} ms on a path of {ms_text(delay_ns)}"


def _delay_ns(hop: Hop) -> int:
    """Return the shortest delay of a hop. An impairment may replace it by recorded delays."""
    return 0 if hop.impairments else max(0, hop.delay_ns - TICK_NS)


def _fast_flows(context: LintContext) -> Iterator[str]:
    """Compare the payload of all flows from a sender to a receiver with what the slowest hop carries until the end."""
    run = context.run
    for path in context.flow_paths:
        payload = sum(float(run.sockets.payload(flow)[1].max(initial=0)) for flow in path.flows)
        length_s = (run.end_ns - min(flow.start_ns for flow in path.flows)) / NS_PER_S
        hop = min(path.hops, key=_rate_bps)
        if length_s > 0 and payload > _rate_bps(hop) * length_s / 8 + _burst_bytes(context, hop):
            yield (
                f"flows from {path.sender} to {path.receiver} have {rate_text(payload * 8 / length_s)} of payload, and"
                f" {device_name(hop)} lets {rate_text(_rate_bps(hop))} pass"
            )


def _burst_bytes(context: LintContext, hop: Hop) -> int:
    """Return more than a hop lets pass at once."""
    shapers = context.scenario.testbed.shaper if context.scenario else ()
    bursts = [shaper.burst or 0 for shaper in shapers if str(shaper.at) == device_name(hop)]
    return BURST_BYTES + sum(bursts) + (line_of(hop).burst_bytes or 0)


def _rate_bps(hop: Hop) -> int:
    """Return the rate of medium, device shaper and qdisc: of all that it counts, or of frames if it counts less."""
    qdisc = line_of(hop)
    own_bps = max(qdisc.fixed_bps, qdisc.frame_bps or 0) if qdisc.fixed_bps else None
    return min(rate for rate in (hop.line_bps, hop.shaper_bps, own_bps) if rate)
