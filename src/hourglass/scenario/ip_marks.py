# SPDX-License-Identifier: Apache-2.0
"""Marks: a DSCP by its name or number, and the ECN field of a sender's packets."""

from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator

from hourglass.errors import closest
from hourglass.scenario.testkinds import MARKINGS, marking_name
from hourglass.scenario.value_kinds import ValueKind, choice


def marking(value: object) -> int:
    """Return a DSCP from its name or number. Raises ValueError."""
    if isinstance(value, str):
        if value.upper() in MARKINGS:
            return MARKINGS[value.upper()]
        value = int(value) if value.isascii() and value.isdecimal() and len(value) < 3 else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 64:
        hint = closest(value, tuple(MARKINGS)) if isinstance(value, str) else ""
        raise ValueError(f"{hint}A mark is one of {', '.join(MARKINGS)}, or a DSCP from 0 to 63")
    return value


def show_mark(dscp: int) -> str | int:
    """Return the name of a DSCP, or its number."""
    name = marking_name(dscp)
    return name if name in MARKINGS else dscp


MARK_SCHEMA = {
    "anyOf": [
        {"enum": list(MARKINGS)},
        {"type": "integer", "minimum": 0, "maximum": 63},
        {"type": "string", "pattern": "^[0-9]{1,2}$"},
    ]
}
Marking = Annotated[
    int, PlainValidator(marking), PlainSerializer(show_mark), ValueKind("name or 0 to 63", "DSCP", MARK_SCHEMA)
]

Ecn = Annotated[Literal["not_ect", "ect1", "ect0"], *choice(("not_ect", "ect1", "ect0"), "An ECN field")]
