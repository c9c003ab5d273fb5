# SPDX-License-Identifier: Apache-2.0
"""Traps of statistics: samples of an idle path among the loaded ones, tails that rest on nothing, loud pings."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from hourglass.contract.summary import Warning
from hourglass.results.lint.subject import NS_PER_S, Subject, rate_text
from hourglass.results.series import ping_ms

IDLE_SHARE = 0.01
"""A hundredth of idle samples already moves p99 of what it is not about, or p1."""
P99_SAMPLES = 100
"""Fewer samples than this have no 99th percentile between two of them but the largest two."""
PING_SHARE = 0.01
HEADERS = {"icmp": 14 + 20 + 8, "udp": 14 + 20 + 8}


def idle_samples(subject: Subject) -> Iterator[Warning]:
    """Part of the loaded window in which no flow was there: late starts, early ends."""
    flows = subject.run.flows
    if not flows:
        return
    window = subject.window
    ends = _ends(subject)
    spans = [(flow.start_ns, min(flow.stop_ns, ends.get(flow.name, flow.stop_ns))) for flow in flows]
    idle, reached = 0, window.start_ns
    for start, stop in sorted(spans):
        idle += max(0, min(start, window.end_ns) - reached)
        reached = max(reached, stop)
    idle += max(0, window.end_ns - reached)
    share = idle / (window.end_ns - window.start_ns)
    if share > IDLE_SHARE:
        yield Warning(
            id="idle-samples",
            text=f"for {idle / NS_PER_S:.3g} s of the {window.length_s:g} s under load ({share:.0%}) no flow was"
            " running: percentiles of ping mix the idle path with the loaded one",
            remedy="start a flow at the window's start (test.stream_delays) and see why flows ended early (table"
            " `flow`)",
        )


def _ends(subject: Subject) -> dict[str, int]:
    """When each flow failed, ns; stops are as planned."""
    failed = subject.run.flow_events.filter(pl.col("event") == "failed")
    return {flow: int(t_ns) for flow, t_ns in failed.select("stream", "t_ns").iter_rows()}


def few_samples(subject: Subject) -> Iterator[Warning]:
    """A 99th percentile of fewer than 100 samples is one of the two largest."""
    few = {}
    for ping in subject.run.pings:
        answered = int((~np.isnan(ping_ms(subject.run, ping).within(subject.window).values)).sum())
        if 0 < answered < P99_SAMPLES:
            few[ping.name] = answered
    if few:
        listed = ", ".join(f"{name} {count}" for name, count in few.items())
        yield Warning(
            id="few-samples",
            text=f"p99 of ping rests on fewer than {P99_SAMPLES} samples ({listed}): it is all but the maximum",
            remedy="make the test longer (test.length) or the pings denser (test.ping_interval, test.udp_interval)",
        )


def ping_load(subject: Subject) -> Iterator[Warning]:
    """Pings that take more than a hundredth of the bottleneck are part of the load."""
    rates: dict[tuple[str, str], float] = {}
    for ping in subject.run.pings:
        bits = (ping.payload_bytes + HEADERS[ping.protocol]) * 8
        ends = (ping.client, ping.server)
        rates[ends] = rates.get(ends, 0) + bits * NS_PER_S / ping.interval_ns
    for (client, server), rate in rates.items():
        path = subject.paths.get((client, server))
        slowest = min((hop.rate_bps for hop in path.there + path.back), default=None) if path else None
        if slowest and rate > PING_SHARE * slowest:
            yield Warning(
                id="probe-load",
                text=f"the pings send {rate_text(rate)} each way, {rate / slowest:.1%} of the slowest hop"
                f" ({rate_text(slowest)})",
                remedy="they are part of the load: make them rarer (test.ping_interval, test.udp_interval)",
            )
