# SPDX-License-Identifier: Apache-2.0
"""The types of single values, built from the kinds of value_kinds.py.

In a scenario object, quantities are integers in base units (ns, bit/s, ppb, bytes). In TOML and JSON, they are text
with a unit. Values of the types `Seconds` and `PositiveSeconds` are numbers of seconds in both.
"""

import re
from fractions import Fraction
from ipaddress import ip_interface
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

from hourglass.qdisc_line import QdiscLine
from hourglass.scenario.quantities import RATE, TIME, Bounds
from hourglass.scenario.value_kinds import (
    LIST,
    ValueKind,
    integer_or,
    list_of,
    one_of,
    pattern,
    quantity,
    seconds,
    sequence,
)
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, MULTIQUEUE_QDISCS, NOT_IN_LINUX, QDISCS

PLACEHOLDER = re.compile(r"\{(\{?)([A-Za-z][A-Za-z0-9_-]*)\.([A-Za-z][A-Za-z0-9_-]*)(?P<mac>\.mac)?\}(\}?)", re.ASCII)
"""Matches {node.address}, {node.device.mac} and {{node.address}}; other braces belong to the program."""

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
    *pattern(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\+[a-z]{1,16})?",
        'a kernel\'s name in quotes, like "6.1": letters, digits and . _ -. Build a tree or a'
        " patched kernel first: hourglass kernel build TREE --name NAME",
    ),
]
NodeName = Annotated[
    str, *pattern(r"[A-Za-z][A-Za-z0-9_-]{0,31}", "1 to 32 letters, digits, _ and -, beginning with a letter")
]

DeviceName = Annotated[str, *pattern(r"[A-Za-z][A-Za-z0-9_-]{0,14}", "the name of a device, like eth0")]


def _description(value: object) -> str:
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise ValueError("must be one line of text of at most 200 characters, without control characters")
    return value


Description = Annotated[
    str, PlainValidator(_description), ValueKind("text", schema={"type": "string", "maxLength": 200})
]


class NodeDevice(NamedTuple):
    """A device of a node."""

    node: str
    device: str

    def __str__(self) -> str:
        return f"{self.node}:{self.device}"


_NODE_DEVICE_PATTERN = r"([A-Za-z][A-Za-z0-9_-]{0,31}):([A-Za-z][A-Za-z0-9_-]{0,14})"
_NODE_DEVICE = re.compile(_NODE_DEVICE_PATTERN, re.ASCII)
_NODE_DEVICE_SCHEMA = {"type": "string", "pattern": f"^{_NODE_DEVICE_PATTERN}$", "examples": ["client:eth0"]}
_RESERVED_DEVICES = ("lo", "all", "default")


def _node_device(value: object) -> NodeDevice:
    if isinstance(value, NodeDevice):
        value = str(value)
    match = _NODE_DEVICE.fullmatch(value) if isinstance(value, str) else None
    if not match or match[2] in _RESERVED_DEVICES:
        raise ValueError(
            'must be a node and its device like "client:eth0"; a device\'s name has 1 to 15 letters, digits,'
            " _ and -, begins with a letter and is not lo, all or default"
        )
    return NodeDevice(match[1], match[2])


def _ends(value: object) -> tuple[NodeDevice, NodeDevice]:
    ends = sequence(value, "two ends")
    if len(ends) != 2:
        raise ValueError('must be a list of two ends, like ["client:eth0", "router:eth0"]')
    return _node_device(ends[0]), _node_device(ends[1])


End = Annotated[
    NodeDevice,
    PlainValidator(_node_device),
    PlainSerializer(str, return_type=str),
    ValueKind("NODE:DEVICE", schema=_NODE_DEVICE_SCHEMA),
]
Ends = Annotated[
    tuple[NodeDevice, NodeDevice],
    PlainValidator(_ends),
    PlainSerializer(lambda ends: [str(end) for end in ends]),
    ValueKind("[NODE:DEVICE, NODE:DEVICE]", schema=list_of(_NODE_DEVICE_SCHEMA, minItems=2, maxItems=2)),
]


def _node_devices(value: object) -> tuple[NodeDevice, ...]:
    devices = [_node_device(device) for device in sequence(value, 'devices, like ["client:eth0"]')]
    duplicate = next((device for index, device in enumerate(devices) if device in devices[:index]), None)
    if duplicate is not None:
        raise ValueError(f"must be devices, each only once; {duplicate} occurs twice")
    return tuple(devices)


NodeDevices = Annotated[
    tuple[NodeDevice, ...],
    PlainValidator(_node_devices),
    PlainSerializer(lambda devices: [str(device) for device in devices]),
    ValueKind("[NODE:DEVICE, …]", schema=list_of(_NODE_DEVICE_SCHEMA, uniqueItems=True)),
]


PacketRate = Annotated[
    int | str,
    *integer_or("all", 0, 10**6, 'a whole number of packets per second from 0 (none) to 1000000, or "all"', "1/s"),
]


def _addresses(value: object) -> tuple[str, ...]:
    try:
        texts = sequence(value, "addresses")
        if not texts or not all(isinstance(text, str) and "/" in text and "%" not in text for text in texts):
            raise ValueError
        return tuple(str(ip_interface(text)) for text in texts)
    except ValueError:
        raise ValueError('must be addresses with prefix lengths, like ["192.168.1.1/24", "192.168.1.2/24"]') from None


_ADDRESS_SCHEMA = {"type": "string", "pattern": r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$", "examples": ["192.168.1.1/24"]}
Addresses = Annotated[
    tuple[str, ...],
    PlainValidator(_addresses),
    LIST,
    ValueKind("[ADDRESS/LENGTH, …]", schema=list_of(_ADDRESS_SCHEMA, minItems=1)),
]

_MODULE_SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "name": {"type": "string"}, "parameters": {"type": "object"}},
    "required": ["file"],
    "additionalProperties": False,
}
_FILE_FORMS = [{"type": "string", "pattern": r"(\.c|/) *$"}, _MODULE_SCHEMA]
"""The forms of a custom congestion control or qdisc (module.py)."""
CC_SCHEMA = {"anyOf": [{"enum": list(CONGESTION_CONTROLS)}, *_FILE_FORMS]}


def cc(value: object, info: ValidationInfo) -> str:
    """Return the name of a congestion control of the kernel or of the scenario's modules. Raises ValueError."""
    own_names = (info.context or {}).get("cc", ())
    return one_of((*CONGESTION_CONTROLS, *own_names), "A congestion control", NOT_IN_LINUX)(value)


Cc = Annotated[str, PlainValidator(cc), ValueKind("name, file or table", schema=CC_SCHEMA)]


def _ccs(value: object, info: ValidationInfo) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else sequence(value, "congestion controls")
    return tuple(cc(name, info) for name in names)


Ccs = Annotated[
    tuple[str, ...],
    PlainValidator(_ccs),
    LIST,
    ValueKind("one, or a list of them", schema={"anyOf": [list_of(CC_SCHEMA), CC_SCHEMA]}),
]

TOOL_LINE = re.compile(r"[A-Za-z0-9_.:,/%+=@-]+(?: [A-Za-z0-9_.:,/%+=@-]+)*", re.ASCII)
"""The lines that `tc` and `ip` may read from a batch."""
TOOL_CHARACTERS = "letters, digits and _ . : , / % + = @ -"


_QDISC_PATTERN = rf"^ *(stab .* )?({'|'.join((*QDISCS, *MULTIQUEUE_QDISCS))})( .*)?$"


def _qdisc_text(value: object, info: ValidationInfo) -> str:
    """Return a qdisc's kind or its tc line. Raises ValueError, also for quotes, backslashes and #, which tc would
    interpret when it reads the line from its batch file."""
    text = " ".join(value.split(" ")).strip() if isinstance(value, str) else ""
    text = re.sub(" +", " ", text)
    if len(text) > 1000 or not TOOL_LINE.fullmatch(text):
        raise ValueError(
            "must be a qdisc's kind with its parameters, as after `root` in a line of tc, like \"fq_codel"
            f' target 2ms": words of {TOOL_CHARACTERS}'
        )
    if " root " in text:
        raise ValueError(f'must be only the text after `root` in the line of tc: "{text.rpartition(" root ")[2]}"')
    own_qdiscs, qdisc = (info.context or {}).get("qdisc", ()), QdiscLine(text)
    place = "The first word" if qdisc.stab is None else "The word after the options of stab"
    if qdisc.stab is not None and qdisc.kind in MULTIQUEUE_QDISCS:
        raise ValueError(f"{qdisc.kind} has no stab; the qdisc of each queue can have one: mq stab … fq_codel")
    if qdisc.of_each_queue:
        one_of((*QDISCS, *own_qdiscs), "The word after mq, the kind of each queue's qdisc,")(qdisc.kind)
    else:
        one_of((*QDISCS, *MULTIQUEUE_QDISCS, *own_qdiscs), f"{place}, a qdisc's kind,")(qdisc.kind)
    if qdisc.kind in own_qdiscs and qdisc.words:
        raise ValueError(f"tc has no options of {qdisc.kind}; set its module's parameters instead")
    return text


Qdisc = Annotated[
    str,
    PlainValidator(_qdisc_text),
    ValueKind(
        "kind, tc line, file or table",
        schema={
            "anyOf": [
                {"enum": [*QDISCS, *MULTIQUEUE_QDISCS]},
                {"type": "string", "pattern": _QDISC_PATTERN},
                *_FILE_FORMS,
            ]
        },
    ),
]
