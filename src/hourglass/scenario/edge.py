# SPDX-License-Identifier: Apache-2.0
"""How a link is shared and sold: media, and the policer or the shaper behind a line.

Each of the tables is of one direction. One that is written without `there` and `back` is of both.
"""

import re
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.kinds import Kind, list_of, quantity
from hourglass.scenario.table import Table
from hourglass.scenario.units import RATE, SIZE, TIME, Bounds
from hourglass.scenario.values import HOUR_NS

SOLD = Bounds(RATE, 1000, 10**12)
BYTES = Bounds(SIZE, 64, 10**9)
CYCLE = Bounds(TIME, 1000, 10**10)
GRANT_DELAY = Bounds(TIME, 0, 10**10)
WAIT = Bounds(TIME, 1, HOUR_NS)
NAME = r"[A-Za-z][A-Za-z0-9_-]{0,31}"

Sold = Annotated[int, *quantity(SOLD)]
Bytes = Annotated[int, *quantity(BYTES)]
Cycle = Annotated[int, *quantity(CYCLE)]
GrantDelay = Annotated[int, *quantity(GRANT_DELAY)]
Wait = Annotated[int, *quantity(WAIT)]

AS_TC = "frames count from the Ethernet header on, without preamble, padding, FCS and gap, as in tc"


class Policer(Table):
    """A token bucket that drops what finds too little in it."""

    rate: Sold = Field(description=f"What passes in the long run; {AS_TC}.")
    burst: Bytes = Field(description="What passes at once after a pause; at least a whole frame, MTU + 14 B.")


class LinkShaper(Table):
    """A queue behind a token bucket: tc-tbf's law and words, in the link."""

    rate: Sold = Field(description=f"What leaves in the long run; {AS_TC}.")
    burst: Bytes | None = Field(
        default=None, description="What passes at once after a pause; default: a whole frame, MTU + 14 B."
    )
    peak: Sold | None = Field(
        default=None, description="Rate at which a burst leaves; default: as it comes, at the line's rate."
    )
    limit: Bytes | None = Field(default=None, description="Bytes the queue holds; what comes beyond is dropped.")
    latency: Wait | None = Field(
        default=None, description="In place of `limit`: a frame that would wait longer is dropped."
    )
    ce_threshold: Wait | None = Field(
        default=None, description="Packets that waited longer are marked (ECN) if they can be: a step."
    )

    grant_cycle: Cycle | None = Field(
        default=None,
        description="The queue has to ask for the uplink (DOCSIS, LTE, PON): from one instant for requests to the next."
        " They count from test time 0.",
    )
    grant_delay: GrantDelay | None = Field(
        default=None, description="From a request to the first bit of what it grants."
    )

    @model_validator(mode="after")
    def _possible(self) -> "LinkShaper":
        if (self.limit is None) == (self.latency is None):
            raise ValueError("either limit, in bytes, or latency, a time")
        if self.peak is not None and self.peak <= self.rate:
            raise ValueError("peak is above rate; without it a burst leaves at the line's rate")
        if (self.grant_cycle is None) != (self.grant_delay is None):
            raise ValueError("grant_cycle and grant_delay go together")
        if self.grant_cycle and self.latency and self.latency <= self.grant_cycle + (self.grant_delay or 0):
            raise ValueError("latency must be above grant_cycle + grant_delay, or what comes too early is dropped")
        return self


THERE, BACK = "From the first end to the second.", "From the second end to the first."


class Policers(Table):
    """The policers of a link's two directions."""

    there: Policer | None = Field(default=None, description=THERE)
    back: Policer | None = Field(default=None, description=BACK)


class LinkShapers(Table):
    """The shapers of a link's two directions."""

    there: LinkShaper | None = Field(default=None, description=THERE)
    back: LinkShaper | None = Field(default=None, description=BACK)


One = TypeVar("One", covariant=True)


class BothWays(Protocol[One]):
    """What has something for each direction."""

    @property
    def there(self) -> One | None: ...

    @property
    def back(self) -> One | None: ...


def away(both: BothWays[One] | None, side: int) -> One | None:
    """Of the direction away from an end: 0 or 1."""
    return (both.there, both.back)[side] if both else None


def _both(table: type[Table]) -> BeforeValidator:
    """One table for both directions may be written without saying so."""

    def spread(value: object) -> Any:
        if not isinstance(value, dict) or {"there", "back"} & value.keys():
            return value
        one = table.model_validate(value)  # here, so that an error names the key as it was written
        return {"there": one, "back": one}

    return BeforeValidator(spread)


TABLE = Kind("table, or {there = table, back = table}")
LinkPolicers = Annotated[Policers, _both(Policer), TABLE]
LinkShaperWays = Annotated[LinkShapers, _both(LinkShaper), TABLE]


def _media(value: object) -> tuple[str, str]:
    names = list(value) if isinstance(value, list | tuple) else [value, value]
    if len(names) != 2 or not all(isinstance(one, str) and re.fullmatch(NAME, one, re.ASCII) for one in names):
        raise ValueError(
            "a name of 1 to 32 letters, digits, _ and -, beginning with a letter; or a list of two, for both directions"
        )
    return str(names[0]), str(names[1])


_NAME = {"type": "string", "pattern": f"^{NAME}$"}
Media = Annotated[
    tuple[str, str],
    PlainValidator(_media),
    PlainSerializer(lambda names: names[0] if names[0] == names[1] else list(names)),
    Kind("name, or [a to b, b to a]", schema={"anyOf": [_NAME, list_of(_NAME, minItems=2, maxItems=2)]}),
]
