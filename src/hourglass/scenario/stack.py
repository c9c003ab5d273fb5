# SPDX-License-Identifier: Apache-2.0
"""The stack: congestion control, TSQ, GSO, pacing, qdisc and sysctls, for all nodes and per node.

`[stack]` holds for every node, `[stack.NODE]` overrides it key by key; `pacing` and `sysctl` are merged. A device's own
settings, `[stack.NODE.device.DEVICE]`, come before both (device.py).
"""

import re
from typing import Annotated, Any, NamedTuple

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hourglass.scenario.device import DeviceStack
from hourglass.scenario.kinds import Kind, integer
from hourglass.scenario.table import Table
from hourglass.scenario.units import SIZE, TIME, Bounds, show
from hourglass.scenario.values import Cc, Place, Qdisc
from hourglass.scenario.vocabulary import OWNED_SYSCTLS

Percent = Annotated[int, *integer(1, 1000, "percent", "%")]

TSQ_TIME = Bounds(TIME, 1000, 10 * 10**9)
"""net.ipv4.tcp_tsq_usecs and tcp_gso_usecs: whole microseconds."""
TSQ_SIZE = Bounds(SIZE, 1, 2**31 - 1)

_SYSCTL_KEY = re.compile(r"net(\.[A-Za-z0-9_-]{1,64}){1,8}", re.ASCII)
_SYSCTL_VALUE = re.compile(r"[ -~]{0,200}", re.ASCII)


def sysctls(value: object, owned: dict[str, str]) -> dict[str, str]:
    """The sysctls of a table, as text. `owned`: those that another key decides, and which one. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError('a table of sysctls, like { "net.ipv4.tcp_ecn" = 1 }')
    return {_sysctl_key(key, owned): _sysctl_value(key, setting) for key, setting in sorted(value.items())}


def _sysctl_key(key: str, owned: dict[str, str]) -> str:
    if not _SYSCTL_KEY.fullmatch(key):
        raise ValueError(f'sysctl {key[:80]!r}: a node has sysctls of the network only, like "net.ipv4.tcp_ecn"')
    if key in owned:
        raise ValueError(f"sysctl {key}: {owned[key]}")
    return key


def _sysctl_value(key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and abs(value) >= 2**64):
        raise ValueError(f"sysctl {key}: a whole number or text")
    if not _SYSCTL_VALUE.fullmatch(str(value)):
        raise ValueError(f"sysctl {key}: one line of at most 200 ASCII characters")
    return str(value)


SYSCTLS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
Sysctls = Annotated[
    dict[str, str], PlainValidator(lambda value: sysctls(value, OWNED_SYSCTLS)), Kind("table", schema=SYSCTLS)
]


class Tsq(NamedTuple):
    """How much one socket may have below TCP: the kernel's rule, no limit, `amount` ns of data or `amount` bytes."""

    mode: str
    amount: int = 0


def _usecs(value: object) -> int:
    """A time in ns that the kernel can be told, in microseconds. Raises ValueError for others."""
    ns = TSQ_TIME.parse(value)
    if ns % 1000:
        raise ValueError(f"{TSQ_TIME.allowed()}, in whole microseconds")
    return ns


def _tsq(value: object) -> Tsq:
    if isinstance(value, str) and value in ("default", "off"):
        return Tsq(value)
    for mode, parse in (("time", _usecs), ("size", TSQ_SIZE.parse)):
        try:
            return Tsq(mode, parse(value))
        except ValueError:
            continue
    raise ValueError(
        '"default" (the kernel\'s rule), "off" (no limit), a time like "3ms" (of data at the pacing rate, in whole'
        ' microseconds, up to 10s) or a size like "64KiB" (up to 2 GiB - 1)'
    )


def _show_tsq(tsq: Tsq) -> str:
    return tsq.mode if tsq.mode in ("default", "off") else show(tsq.amount, TIME if tsq.mode == "time" else SIZE)


TsqLimit = Annotated[
    Tsq,
    PlainValidator(_tsq),
    PlainSerializer(_show_tsq, return_type=str),
    Kind(
        '"default", "off", time or size', schema={"anyOf": [{"enum": ["default", "off"]}, TIME.schema(), SIZE.schema()]}
    ),
]


def _gso(value: object) -> int:
    try:
        return 0 if value == "default" else _usecs(value)
    except ValueError:
        raise ValueError(
            '"default" (the kernel\'s autosizing) or a time like "1ms": how much data at the pacing rate an skb holds,'
            " in whole microseconds, up to 10s"
        ) from None


Gso = Annotated[
    int,
    PlainValidator(_gso),
    PlainSerializer(lambda ns: show(ns, TIME) if ns else "default", return_type=str),
    Kind('"default" or time', "ns", {"anyOf": [{"const": "default"}, TIME.schema()]}),
]


class Pacing(Table):
    """How much faster than cwnd per RTT TCP paces, in percent."""

    ss: Percent = Field(default=200, description="In slow start (tcp_pacing_ss_ratio).")
    ca: Percent = Field(default=120, description="In congestion avoidance (tcp_pacing_ca_ratio).")


class NodePacing(Table):
    """One node's pacing where it differs."""

    ss: Percent | None = Field(default=None, description="In slow start.")
    ca: Percent | None = Field(default=None, description="In congestion avoidance.")


class NodeStack(Table):
    """One node's stack where it differs from `[stack]`."""

    cc: Cc | None = Field(default=None, description="Congestion control.")
    tsq: TsqLimit | None = Field(default=None, description="TCP Small Queues.")
    gso: Gso | None = Field(default=None, description="Size of skbs.")
    pacing: NodePacing | None = Field(default=None, description="Pacing ratios.")
    qdisc: Qdisc | None = Field(default=None, description="Queueing discipline.")
    sysctl: Sysctls = Field(default={}, description="Further sysctls.")
    device: dict[str, DeviceStack] = Field(default={}, description="What differs at one of its devices, by name.")


class Stack(Table):
    """The stack of all nodes, and in `nodes` what differs on one."""

    cc: Cc = Field(default="cubic", description="Congestion control of the flows that a node sends.")
    tsq: TsqLimit = Field(
        default=Tsq("default"),
        description="TCP Small Queues limit per socket, in qdisc and NIC: the kernel's rule, none, a time"
        " (of data at the pacing rate) or a size.",
    )
    gso: Gso = Field(default=0, description="Data per skb: the kernel's autosizing, or a time at the pacing rate.")
    pacing: Pacing = Field(default=Pacing(ss=200, ca=120), description="Pacing ratios.")
    qdisc: Qdisc = Field(
        default="pfifo_fast",
        description="Queueing discipline of every device, below HTB where there is a shaper, otherwise the root: what"
        " follows `root` in a line of tc.",
    )
    sysctl: Sysctls = Field(default={}, description="Other sysctls, of the node's network namespace.")
    nodes: dict[str, NodeStack] = Field(default={}, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _gather_nodes(cls, data: Any) -> Any:
        """Tables that are no key of the stack belong to nodes."""
        if not isinstance(data, dict):
            return data
        own = {key: value for key, value in data.items() if key in STACK_KEYS or not isinstance(value, dict)}
        return own | {"nodes": {key: value for key, value in data.items() if key not in own}}

    @model_serializer(mode="wrap")
    def _spread_nodes(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        nodes = {name: node.model_dump(exclude_none=True, exclude_defaults=True) for name, node in self.nodes.items()}
        return {**handler(self), **nodes}

    def of(self, node: str) -> "Stack":
        """The stack of one node."""
        differs = self.nodes.get(node, NodeStack())
        changes = {key: value for key in ("cc", "tsq", "gso", "qdisc") if (value := getattr(differs, key)) is not None}
        pacing = differs.pacing.model_dump(exclude_none=True) if differs.pacing else {}
        merged = {"pacing": self.pacing.model_copy(update=pacing), "sysctl": self.sysctl | differs.sysctl, "nodes": {}}
        return self.model_copy(update=changes | merged)

    def at(self, place: Place) -> DeviceStack:
        """What differs at a device."""
        return self.nodes.get(place.node, NodeStack()).device.get(place.device, DeviceStack())

    def qdisc_at(self, place: Place) -> tuple[str, str]:
        """The qdisc of a device, and the dotted key that decides it."""
        if own := self.at(place).qdisc:
            return own, self.device_origin(place, "qdisc")
        return self.of(place.node).qdisc, self.origin(place.node, "qdisc")

    def device_origin(self, place: Place, key: str = "") -> str:
        """The dotted key of a device's own setting."""
        return ".".join(["stack", place.node, "device", place.device, *([key] if key else [])])

    def origin(self, node: str, key: str, part: str = "") -> str:
        """The dotted key that decides `key` (or its `part`: a sysctl, a pacing ratio) on the node."""
        own = getattr(self.nodes.get(node, NodeStack()), key)
        if part:
            own = own.get(part) if isinstance(own, dict) else getattr(own, part, None)
        return ".".join(["stack", *([node] if own is not None else []), key, *([part] if part else [])])


STACK_KEYS = tuple(key for key in Stack.model_fields if key != "nodes")
"""What stands in `[stack]`; no node can have one of these names."""
