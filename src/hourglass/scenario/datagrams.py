# SPDX-License-Identifier: Apache-2.0
"""`[[test.datagrams]]`: one-way streams of UDP in addition to the test's, such as a call, a camera or a game.

rate = "1mbit"                                    steady
rate = [[0, "1mbit"], [5, 0], [6, "20mbit"]]      over time; with `repeat`, on and off
interval = "40ms", burst = 9                      nine packets together, 25 times a second
"""

from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.ip_marks import Ecn, Marking
from hourglass.scenario.quantities import RATE, TIME, Bounds, seconds_ns, show
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.trace import STEPS, RateStep, Repeat, parse_steps, write_steps
from hourglass.scenario.value_kinds import ValueKind, integer, pattern, quantity
from hourglass.scenario.values import HOUR_NS, NodeName, PositiveSeconds, Seconds

STEADY = Bounds(RATE, 1000, 10**11)
RATE_MAX = 10**11
PHASES_MAX = 10_000
"""The most spans of steady rate in one stream; each is written into the plan."""
SIZE = 1200
"""WebRTC's largest payload of video in one packet."""


def _rates(value: object) -> tuple[RateStep, ...]:
    if not isinstance(value, list | tuple):
        return (RateStep(0, STEADY.parse(value)),)
    steps = parse_steps(value)
    if all(step.rate_bps == 0 for step in steps) or any(step.rate_bps > RATE_MAX for step in steps):
        raise ValueError(f"must be steps [seconds, rate], at least one above 0, each at most {show(RATE_MAX, RATE)}")
    return steps


def _write(steps: tuple[RateStep, ...]) -> object:
    return show(steps[0].rate_bps, RATE) if len(steps) == 1 and steps[0].at_s == 0 else write_steps(steps)


RateOverTime = Annotated[
    tuple[RateStep, ...],
    PlainValidator(_rates),
    PlainSerializer(_write),
    ValueKind("rate, or list of [seconds, rate]", "bit/s", {"anyOf": [STEADY.schema(), STEPS]}),
]
Interval = Annotated[int, *quantity(Bounds(TIME, 1000, HOUR_NS))]
Payload = Annotated[int, *integer(4, 65_507, "bytes", "B")]
Packets = Annotated[int, *integer(1, 10_000, "packets")]
StreamName = Annotated[
    str,
    *pattern(r"[A-Za-z0-9][A-Za-z0-9 ()._+-]{0,31}", "1 to 32 letters, digits, spaces and ( ) . _ + -"),
]


class ExtraDatagrams(TomlTable):
    """A one-way stream of UDP packets, during the load."""

    name: StreamName | None = Field(default=None, description="Name of the stream. Default: datagrams N.")
    sender: NodeName = Field(default="", description="The node that sends. Default: the test's client.")
    receiver: NodeName = Field(default="", description="The node that receives. Default: the test's server.")
    size: Payload = Field(default=SIZE, description="UDP payload of a packet.")
    rate: RateOverTime | None = Field(
        default=None,
        description="Rate of UDP payload: one value, or steps with times in seconds after `start`. 0: nothing is sent.",
    )
    repeat: Repeat = Field(default=0, description="Period after which the steps of `rate` repeat. 0: never.")
    interval: Interval | None = Field(default=None, description="Time between two transmissions, instead of `rate`.")
    burst: Packets = Field(default=1, description="Packets per transmission, back to back.")
    marking: Marking = Field(default=0, description="DSCP of its packets.")
    ecn: Ecn = Field(
        default="not_ect",
        description="ECN field of its packets: `ect1` as L4S sends, `ect0` as classic ECN sends, or `not_ect`. The"
        " sender does not respond to marks.",
    )
    start: Seconds = Field(default=0, description="When it starts, in seconds after the load's start.")
    stop: PositiveSeconds | None = Field(
        default=None, description="When it ends, in seconds after the load's start. Default: with the load."
    )

    @model_validator(mode="after")
    def _one_pace(self) -> "ExtraDatagrams":
        if (self.rate is None) == (self.interval is None):
            raise ValueError("needs either rate or interval, not both")
        if self.repeat and (self.rate is None or self.repeat <= self.rate[-1].at_s):
            raise ValueError("repeat needs steps of rate, and must be after the last of them")
        return self

    def phases(self, span_ns: int) -> int:
        """Raise ValueError if a time has too many spans of steady rate."""
        rounds = -(-span_ns // seconds_ns(self.repeat)) if self.repeat else 1
        return len(self.rate or (None,)) * rounds

    def spans(self, start_ns: int, stop_ns: int) -> list[tuple[int, int, int]]:
        """Return (start, stop, interval) of each span in which it sends, in ns. Each span has a separate grid."""
        if self.rate is None:
            return [(start_ns, stop_ns, self.interval or 1)]
        times = [seconds_ns(step.at_s) for step in self.rate]
        period_ns = seconds_ns(self.repeat) or stop_ns - start_ns
        ends = [*times[1:], max(period_ns, times[-1])]
        spans = []
        for begin_ns in range(start_ns, stop_ns, period_ns):
            for step, at_ns, end_ns in zip(self.rate, times, ends, strict=True):
                first_ns, last_ns = begin_ns + at_ns, min(begin_ns + end_ns, stop_ns)
                if step.rate_bps and first_ns < last_ns:
                    spans.append((first_ns, last_ns, interval_ns(self.size * self.burst, step.rate_bps)))
        return spans


def interval_ns(size_bytes: int, rate_bps: int) -> int:
    """Return the time that bytes take at a rate, to the nearest ns, at least 1."""
    return max(1, round(Fraction(size_bytes * 8 * 10**9, rate_bps)))
