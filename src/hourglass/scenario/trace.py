# SPDX-License-Identifier: Apache-2.0
"""A link's rate over time: steps, delivery opportunities, outages. Data only; files were read before (`source.py`)."""

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.kinds import LIST, Kind, list_of, seconds, seconds_schema, sequence
from hourglass.scenario.table import Table
from hourglass.scenario.units import RATE, parse_seconds, show
from hourglass.scenario.values import STEP_RATE, Number

TRACE_S = Fraction(3600)
"""The wire driver's bound on times of a trace."""
STEPS_MAX = 500_000


class Step(NamedTuple):
    """From `at_s` on (s after test time 0) the link runs at `rate_bps`; 0 is an outage."""

    at_s: Number
    rate_bps: int


def parse_steps(value: object) -> tuple[Step, ...]:
    """Rates over time from lists of two."""
    steps = []
    for row in sequence(value, 'steps [seconds, rate], like [[0, "10mbit"], [5, "2mbit"]]'):
        pair = sequence(row, "two: seconds and the rate from then on")
        if len(pair) != 2:
            raise ValueError('steps of two values, [seconds, rate], like [5, "2mbit"]')
        steps.append(Step(parse_seconds(pair[0], Fraction(0), TRACE_S), STEP_RATE.parse(pair[1])))
    if not 0 < len(steps) <= STEPS_MAX or any(b.at_s <= a.at_s for a, b in pairwise(steps)):
        raise ValueError(f"1 to {STEPS_MAX} steps [seconds, rate] whose times grow")
    return tuple(steps)


def write_steps(steps: tuple[Step, ...]) -> list[list[object]]:
    """As `parse_steps` takes them."""
    return [[step.at_s, show(step.rate_bps, RATE)] for step in steps]


def _opportunities(value: object) -> tuple[int, ...]:
    times = sequence(value, "times in ms")
    plain = all(type(time) is int and 0 <= time <= TRACE_S * 1000 for time in times)
    if not plain or not 0 < len(times) <= STEPS_MAX or times != sorted(times) or times[-1] == 0:
        raise ValueError(f"1 to {STEPS_MAX} whole ms that do not fall, the last above 0 and at most {TRACE_S * 1000}")
    return tuple(times)


def _spans(value: object) -> tuple[tuple[Number, Number], ...]:
    spans: list[tuple[Number, Number]] = []
    for row in sequence(value, "spans [start, end] in seconds"):
        ends = sequence(row, "two: start and end in seconds")
        if len(ends) != 2:
            raise ValueError("spans of two values, [start, end] in seconds, like [10, 10.5]")
        start, end = (parse_seconds(one, Fraction(0), TRACE_S) for one in ends)
        if end <= start or (spans and start <= spans[-1][1]):
            raise ValueError("spans [start, end] in seconds, one after another, each with its end after its start")
        spans.append((start, end))
    return tuple(spans)


_TIME = seconds_schema(Fraction(0), TRACE_S)
_STEP = {"type": "array", "prefixItems": [_TIME, STEP_RATE.schema()], "minItems": 2, "maxItems": 2}
STEPS = list_of(_STEP, minItems=1)
Steps = Annotated[
    tuple[Step, ...],
    PlainValidator(parse_steps),
    PlainSerializer(write_steps),
    Kind("list of [seconds, rate]", "bit/s", STEPS),
]
Opportunities = Annotated[
    tuple[int, ...],
    PlainValidator(_opportunities),
    LIST,
    Kind("list of whole numbers", "ms", list_of({"type": "integer", "minimum": 0}, minItems=1)),
]
Spans = Annotated[
    tuple[tuple[Number, Number], ...],
    PlainValidator(_spans),
    PlainSerializer(lambda spans: [list(span) for span in spans]),
    Kind("list of [start, end]", "s", list_of(list_of(_TIME, minItems=2, maxItems=2))),
]
Repeat = Annotated[Number, *seconds(Fraction(0), TRACE_S, "number, 0 = never")]


class Trace(Table):
    """The rate of one direction over time: `rate` or `opportunity_ms`. The link's own holds before the first step."""

    rate: Steps | None = Field(default=None, description="Rate from each time on; 0 is an outage.")
    repeat: Repeat = Field(default=0, description="Period after which `rate` repeats; 0: never, the last step stays.")
    opportunity_ms: Opportunities | None = Field(
        default=None,
        description="A Mahimahi trace: at each time one 1500-byte packet may leave; repeats after the last.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> "Trace":
        if (self.rate is None) == (self.opportunity_ms is None):
            raise ValueError("either rate = [[seconds, rate], …] or opportunity_ms = [ms, …]")
        if self.repeat and (self.rate is None or self.repeat < self.rate[-1].at_s):
            raise ValueError("repeat goes with rate and is not before its last step")
        if self.repeat and self.rate and not _moves(self.rate, self.repeat):
            raise ValueError("rate is 0 in all of each period: nothing would ever pass; leave repeat out for an outage")
        return self


def _moves(steps: tuple[Step, ...], repeat: Number) -> bool:
    """Whether a period carries anything. Before its first step the link's own rate holds, which is never 0."""
    ends = [*(step.at_s for step in steps[1:]), repeat]
    return steps[0].at_s > 0 or any(step.rate_bps and end > step.at_s for step, end in zip(steps, ends, strict=True))


def _both(value: object) -> Any:
    """A trace for both directions may be written without saying so."""
    if isinstance(value, list | tuple):
        value = {"rate": value}
    if isinstance(value, dict) and not {"there", "back"} & value.keys():
        return {"there": value, "back": value}
    if isinstance(value, dict):
        return {way: {"rate": one} if isinstance(one, list | tuple) else one for way, one in value.items()}
    return value


class Traces(Table):
    """The traces of a link's two directions."""

    there: Trace | None = Field(default=None, description="From the first end to the second.")
    back: Trace | None = Field(default=None, description="From the second end to the first.")


LinkTraces = Annotated[Traces, BeforeValidator(_both), Kind("steps, file, or table")]
