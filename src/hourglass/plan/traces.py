# SPDX-License-Identifier: Apache-2.0
"""A direction's rate over time in the wire driver's own words (kernel/drivers/wire_sysfs.c): a head line, then a
line a step.

    rate PERIOD                 then lines "TIME BPS"; PERIOD 0: no repetition
    opportunity PERIOD BYTES    then lines "TIME"

Times are ns after the epoch, which is test time 0; before it, and before the first step, the link's own rate holds.
"""

from bisect import bisect_right

from hourglass.scenario import Link
from hourglass.scenario.trace import Trace
from hourglass.scenario.units import seconds_ns

OPPORTUNITY_BYTES = 1538
"""A Mahimahi opportunity lets one 1500-byte packet pass: on the cable, header, preamble, FCS and gap counted, 1538."""

NS_PER_MS = 10**6


def trace_text(link: Link, side: int) -> str:
    """The rate of the direction away from `side` (0 or 1), outages worked in; "" when it does not change."""
    trace = (link.trace.there, link.trace.back)[side] if link.trace else None
    if link.outage:
        return _rates(0, _with_outages(link, side, trace))
    if trace is None:
        return ""
    if trace.opportunity_ms is not None:
        times = trace.opportunity_ms
        head = f"opportunity {times[-1] * NS_PER_MS} {OPPORTUNITY_BYTES}"
        return "\n".join([head, *(str(time * NS_PER_MS) for time in times)]) + "\n"
    return _rates(seconds_ns(trace.repeat), _steps(trace))


def _rates(period_ns: int, steps: list[tuple[int, int]]) -> str:
    return "\n".join([f"rate {period_ns}", *(f"{at_ns} {rate_bps}" for at_ns, rate_bps in steps)]) + "\n"


def _steps(trace: Trace | None) -> list[tuple[int, int]]:
    """(ns, bit/s) of a trace of rates; none of none."""
    return [(seconds_ns(step.at_s), step.rate_bps) for step in trace.rate or ()] if trace else []


def _with_outages(link: Link, side: int, trace: Trace | None) -> list[tuple[int, int]]:
    steps = _steps(trace)
    times = [at_ns for at_ns, _ in steps]
    spans = [(seconds_ns(start), seconds_ns(end)) for start, end in link.outage]
    starts = [start for start, _ in spans]

    def rate_bps(at_ns: int) -> int:
        span = bisect_right(starts, at_ns) - 1
        if span >= 0 and at_ns < spans[span][1]:
            return 0
        place = bisect_right(times, at_ns) - 1
        return steps[place][1] if place >= 0 else link.rate[side]

    return [(at_ns, rate_bps(at_ns)) for at_ns in sorted({*times, *(end for span in spans for end in span)})]
