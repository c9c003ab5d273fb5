# SPDX-License-Identifier: Apache-2.0
"""Warn about samples: idle ones in the loaded window, percentiles of too few, too many pings, tools that have none.
Warn about programs that keep the host busy."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from hourglass.contract.summary import RunWarning
from hourglass.results.lint.context import NS_PER_S, LintContext, rate_text
from hourglass.results.series import NS_PER_MS, ping_ms

IDLE_SHARE = 0.01
"""If 1 % of the samples are from the idle path, they already change p1 or p99."""
P99_SAMPLES = 100
"""With fewer samples, the 99th percentile lies between the two largest."""
PING_SHARE = 0.01
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 20, 40
ICMP_OR_UDP_BYTES = 8
MANY_CALLS = 1_000_000
"""They cost the host about 6.5 s."""
CALLS_PER_MS = 1000
"""A CPU on which a call takes 1 us makes no more."""


def program_total_loss(context: LintContext) -> Iterator[RunWarning]:
    """Warn if a tool for measurements lost everything, although the scenario expects its success."""
    for program in context.run.apps.values():
        if loss := program.unexpected_loss(context.run.experiment.checks):
            yield RunWarning(
                id="program-total-loss",
                text=f"{program.name}: {loss}",
                remedy=f'find out why, or expect it: `expect = "any"`, or a bound on apps.{program.name}.lost',
            )


def program_calls(context: LintContext) -> Iterator[RunWarning]:
    """Warn if a program made more system calls in its virtual time than a CPU makes: they take the host's time. The
    host's CPU time itself differs between runs. Clock reads without a call count too, though they cost less."""
    for program in context.run.apps.values():
        starts = program.starts
        calls = int(starts["calls"].sum())
        life_ms = int((starts["end_ns"].fill_null(context.run.end_ns) - starts["t_ns"]).sum()) / NS_PER_MS
        if calls >= MANY_CALLS and calls > CALLS_PER_MS * life_ms:
            number = f"{calls:,} system calls" + (f", {calls / life_ms:,.0f} per virtual ms" if life_ms else "")
            yield RunWarning(
                id="program-calls",
                text=f"{program.name}: {number}: they, not the network, take much of the run's time",
                remedy=f'let it sleep more often, or give {program.node} a CPU: `cpu = {{ syscall = "1us" }}`',
            )


def idle_samples(context: LintContext) -> Iterator[RunWarning]:
    """Warn if no flow was running for part of the loaded window: late starts, early ends."""
    flows = context.run.flows
    if not flows:
        return
    window = context.window
    ends = _ends(context)
    spans = [(flow.start_ns, min(flow.stop_ns, ends.get(flow.name, flow.stop_ns))) for flow in flows]
    idle, reached = 0, window.start_ns
    for start, stop in sorted(spans):
        idle += max(0, min(start, window.end_ns) - reached)
        reached = max(reached, stop)
    idle += max(0, window.end_ns - reached)
    share = window.per_s(idle / NS_PER_S) or 0.0
    if share > IDLE_SHARE:
        yield RunWarning(
            id="idle-samples",
            text=f"for {idle / NS_PER_S:.3g} s of the {window.length_s:g} s under load ({share:.0%}) no flow was"
            " running; percentiles of ping mix the idle path with the loaded one",
            remedy="start a flow at the window's start (test.stream_delays) and check why flows ended early (table"
            " `flow`)",
        )


def _ends(context: LintContext) -> dict[str, int]:
    """Return the end of each failed flow, ns. Other flows end as planned."""
    failed = context.run.flow_events.filter(pl.col("event") == "failed")
    return {flow: int(t_ns) for flow, t_ns in failed.select("stream", "t_ns").iter_rows()}


def few_samples(context: LintContext) -> Iterator[RunWarning]:
    """Warn if a 99th percentile has fewer than 100 samples: it is between the two largest."""
    few = {}
    for ping in context.run.pings:
        answered = int((~np.isnan(ping_ms(context.run, ping).within(context.window).values)).sum())
        if 0 < answered < P99_SAMPLES:
            few[ping.name] = answered
    if few:
        listed = ", ".join(f"{name} {count}" for name, count in few.items())
        yield RunWarning(
            id="few-samples",
            text=f"p99 of ping has fewer than {P99_SAMPLES} samples ({listed}); it is almost the maximum",
            remedy="make the test longer (test.length) or ping more often (test.ping_interval, test.udp_interval)",
        )


def ping_load(context: LintContext) -> Iterator[RunWarning]:
    """Warn if the pings take more than one percent of the slowest hop: they are part of the load."""
    rates: dict[tuple[str, str], float] = {}
    for ping in context.run.pings:
        ip_bytes = IPV6_BYTES if ":" in ping.address else IPV4_BYTES
        bits = (ETHERNET_BYTES + ip_bytes + ICMP_OR_UDP_BYTES + ping.payload_bytes) * 8
        ends = (ping.client, ping.server)
        rates[ends] = rates.get(ends, 0) + bits * NS_PER_S / ping.interval_ns
    for (client, server), rate in rates.items():
        path = context.paths.get((client, server))
        slowest = min((hop.rate_bps for hop in path.there + path.back), default=None) if path else None
        if slowest and rate > PING_SHARE * slowest:
            yield RunWarning(
                id="probe-load",
                text=f"the pings send {rate_text(rate)} in each direction, {rate / slowest:.1%} of the slowest hop"
                f" ({rate_text(slowest)})",
                remedy="they are part of the load; ping less often (test.ping_interval, test.udp_interval)",
            )
