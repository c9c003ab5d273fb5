# SPDX-License-Identifier: Apache-2.0
"""Loss on a cable: each frame by itself, or in bursts."""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer, PlainValidator, model_validator
from pydantic_core import CoreSchema

from hourglass.scenario.kinds import Kind, Schema, choice, list_of, quantity
from hourglass.scenario.table import Table
from hourglass.scenario.units import SHARE, Bounds, show

SHARES = Bounds(SHARE, 0, 10**9)
MILLI = 1000
BURST_MAX = 10**6


def _burst(value: object) -> int:
    """Thousandths of a frame."""
    plain = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    milli = Fraction(repr(value)) * MILLI if plain else Fraction(0)
    if milli.denominator != 1 or not MILLI <= milli <= BURST_MAX * MILLI:
        raise ValueError(f"a number of frames from 1 to {BURST_MAX}, in whole thousandths")
    return int(milli)


Share = Annotated[int, *quantity(SHARES)]
Model = Annotated[
    Literal["independent", "gilbert-elliott"], *choice(("independent", "gilbert-elliott"), "A model of loss")
]
Burst = Annotated[
    int,
    PlainValidator(_burst),
    PlainSerializer(lambda milli: milli / MILLI if milli % MILLI else milli // MILLI),
    Kind("number", "frames", {"type": "number", "minimum": 1, "maximum": BURST_MAX}),
]


class Loss(Table):
    """How one direction of a cable loses frames."""

    model: Model = Field(
        default="independent",
        description='"gilbert-elliott": in bursts; nothing is lost in the good state, everything in the bad one.',
    )
    rate: Share = Field(description="Share of frames lost, in the long run.")
    burst: Burst | None = Field(
        default=None, description="Mean number of frames lost in a row; a burst's length is geometric."
    )

    @model_validator(mode="after")
    def _possible(self) -> "Loss":
        bursts = self.model == "gilbert-elliott"
        if bursts != (self.burst is not None):
            raise ValueError('model = "gilbert-elliott" needs burst, and burst goes with no other model')
        most = SHARES.high * self.burst // (self.burst + MILLI) if self.burst else SHARES.high
        if self.rate > most:
            most_here = f"{show(most, SHARE)} here"
            raise ValueError(f"rate is at most burst / (burst + 1), {most_here}: a frame that arrives ends a burst")
        return self


def _both(value: object) -> Any:
    """A value for both directions may be written once, and a share stands for independent loss."""
    if isinstance(value, dict):
        one = Loss.model_validate(value)  # here, so that an error names the key as it was written
        return one, one
    ways = list(value) if isinstance(value, list | tuple) else [value, value]
    try:
        if len(ways) != 2:
            raise ValueError
        return tuple(way if isinstance(way, dict) else Loss.model_construct(rate=SHARES.parse(way)) for way in ways)
    except ValueError:
        example = '{ model = "gilbert-elliott", rate = "0.1%", burst = 5 }'
        raise ValueError(f"{SHARES.allowed()}, or {example}; or a list of two, for the two directions") from None


def _write(pair: tuple[Loss, Loss]) -> Any:
    there, back = (show(one.rate, SHARE) if one.burst is None else one.model_dump() for one in pair)
    return there if there == back else [there, back]


@dataclass(frozen=True)
class _Forms(Kind):
    """The schema of all forms: a share, a table, a list of two of these."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        table = handler(core)["prefixItems"][0]
        either = [*SHARES.schema()["anyOf"], table]
        return {"anyOf": [*either, list_of({"anyOf": either}, minItems=2, maxItems=2)]}


Losses = Annotated[
    tuple[Loss, Loss],
    BeforeValidator(_both),
    PlainSerializer(_write),
    _Forms("percentage or table, or [a to b, b to a]", "ppb"),
]
