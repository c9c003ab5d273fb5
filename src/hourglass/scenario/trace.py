# SPDX-License-Identifier: Apache-2.0
"""A link's rate and delay over time: steps, delivery opportunities, outages. `source_files.py` reads files."""

from fractions import Fraction
from itertools import pairwise, starmap
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.edge import DIRECTIONS, FORWARD, REVERSE
from hourglass.scenario.quantities import RATE, TIME, Bounds, parse_seconds, show
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import LIST, ValueKind, list_of, seconds, seconds_schema, sequence
from hourglass.scenario.values import HOUR_NS, STEP_RATE, Number

TRACE_S = Fraction(3600)
"""The wire driver's bound on times of a trace."""
STEPS_MAX = 500_000
DELAY_STEPS_MAX = 10_000
"""Each step of a delay is an event of the plan."""
STEP_DELAY = Bounds(TIME, 0, HOUR_NS)


class RateStep(NamedTuple):
    """From `at_s` on (s after test time 0) the link runs at `rate_bps`; 0 is an outage."""

    at_s: Number
    rate_bps: int


class DelayStep(NamedTuple):
    """From `at_s` on (s after test time 0) the link's propagation delay is `delay_ns`."""

    at_s: Number
    delay_ns: int


def parse_delays(value: object) -> tuple[DelayStep, ...]:
    """Return delays over time from lists of two."""
    rows = _rows(value, "delay", '[[0, "20ms"], [5, "35ms"]]', '[5, "35ms"]', STEP_DELAY, DELAY_STEPS_MAX)
    return tuple(starmap(DelayStep, rows))


def parse_steps(value: object) -> tuple[RateStep, ...]:
    """Return rates over time from lists of two."""
    rows = _rows(value, "rate", '[[0, "10mbit"], [5, "2mbit"]]', '[5, "2mbit"]', STEP_RATE, STEPS_MAX)
    return tuple(starmap(RateStep, rows))


def _rows(
    value: object, quantity: str, example: str, step_example: str, bounds: Bounds, most: int
) -> list[tuple[Number, int]]:
    """Return the times and values of at most `most` steps."""
    rows = []
    for row in sequence(value, f"steps [seconds, {quantity}], like {example}"):
        pair = sequence(row, f"two: seconds and the {quantity} from then on")
        if len(pair) != 2:
            raise ValueError(f"must be steps of two values, [seconds, {quantity}], like {step_example}")
        rows.append((parse_seconds(pair[0], Fraction(0), TRACE_S), bounds.parse(pair[1])))
    if not 0 < len(rows) <= most or any(later[0] <= earlier[0] for earlier, later in pairwise(rows)):
        raise ValueError(f"must be 1 to {most} steps [seconds, {quantity}] with increasing times")
    return rows


def write_steps(steps: tuple[RateStep, ...]) -> list[list[object]]:
    """Return the steps in the form that `parse_steps` takes."""
    return [[step.at_s, show(step.rate_bps, RATE)] for step in steps]


def _opportunities(value: object) -> tuple[int, ...]:
    times = sequence(value, "times in ms")
    plain = all(type(time) is int and 0 <= time <= TRACE_S * 1000 for time in times)
    if not plain or not 0 < len(times) <= STEPS_MAX or times != sorted(times) or times[-1] == 0:
        raise ValueError(
            f"must be 1 to {STEPS_MAX} whole ms in ascending order, the last above 0 and at most {TRACE_S * 1000}"
        )
    return tuple(times)


def _spans(value: object) -> tuple[tuple[Number, Number], ...]:
    spans: list[tuple[Number, Number]] = []
    for row in sequence(value, "spans [start, end] in seconds"):
        ends = sequence(row, "two: start and end in seconds")
        if len(ends) != 2:
            raise ValueError("must be spans of two values, [start, end] in seconds, like [10, 10.5]")
        start, end = (parse_seconds(end, Fraction(0), TRACE_S) for end in ends)
        if end <= start or (spans and start <= spans[-1][1]):
            raise ValueError(
                "must be spans [start, end] in seconds, one after another, each with its end after its start"
            )
        spans.append((start, end))
    return tuple(spans)


_TIME = seconds_schema(Fraction(0), TRACE_S)
_STEP = {"type": "array", "prefixItems": [_TIME, STEP_RATE.schema()], "minItems": 2, "maxItems": 2}
STEPS = list_of(_STEP, minItems=1)
Steps = Annotated[
    tuple[RateStep, ...],
    PlainValidator(parse_steps),
    PlainSerializer(write_steps),
    ValueKind("list of [seconds, rate]", "bit/s", STEPS),
]
_DELAY = {"type": "array", "prefixItems": [_TIME, STEP_DELAY.schema()], "minItems": 2, "maxItems": 2}
Delays = Annotated[
    tuple[DelayStep, ...],
    PlainValidator(parse_delays),
    PlainSerializer(lambda steps: [[step.at_s, show(step.delay_ns, TIME)] for step in steps]),
    ValueKind("list of [seconds, delay], or file", "ns", list_of(_DELAY, minItems=1)),
]
Opportunities = Annotated[
    tuple[int, ...],
    PlainValidator(_opportunities),
    LIST,
    ValueKind("list of whole numbers", "ms", list_of({"type": "integer", "minimum": 0}, minItems=1)),
]
Spans = Annotated[
    tuple[tuple[Number, Number], ...],
    PlainValidator(_spans),
    PlainSerializer(lambda spans: [list(span) for span in spans]),
    ValueKind("list of [start, end]", "s", list_of(list_of(_TIME, minItems=2, maxItems=2))),
]
Repeat = Annotated[Number, *seconds(Fraction(0), TRACE_S, "number, 0 = never")]


class Trace(TomlTable):
    """One direction over time: the rate, as `rate` or `opportunity_ms`, and `delay`. Before the first step, the link's
    own value holds."""

    rate: Steps | None = Field(default=None, description="Rate from each time on. 0 is an outage.")
    repeat: Repeat = Field(default=0, description="Period after which the steps repeat. 0: never; the last step stays.")
    opportunity_ms: Opportunities | None = Field(
        default=None,
        description="A Mahimahi trace: at each time, one 1500-byte packet may leave. It repeats after the last.",
    )

    delay: Delays | None = Field(
        default=None,
        description="Propagation delay from each time on, or the name of a file with a line `SECONDS MS` per step. No"
        " frame overtakes another.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> "Trace":
        if (self.rate is None) == (self.opportunity_ms is None) and (self.rate or not self.delay):
            raise ValueError("needs either rate = [[seconds, rate], …] or opportunity_ms = [ms, …], or only delay")
        ends = [steps[-1].at_s for steps in (self.rate, self.delay) if steps]
        if self.repeat and (not ends or self.repeat < max(ends)):
            raise ValueError("repeat needs rate or delay, and must not be before its last step")
        if self.repeat and self.delay and self.repeat == self.delay[-1].at_s:
            raise ValueError("repeat must be after the last step of delay")
        if self.repeat and self.rate and not _moves(self.rate, self.repeat):
            raise ValueError("rate is 0 in every period, so no frame would ever pass; remove repeat for an outage")
        return self


def _moves(steps: tuple[RateStep, ...], repeat: Number) -> bool:
    """Return true if a period carries any data. Before its first step the link's rate holds, which is never 0."""
    ends = [*(step.at_s for step in steps[1:]), repeat]
    return steps[0].at_s > 0 or any(step.rate_bps and end > step.at_s for step, end in zip(steps, ends, strict=True))


def _both(value: object) -> Any:
    """Accept one trace for both directions."""
    if isinstance(value, list | tuple):
        value = {"rate": value}
    if isinstance(value, dict) and not value.keys() & set(DIRECTIONS):
        return dict.fromkeys(DIRECTIONS, value)
    if isinstance(value, dict):
        return {
            direction: {"rate": trace} if isinstance(trace, list | tuple) else trace
            for direction, trace in value.items()
        }
    return value


class Traces(TomlTable):
    """The traces of a link's two directions."""

    forward: Trace | None = Field(default=None, description=FORWARD)
    reverse: Trace | None = Field(default=None, description=REVERSE)


LinkTraces = Annotated[Traces, BeforeValidator(_both), ValueKind("steps, file, or table")]
