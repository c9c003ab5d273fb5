# SPDX-License-Identifier: Apache-2.0
"""Loss on a cable: independent frames, or bursts."""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer, PlainValidator, model_validator
from pydantic_core import CoreSchema

from hourglass.scenario.quantities import SHARE, Bounds, show
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import Schema, ValueKind, choice, list_of, quantity

SHARES = Bounds(SHARE, 0, 10**9)
MILLI = 1000
BURST_MAX = 10**6


def _burst(value: object) -> int:
    """Thousandths of a frame."""
    plain = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    milli = Fraction(repr(value)) * MILLI if plain else Fraction(0)
    if milli.denominator != 1 or not MILLI <= milli <= BURST_MAX * MILLI:
        raise ValueError(f"must be a number of frames from 1 to {BURST_MAX}, in whole thousandths")
    return int(milli)


Share = Annotated[int, *quantity(SHARES)]
Model = Annotated[
    Literal["independent", "gilbert-elliott"], *choice(("independent", "gilbert-elliott"), "A model of loss")
]
Burst = Annotated[
    int,
    PlainValidator(_burst),
    PlainSerializer(lambda milli: milli / MILLI if milli % MILLI else milli // MILLI),
    ValueKind("number", "frames", {"type": "number", "minimum": 1, "maximum": BURST_MAX}),
]


class Loss(TomlTable):
    """The loss of one direction of a cable."""

    model: Model = Field(
        default="independent",
        description='"independent": each frame is drawn separately. "gilbert-elliott": in bursts; no frame is lost'
        " in the good state, and every frame in the bad state.",
    )
    rate: Share = Field(description="Long-term share of frames lost.")
    burst: Burst | None = Field(
        default=None, description="Mean number of consecutive frames lost. A burst's length is geometric."
    )

    @model_validator(mode="after")
    def _possible(self) -> "Loss":
        bursts = self.model == "gilbert-elliott"
        if bursts != (self.burst is not None):
            raise ValueError('model = "gilbert-elliott" needs burst, and no other model has it')
        most = SHARES.high * self.burst // (self.burst + MILLI) if self.burst else SHARES.high
        if self.rate > most:
            most_here = f"{show(most, SHARE)} here"
            raise ValueError(
                f"rate must be at most burst / (burst + 1), {most_here}: a frame that arrives ends a burst"
            )
        return self


def _both(value: object) -> Any:
    """Accept one value for both directions, and a share for independent loss."""
    if isinstance(value, dict):
        loss = Loss.model_validate(value)  # here, so that an error names the key as it was written
        return loss, loss
    directions = list(value) if isinstance(value, list | tuple) else [value, value]
    try:
        if len(directions) != 2:
            raise ValueError
        return tuple(
            direction if isinstance(direction, dict) else Loss.model_construct(rate=SHARES.parse(direction))
            for direction in directions
        )
    except ValueError:
        example = '{ model = "gilbert-elliott", rate = "0.1%", burst = 5 }'
        raise ValueError(
            f"must be {SHARES.allowed()}, or {example}; or a list of two, for the two directions"
        ) from None


def _write(pair: tuple[Loss, Loss]) -> Any:
    first, second = (show(loss.rate, SHARE) if loss.burst is None else loss.model_dump() for loss in pair)
    return first if first == second else [first, second]


@dataclass(frozen=True)
class _Forms(ValueKind):
    """Return the schema of all forms: a share, a table, a list of two of these."""

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
