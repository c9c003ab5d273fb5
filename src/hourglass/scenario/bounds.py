# SPDX-License-Identifier: Apache-2.0
"""`[check]`: bounds on the run's figures, in the language of contract/bounds.py. That module is loaded only if a
scenario has bounds. An unquoted name, `ping.icmp.p99 = "< 20ms"`, equals the quoted one."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator

from hourglass.errors import InputError
from hourglass.scenario.value_kinds import ValueKind

_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": ["string", "object"]},
    "examples": [{"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">= 90mbit"}],
}


class BoundText(str):
    """Return the text of a bound that knows the name of its figure."""

    name: str


def _named_bounds(value: object) -> object:
    """Return {name: text} of the table, with quoted and unquoted names alike."""
    if not isinstance(value, dict):
        raise ValueError('must be a table of figures and their bounds, like { "ping.icmp.p99" = "< 20ms" }')
    return {name: _text(name, bound) for name, bound in flat(value).items()}


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return {"ping": {"p99": "< 20ms"}} of unquoted names as {"ping.p99": "< 20ms"}."""
    bounds: dict[str, Any] = {}
    for key, value in table.items():
        bounds |= flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return bounds


def _text(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    text = BoundText(value)
    text.name = name
    return text


def _bound(value: object) -> str:
    from hourglass.contract.bounds import EXAMPLES, parse

    if not isinstance(value, BoundText):
        raise ValueError(EXAMPLES)
    try:
        return parse(value.name, str(value)).text
    except InputError as error:
        raise ValueError(error.allowed) from None


Checks = Annotated[
    dict[str, Annotated[str, PlainValidator(_bound)]],
    BeforeValidator(_named_bounds),
    ValueKind("table of bounds", schema=_SCHEMA),
]
