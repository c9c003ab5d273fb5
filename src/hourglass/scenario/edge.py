# SPDX-License-Identifier: Apache-2.0
"""The edge of a link: shared media, and the policer or the shaper after a line.

Each of the tables is of one direction. A table without `forward` and `reverse` is of both.
"""

import re
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.quantities import RATE, SIZE, TIME, Bounds
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import ValueKind, list_of, quantity
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

AS_TC = "Frames count from the Ethernet header on, without preamble, padding, FCS and gap, as in tc"


class Policer(TomlTable):
    """A token bucket that drops frames when it lacks tokens."""

    rate: Sold = Field(description=f"Long-term rate. {AS_TC}.")
    burst: Bytes = Field(
        description="Bucket size: the bytes that pass at once after a pause. At least a whole frame, MTU + 14 B."
    )


class LinkShaper(TomlTable):
    """A queue with a token bucket, like tc-tbf, in the link."""

    rate: Sold = Field(description=f"Long-term rate. {AS_TC}.")
    burst: Bytes | None = Field(
        default=None,
        description="Bucket size: the bytes that pass at once after a pause. Default: a whole frame, MTU + 14 B.",
    )
    peak: Sold | None = Field(default=None, description="Rate at which a burst leaves. Default: the line's rate.")
    limit: Bytes | None = Field(default=None, description="Bytes that the queue holds; more are dropped.")
    latency: Wait | None = Field(
        default=None, description="Limit as a time, instead of `limit`: a frame that would wait longer is dropped."
    )
    ce_threshold: Wait | None = Field(
        default=None,
        description="Packets that waited longer are marked with CE if they are ECN-capable (step marking).",
    )

    grant_cycle: Cycle | None = Field(
        default=None,
        description="Period of request opportunities for an uplink that needs grants (DOCSIS, LTE, PON). The first"
        " is at test time 0.",
    )
    grant_delay: GrantDelay | None = Field(
        default=None, description="Time from a request to the first bit that it grants."
    )

    @model_validator(mode="after")
    def _possible(self) -> "LinkShaper":
        if (self.limit is None) == (self.latency is None):
            raise ValueError("needs either limit (bytes) or latency (time), not both")
        if self.peak is not None and self.peak <= self.rate:
            raise ValueError("peak must be above rate; without it, a burst leaves at the line's rate")
        if (self.grant_cycle is None) != (self.grant_delay is None):
            raise ValueError("grant_cycle and grant_delay need each other")
        if self.grant_cycle and self.latency and self.latency <= self.grant_cycle + (self.grant_delay or 0):
            raise ValueError("latency must be above grant_cycle + grant_delay, or early frames are dropped")
        return self


FORWARD, REVERSE = "From the first end to the second.", "From the second end to the first."
DIRECTIONS = ("forward", "reverse")
"""The keys of a link's two directions. A link's side, 0 or 1, is the index of the direction away from that end."""


class Policers(TomlTable):
    """The policers of a link's two directions."""

    forward: Policer | None = Field(default=None, description=FORWARD)
    reverse: Policer | None = Field(default=None, description=REVERSE)


class LinkShapers(TomlTable):
    """The shapers of a link's two directions."""

    forward: LinkShaper | None = Field(default=None, description=FORWARD)
    reverse: LinkShaper | None = Field(default=None, description=REVERSE)


Item = TypeVar("Item", covariant=True)


class BothDirections(Protocol[Item]):
    """A pair of optional values, one per direction."""

    @property
    def forward(self) -> Item | None: ...

    @property
    def reverse(self) -> Item | None: ...


def away(both: BothDirections[Item] | None, side: int) -> Item | None:
    """Return the direction away from an end: 0 or 1."""
    return (both.forward, both.reverse)[side] if both else None


def _both(table: type[TomlTable]) -> BeforeValidator:
    """Accept one table for both directions."""

    def spread(value: object) -> Any:
        if not isinstance(value, dict) or value.keys() & set(DIRECTIONS):
            return value
        parsed = table.model_validate(value)  # here, so that an error names the key as it was written
        return dict.fromkeys(DIRECTIONS, parsed)

    return BeforeValidator(spread)


TABLE = ValueKind("table, or {forward = table, reverse = table}")
LinkPolicerPair = Annotated[Policers, _both(Policer), TABLE]
LinkShaperPair = Annotated[LinkShapers, _both(LinkShaper), TABLE]


def _media(value: object) -> tuple[str, str]:
    names = list(value) if isinstance(value, list | tuple) else [value, value]
    if len(names) != 2 or not all(isinstance(name, str) and re.fullmatch(NAME, name, re.ASCII) for name in names):
        raise ValueError(
            "a name of 1 to 32 letters, digits, _ and -, beginning with a letter; or a list of two, for both directions"
        )
    return str(names[0]), str(names[1])


_NAME = {"type": "string", "pattern": f"^{NAME}$"}
Media = Annotated[
    tuple[str, str],
    PlainValidator(_media),
    PlainSerializer(lambda names: names[0] if names[0] == names[1] else list(names)),
    ValueKind("name, or [a to b, b to a]", schema={"anyOf": [_NAME, list_of(_NAME, minItems=2, maxItems=2)]}),
]
