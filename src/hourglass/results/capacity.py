# SPDX-License-Identifier: Apache-2.0
"""Compute the payload that the links of a run can carry. This is the lowest rate of a path over time, with traces,
outages and events that set a rate. Loss, other flows, ACKs and qdiscs that a `tc` event sets are left out."""

import re
from collections.abc import Sequence

import numpy as np

from hourglass.contract.plan import FlowStream, Hop
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window
from hourglass.results.stats import Floats
from hourglass.scenario import Scenario
from hourglass.scenario.testbed import Link
from hourglass.scenario.trace import Trace

SEGMENT = 1448
FRAME, LINE_FRAME = 1514, 1538
"""The bytes of a full frame with timestamps, as shapers and qdiscs count them, and as a line sends them."""
STEP_S = 0.01
_LINK = re.compile(r"testbed\.link\.(\d+)")


def capacity_mbps(run: Recording, flows: Sequence[FlowStream], window: Window) -> float | None:
    """Return the payload in Mbit/s that the paths of some flows carry in a window, in the directions of these flows.
    Several paths in one direction count as the fastest of them. None if a path is unknown or in the air."""
    times_s = np.arange(window.start_ns / NS_PER_S, window.end_ns / NS_PER_S, STEP_S)
    total = 0.0
    for upload in {flow.upload for flow in flows}:
        ends = {(flow.client, flow.server) for flow in flows if flow.upload == upload}
        paths = [path.there if upload else path.back for path in run.paths if (path.client, path.server) in ends]
        if not paths or not times_s.size or any(hop.medium == "air" for path in paths for hop in path):
            return None
        rates = [np.min([_payload_bps(run.scenario, hop, times_s) for hop in path], axis=0).mean() for path in paths]
        total += float(max(rates)) / 1e6
    return total or None


def _payload_bps(scenario: Scenario | None, hop: Hop, times_s: Floats) -> Floats:
    """Return the payload that a hop carries at each time."""
    line, steady = np.full(times_s.size, float(hop.line_bps)), hop.rate_bps * SEGMENT / FRAME
    match = _LINK.match(hop.origin)
    if scenario is not None and match:
        link = scenario.testbed.link[int(match[1])]
        direction = [end.node for end in link.ends].index(hop.node)
        line = _line_bps(scenario, link, direction, line, times_s)
    payload = line * SEGMENT / LINE_FRAME
    return np.asarray(np.minimum(payload, steady) if hop.rate_bps < hop.line_bps else payload)


def _line_bps(scenario: Scenario, link: Link, direction: int, line: Floats, times_s: Floats) -> Floats:
    """Return the rate of a link in a direction (0: from its first end) at each time."""
    trace = None if link.trace is None else (link.trace.forward, link.trace.reverse)[direction]
    if trace is not None:
        line = _trace_bps(trace, line, times_s)
    for event in sorted(scenario.event, key=lambda each: each.at):
        ends = [end for end in link.ends if end.node == event.node and event.device in (None, end.device)]
        if ends and event.set is not None and event.set.rate is not None:
            line = np.where(times_s >= event.at, float(event.set.rate[direction]), line)
    for start, end in link.outage or ():
        line = np.where((times_s >= start) & (times_s < end), 0.0, line)
    return line


def _trace_bps(trace: Trace, before: Floats, times_s: Floats) -> Floats:
    if trace.rate is None:
        times = trace.opportunity_ms or (1,)
        return np.full(times_s.size, len(times) * FRAME * 8000 / times[-1])
    starts, rates = np.array([step.at_s for step in trace.rate]), np.array([step.rate_bps for step in trace.rate])
    position = np.searchsorted(starts, times_s % trace.repeat if trace.repeat else times_s, side="right") - 1
    return np.asarray(np.where(position >= 0, rates[position], before), dtype=np.float64)
