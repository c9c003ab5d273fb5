# SPDX-License-Identifier: Apache-2.0
"""Types of the tests' parameters: marks, labels of flows, sizes of answers, directions."""

import re
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from hourglass.scenario.suggest import closest
from hourglass.scenario.testkinds import MARKINGS, marking_name
from hourglass.scenario.units import RATE, SIZE, Bounds, show
from hourglass.scenario.values import LIST, Kind, one_of, sequence
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS

ANSWER = Bounds(SIZE, 1, 2**40)
UDP_RATE = Bounds(RATE, 1000, 10**11)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ()._+-]{0,31}", re.ASCII)
_DIRECTIONS = ("u", "d", "ud")


def words(value: object, what: str) -> list[Any]:
    """A list, or one text with commas as Flent takes it."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return sequence(value, what)


def marking(value: object) -> int:
    """A DSCP from its name or number."""
    if isinstance(value, str):
        if value.upper() in MARKINGS:
            return MARKINGS[value.upper()]
        value = int(value) if value.isascii() and value.isdecimal() and len(value) < 3 else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 64:
        hint = closest(value, tuple(MARKINGS)) if isinstance(value, str) else ""
        raise ValueError(f"{hint}A mark is one of {', '.join(MARKINGS)}, or a DSCP from 0 to 63")
    return value


def _show(dscp: int) -> str | int:
    name = marking_name(dscp)
    return name if name in MARKINGS else dscp


def _label(value: object) -> str:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ValueError("labels of 1 to 32 letters, digits, spaces and ( ) . _ + -")
    return value


def _direction(value: object) -> str:
    if value not in _DIRECTIONS:
        raise ValueError(f"a direction is one of {', '.join(_DIRECTIONS)}")
    return str(value)


Marking = Annotated[int, PlainValidator(marking), PlainSerializer(_show), Kind("name or 0 to 63", "DSCP")]
Markings = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(marking(one) for one in words(value, "marks"))),
    PlainSerializer(lambda marks: [_show(one) for one in marks]),
    Kind("list of names or numbers", "DSCP"),
]
Labels = Annotated[
    tuple[str, ...],
    PlainValidator(lambda value: tuple(_label(one) for one in words(value, "labels"))),
    LIST,
    Kind("list of texts"),
]
Directions = Annotated[
    tuple[str, ...],
    PlainValidator(lambda value: tuple(_direction(one) for one in words(value, "directions"))),
    LIST,
    Kind('list of "u", "d", "ud"'),
]
CcNames = Annotated[
    tuple[str, ...],
    PlainValidator(
        lambda value: tuple(
            one_of(CONGESTION_CONTROLS, "A congestion control")(one) for one in words(value, "congestion controls")
        )
    ),
    LIST,
    Kind("name, or list of names"),
]
Sizes = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(ANSWER.parse(one) for one in words(value, "sizes"))),
    PlainSerializer(lambda sizes: [show(one, SIZE) for one in sizes]),
    Kind("list of sizes", "B"),
]
UdpRate = Annotated[
    int, PlainValidator(UDP_RATE.parse), PlainSerializer(lambda rate: show(rate, RATE), return_type=str),
    Kind("rate", "bit/s"),
]  # fmt: skip
