# SPDX-License-Identifier: Apache-2.0
"""`[check]`: bounds that the run's figures must keep, in the language of contract/bounds.py, which is loaded only for
scenarios that have some. A name without quotes, `ping.icmp.p99 = "< 20ms"`, is the same as the quoted one."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator

from hourglass.errors import InputError
from hourglass.scenario.kinds import Kind

_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": ["string", "object"]},
    "examples": [{"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">= 90mbit"}],
}


class Named(str):
    """The text of a bound that knows the name of its figure."""

    name: str


def _named(value: object) -> object:
    """{name: text} from the table, however its names are written."""
    if not isinstance(value, dict):
        raise ValueError('a table of figures and their bounds, like { "ping.icmp.p99" = "< 20ms" }')
    return {name: _text(name, one) for name, one in flat(value).items()}


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """{"ping": {"p99": "< 20ms"}}, names without quotes, as {"ping.p99": "< 20ms"}."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def _text(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    text = Named(value)
    text.name = name
    return text


def _bound(value: object) -> str:
    from hourglass.contract.bounds import EXAMPLES, parse

    if not isinstance(value, Named):
        raise ValueError(EXAMPLES)
    try:
        return parse(value.name, str(value)).text
    except InputError as error:
        raise ValueError(error.allowed) from None


Checks = Annotated[
    dict[str, Annotated[str, PlainValidator(_bound)]],
    BeforeValidator(_named),
    Kind("table of bounds", schema=_SCHEMA),
]
