# SPDX-License-Identifier: Apache-2.0
"""The types of single values, each of one of the kinds of kinds.py.

Quantities are integers in base units (ns, bit/s, ppb, bytes) in the object and text with a suffix in its dump; times
whose key says seconds are numbers of seconds in both.
"""

import re
from fractions import Fraction
from ipaddress import ip_interface
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from hourglass.scenario.kinds import (
    LIST,
    Kind,
    integer_or,
    list_of,
    one_of,
    pattern,
    quantity,
    seconds,
    sequence,
)
from hourglass.scenario.units import RATE, TIME, Bounds
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, NOT_IN_LINUX, QDISCS

HOUR_NS = 3600 * 10**9
STEP_RATE = Bounds(RATE, 1, 10**12, zero=True)
INTERVAL = Bounds(TIME, 10**5, HOUR_NS, zero=True)
DAY_S = Fraction(86400)


Number = int | float

Seconds = Annotated[Number, *seconds(Fraction(0), DAY_S)]
PositiveSeconds = Annotated[Number, *seconds(Fraction(1, 1000), DAY_S)]

Interval = Annotated[int, *quantity(INTERVAL, "time, 0 = off")]

ScenarioName = Annotated[
    str,
    *pattern(
        r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}",
        "1 to 64 letters, digits and . _ + -, beginning with a letter or digit; it names the run's folder",
    ),
]
KernelName = Annotated[
    str,
    *pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", 'a kernel\'s name in quotes, like "6.1": letters, digits and . _ -'),
]
NodeName = Annotated[
    str, *pattern(r"[A-Za-z][A-Za-z0-9_-]{0,31}", "1 to 32 letters, digits, _ and -, beginning with a letter")
]

DeviceName = Annotated[str, *pattern(r"[A-Za-z][A-Za-z0-9_-]{0,14}", "the name of a device, like eth0")]


def _description(value: object) -> str:
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise ValueError("one line of text of at most 200 characters, without control characters")
    return value


Description = Annotated[str, PlainValidator(_description), Kind("text", schema={"type": "string", "maxLength": 200})]


class Place(NamedTuple):
    """A device of a node."""

    node: str
    device: str

    def __str__(self) -> str:
        return f"{self.node}:{self.device}"


_PLACE_TEXT = r"([A-Za-z][A-Za-z0-9_-]{0,31}):([A-Za-z][A-Za-z0-9_-]{0,14})"
_PLACE = re.compile(_PLACE_TEXT, re.ASCII)
_PLACE_SCHEMA = {"type": "string", "pattern": f"^{_PLACE_TEXT}$", "examples": ["client:eth0"]}
_RESERVED_DEVICES = ("lo", "all", "default")


def _place(value: object) -> Place:
    if isinstance(value, Place):
        value = str(value)
    match = _PLACE.fullmatch(value) if isinstance(value, str) else None
    if not match or match[2] in _RESERVED_DEVICES:
        raise ValueError(
            'a node and its device like "client:eth0"; a device\'s name has 1 to 15 letters, digits, _ and -, begins'
            " with a letter and is not lo, all or default"
        )
    return Place(match[1], match[2])


def _ends(value: object) -> tuple[Place, Place]:
    ends = sequence(value, "two ends")
    if len(ends) != 2:
        raise ValueError('a list of two ends, like ["client:eth0", "router:eth0"]')
    return _place(ends[0]), _place(ends[1])


End = Annotated[
    Place, PlainValidator(_place), PlainSerializer(str, return_type=str), Kind("NODE:DEVICE", schema=_PLACE_SCHEMA)
]
Ends = Annotated[
    tuple[Place, Place],
    PlainValidator(_ends),
    PlainSerializer(lambda ends: [str(end) for end in ends]),
    Kind("[NODE:DEVICE, NODE:DEVICE]", schema=list_of(_PLACE_SCHEMA, minItems=2, maxItems=2)),
]


def _places(value: object) -> tuple[Place, ...]:
    places = [_place(one) for one in sequence(value, 'devices, like ["client:eth0"]')]
    twice = next((one for index, one in enumerate(places) if one in places[:index]), None)
    if twice is not None:
        raise ValueError(f"each device once; {twice} is there twice")
    return tuple(places)


Places = Annotated[
    tuple[Place, ...],
    PlainValidator(_places),
    PlainSerializer(lambda places: [str(one) for one in places]),
    Kind("[NODE:DEVICE, …]", schema=list_of(_PLACE_SCHEMA, uniqueItems=True)),
]


Packets = Annotated[
    int | str,
    *integer_or("all", 0, 10**6, 'a whole number of packets per second from 0 (none) to 1000000, or "all"', "1/s"),
]


def _addresses(value: object) -> tuple[str, str]:
    try:
        pair = sequence(value, "two addresses")
        one, two = (
            str(ip_interface(text)) for text in pair if isinstance(text, str) and "/" in text and "%" not in text
        )
        if len(pair) != 2:
            raise ValueError
    except ValueError:
        raise ValueError('two addresses with prefix lengths, like ["192.168.1.1/24", "192.168.1.2/24"]') from None
    return one, two


_ADDRESS_SCHEMA = {"type": "string", "pattern": r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$", "examples": ["192.168.1.1/24"]}
Addresses = Annotated[
    tuple[str, str],
    PlainValidator(_addresses),
    LIST,
    Kind("[ADDRESS/LENGTH, ADDRESS/LENGTH]", schema=list_of(_ADDRESS_SCHEMA, minItems=2, maxItems=2)),
]

_MODULE_SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "name": {"type": "string"}, "parameters": {"type": "object"}},
    "required": ["file"],
    "additionalProperties": False,
}
_FILE_FORMS = [{"type": "string", "pattern": r"(\.c|/) *$"}, _MODULE_SCHEMA]
"""What may stand for a congestion control or a qdisc of one's own (module.py)."""
CC_SCHEMA = {"anyOf": [{"enum": list(CONGESTION_CONTROLS)}, *_FILE_FORMS]}


def cc(value: object, info: ValidationInfo) -> str:
    """A congestion control of the kernel's or of the scenario's modules."""
    own = (info.context or {}).get("cc", ())
    return one_of((*CONGESTION_CONTROLS, *own), "A congestion control", NOT_IN_LINUX)(value)


Cc = Annotated[str, PlainValidator(cc), Kind("name, file or table", schema=CC_SCHEMA)]


def _ccs(value: object, info: ValidationInfo) -> tuple[str, ...]:
    named = [value] if isinstance(value, str) else sequence(value, "congestion controls")
    return tuple(cc(one, info) for one in named)


Ccs = Annotated[
    tuple[str, ...],
    PlainValidator(_ccs),
    LIST,
    Kind("one, or a list of them", schema={"anyOf": [list_of(CC_SCHEMA), CC_SCHEMA]}),
]

_TC = re.compile(r"[A-Za-z0-9_.:,/%+=-]+(?: [A-Za-z0-9_.:,/%+=-]+)*", re.ASCII)


_QDISC_TEXT = rf"^ *({'|'.join(QDISCS)})( .*)?$"


def _qdisc(value: object, info: ValidationInfo) -> str:
    """A qdisc's kind or its tc line. Quotes, backslashes and # would change how tc reads its batch."""
    text = " ".join(value.split(" ")).strip() if isinstance(value, str) else ""
    text = re.sub(" +", " ", text)
    if len(text) > 1000 or not _TC.fullmatch(text):
        raise ValueError(
            "a qdisc's kind with its parameters, which is what follows `root` in a line of tc, like"
            ' "fq_codel target 2ms": words of letters, digits and _ . : , / % + = -'
        )
    if " root " in text:
        raise ValueError(f'what follows `root` in the line of tc: "{text.rpartition(" root ")[2]}"')
    own, (kind, *options) = (info.context or {}).get("qdisc", ()), text.split(" ")
    one_of((*QDISCS, *own), "The first word, a qdisc's kind,")(kind)
    if kind in own and options:
        raise ValueError(f"tc knows no options of {kind}: they are its module's parameters")
    return text


Qdisc = Annotated[
    str,
    PlainValidator(_qdisc),
    Kind(
        "kind, tc line, file or table",
        schema={"anyOf": [{"enum": list(QDISCS)}, {"type": "string", "pattern": _QDISC_TEXT}, *_FILE_FORMS]},
    ),
]
