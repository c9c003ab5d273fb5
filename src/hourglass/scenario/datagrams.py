# SPDX-License-Identifier: Apache-2.0
"""`[[test.datagrams]]`: one-way streams of UDP beside what the test sends: a call's, a camera's, a game's.

rate = "1mbit"                                    steady
rate = [[0, "1mbit"], [5, 0], [6, "20mbit"]]      over time; with `repeat`, on and off
interval = "40ms", burst = 9                      nine packets together, 25 times a second
"""

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.kinds import Kind, integer, pattern, quantity
from hourglass.scenario.marks import Ecn, Marking
from hourglass.scenario.table import Table
from hourglass.scenario.trace import STEPS, Repeat, Step, parse_steps, write_steps
from hourglass.scenario.units import RATE, TIME, Bounds, seconds_ns, show
from hourglass.scenario.values import HOUR_NS, NodeName, PositiveSeconds, Seconds

STEADY = Bounds(RATE, 1000, 10**11)
RATE_MAX = 10**11
PHASES_MAX = 10_000
"""Spans of a steady rate of one stream: each is written into the plan."""
SIZE = 1200
"""What WebRTC sends at most of a picture in one packet."""


def _rates(value: object) -> tuple[Step, ...]:
    if not isinstance(value, list | tuple):
        return (Step(0, STEADY.parse(value)),)
    steps = parse_steps(value)
    if all(step.rate_bps == 0 for step in steps) or any(step.rate_bps > RATE_MAX for step in steps):
        raise ValueError(f"steps [seconds, rate] of which one is above 0, each at most {show(RATE_MAX, RATE)}")
    return steps


def _write(steps: tuple[Step, ...]) -> object:
    return show(steps[0].rate_bps, RATE) if len(steps) == 1 and steps[0].at_s == 0 else write_steps(steps)


RateOverTime = Annotated[
    tuple[Step, ...],
    PlainValidator(_rates),
    PlainSerializer(_write),
    Kind("rate, or list of [seconds, rate]", "bit/s", {"anyOf": [STEADY.schema(), STEPS]}),
]
Interval = Annotated[int, *quantity(Bounds(TIME, 1000, HOUR_NS))]
Payload = Annotated[int, *integer(4, 65_507, "bytes", "B")]
Packets = Annotated[int, *integer(1, 10_000, "packets")]
StreamName = Annotated[
    str,
    *pattern(r"[A-Za-z0-9][A-Za-z0-9 ()._+-]{0,31}", "1 to 32 letters, digits, spaces and ( ) . _ + -"),
]


class DatagramStream(Table):
    """A one-way stream of UDP packets, in the load's span of time."""

    name: StreamName | None = Field(default=None, description="Its name; default: datagrams N.")
    sender: NodeName = Field(default="", description="The node that sends; default: the test's client.")
    receiver: NodeName = Field(default="", description="The node that receives; default: the test's server.")
    size: Payload = Field(default=SIZE, description="UDP payload of a packet.")
    rate: RateOverTime | None = Field(
        default=None,
        description="UDP payload; steady, or from each time on, in seconds after `start`; 0: nothing is sent.",
    )
    repeat: Repeat = Field(default=0, description="Period after which the steps of `rate` repeat; 0: never.")
    interval: Interval | None = Field(default=None, description="Time between two sendings, instead of `rate`.")
    burst: Packets = Field(default=1, description="Packets that are sent together, back to back.")
    marking: Marking = Field(default=0, description="Mark of its packets.")
    ecn: Ecn = Field(
        default="not_ect",
        description="ECN field of its packets: `ect1`, as L4S sends, `ect0`, as ECN did before, or neither. It does not"
        " answer marks.",
    )
    start: Seconds = Field(default=0, description="When it begins, in seconds after the load does.")
    stop: PositiveSeconds | None = Field(
        default=None, description="When it ends, in seconds after the load's beginning; default: with the load."
    )

    @model_validator(mode="after")
    def _one_pace(self) -> "DatagramStream":
        if (self.rate is None) == (self.interval is None):
            raise ValueError("either rate or interval says how often it sends")
        if self.repeat and (self.rate is None or self.repeat <= self.rate[-1].at_s):
            raise ValueError("repeat goes with steps of rate and is after the last of them")
        return self

    def phases(self, span_ns: int) -> int:
        """At most so many spans of a steady rate in a time."""
        rounds = -(-span_ns // seconds_ns(self.repeat)) if self.repeat else 1
        return len(self.rate or (None,)) * rounds

    def spans(self, start_ns: int, stop_ns: int) -> list[tuple[int, int, int]]:
        """(start, stop, interval) of each span in which it sends, ns; at each start its grid begins anew."""
        if self.rate is None:
            return [(start_ns, stop_ns, self.interval or 1)]
        times = [seconds_ns(step.at_s) for step in self.rate]
        period_ns = seconds_ns(self.repeat) or stop_ns - start_ns
        ends = [*times[1:], max(period_ns, times[-1])]
        found = []
        for begin_ns in range(start_ns, stop_ns, period_ns):
            for step, at_ns, end_ns in zip(self.rate, times, ends, strict=True):
                first_ns, last_ns = begin_ns + at_ns, min(begin_ns + end_ns, stop_ns)
                if step.rate_bps and first_ns < last_ns:
                    found.append((first_ns, last_ns, interval_ns(self.size * self.burst, step.rate_bps)))
        return found


def interval_ns(size_bytes: int, rate_bps: int) -> int:
    """How long so many bytes take at a rate, to the nearest ns, at least 1."""
    return max(1, round(Fraction(size_bytes * 8 * 10**9, rate_bps)))
