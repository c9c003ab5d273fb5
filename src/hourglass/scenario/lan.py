# SPDX-License-Identifier: Apache-2.0
"""Switches: the spanning tree protocol, and the VLANs of links.

A switch is a Linux bridge. All that its links join is one LAN, a subnet. With VLANs, each VLAN is a subnet.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, model_validator

from hourglass.scenario.quantities import TIME, Bounds, show
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import ValueKind, integer, list_of, quantity

BRIDGE = "br0"
"""The bridge device of a switch."""
DEFAULT_VLAN = 1
"""The VLAN of links that name none."""
VLAN_MAX = 4094
TICK_NS = 10**7
"""The kernel's unit for timers of the spanning tree protocol, 10 ms."""
NS_PER_S = 10**9


def _ticks(time_ns: int) -> int:
    if time_ns % TICK_NS:
        raise ValueError("must be a time in whole hundredths of a second, the kernel's unit")
    return time_ns


def _seconds(low: int, high: int) -> tuple[object, ...]:
    return *quantity(Bounds(TIME, low * NS_PER_S, high * NS_PER_S)), AfterValidator(_ticks)


Priority = Annotated[int, *integer(0, 65535, "")]
ForwardDelay = Annotated[int, *_seconds(2, 30)]
Hello = Annotated[int, *_seconds(1, 10)]
MaxAge = Annotated[int, *_seconds(6, 40)]


def _vlan(value: object) -> int | tuple[int, ...]:
    numbers: list[Any] = [*value] if isinstance(value, list | tuple) else [value]
    if (
        not numbers
        or any(isinstance(each, bool) or not isinstance(each, int) or not 1 <= each <= VLAN_MAX for each in numbers)
        or len({*numbers}) < len(numbers)
    ):
        raise ValueError(f"must be a VLAN, 1 to {VLAN_MAX}, or for a trunk a list of different ones, like [10, 20]")
    return tuple(numbers) if isinstance(value, list | tuple) else int(numbers[0])


_NUMBER_SCHEMA = {"type": "integer", "minimum": 1, "maximum": VLAN_MAX}
Vlan = Annotated[
    int | tuple[int, ...],
    PlainValidator(_vlan),
    PlainSerializer(lambda vlan: list(vlan) if isinstance(vlan, tuple) else vlan),
    ValueKind(
        "integer or [integer, …]",
        schema={"anyOf": [_NUMBER_SCHEMA, list_of(_NUMBER_SCHEMA, minItems=1, uniqueItems=True)]},
    ),
]


class Stp(TomlTable):
    """The spanning tree protocol (IEEE 802.1D-1998) of a switch, as Linux bridges have it: a tree for all VLANs."""

    priority: Priority = Field(
        default=32768, description="Priority of the switch. The one with the lowest is the root of the tree."
    )
    forward_delay: ForwardDelay = Field(
        default=15 * NS_PER_S, description="Time of a port in each of the states listening and learning."
    )
    hello: Hello = Field(default=2 * NS_PER_S, description="Interval of the root's messages.")
    max_age: MaxAge = Field(
        default=20 * NS_PER_S, description="Time after which a port forgets a root of which it no longer hears."
    )

    @model_validator(mode="after")
    def _hears_in_time(self) -> "Stp":
        """The standard's condition (8.10.2): a port hears at least two messages before it forgets their root."""
        if self.max_age < 2 * (self.hello + NS_PER_S):
            least = 2 * (self.hello + NS_PER_S)
            raise ValueError(f"max_age must be at least {show(least, TIME)}, twice the sum of hello and 1s")
        return self
