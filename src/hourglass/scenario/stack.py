# SPDX-License-Identifier: Apache-2.0
"""The stack: congestion control, TSQ, GSO, pacing, qdisc and sysctls, for all nodes and per node.

`[stack]` holds for every node, and `[stack.NODE]` overrides it key by key; `pacing` and `sysctl` are merged. A device's
settings, `[stack.NODE.device.DEVICE]`, override both (device.py).
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
from hourglass.scenario.quantities import SIZE, TIME, Bounds, show
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import ValueKind, integer
from hourglass.scenario.values import Cc, NodeDevice, Qdisc
from hourglass.scenario.vocabulary import OWNED_SYSCTLS

Percent = Annotated[int, *integer(1, 1000, "percent", "%")]

TSQ_TIME = Bounds(TIME, 1000, 10 * 10**9)
"""net.ipv4.tcp_tsq_usecs and tcp_gso_usecs: whole microseconds."""
TSQ_SIZE = Bounds(SIZE, 1, 2**31 - 1)

_SYSCTL_KEY = re.compile(r"net(\.[A-Za-z0-9_-]{1,64}){1,8}", re.ASCII)
_SYSCTL_VALUE = re.compile(r"[ -~]{0,200}", re.ASCII)


def sysctls(value: object, owned: dict[str, str]) -> dict[str, str]:
    """Return the sysctls of a table, as text. `owned`: sysctls that another key decides, with that key. Raises
    ValueError."""
    if not isinstance(value, dict):
        raise ValueError('must be a table of sysctls, like { "net.ipv4.tcp_ecn" = 1 }')
    return {_sysctl_key(key, owned): _sysctl_value(key, setting) for key, setting in sorted(value.items())}


def _sysctl_key(key: str, owned: dict[str, str]) -> str:
    if not _SYSCTL_KEY.fullmatch(key):
        raise ValueError(
            f'sysctl {key[:80]!r} is not per node; a node has sysctls of the network only, like "net.ipv4.tcp_ecn"'
        )
    if key in owned:
        raise ValueError(f"sysctl {key}: {owned[key]}")
    return key


def _sysctl_value(key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and abs(value) >= 2**64):
        raise ValueError(f"sysctl {key} must be a whole number or text")
    if not _SYSCTL_VALUE.fullmatch(str(value)):
        raise ValueError(f"sysctl {key} must be one line of at most 200 ASCII characters")
    return str(value)


SYSCTLS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
Sysctls = Annotated[
    dict[str, str], PlainValidator(lambda value: sysctls(value, OWNED_SYSCTLS)), ValueKind("table", schema=SYSCTLS)
]


class Tsq(NamedTuple):
    """The limit of one socket's data below TCP: the kernel's rule, no limit, `amount` ns of data or `amount` bytes."""

    mode: str
    amount: int = 0


def _usecs(value: object) -> int:
    """Return a time in ns that is whole microseconds, the kernel's unit. Raises ValueError otherwise."""
    ns = TSQ_TIME.parse(value)
    if ns % 1000:
        raise ValueError(f"must be {TSQ_TIME.allowed()}, in whole microseconds")
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
        'must be "default" (the kernel\'s rule), "off" (no limit), a time like "3ms" (of data at the'
        ' pacing rate, in whole microseconds, up to 10s) or a size like "64KiB" (up to 2 GiB - 1)'
    )


def _show_tsq(tsq: Tsq) -> str:
    return tsq.mode if tsq.mode in ("default", "off") else show(tsq.amount, TIME if tsq.mode == "time" else SIZE)


TsqLimit = Annotated[
    Tsq,
    PlainValidator(_tsq),
    PlainSerializer(_show_tsq, return_type=str),
    ValueKind(
        '"default", "off", time or size', schema={"anyOf": [{"enum": ["default", "off"]}, TIME.schema(), SIZE.schema()]}
    ),
]


def _gso(value: object) -> int:
    try:
        return 0 if value == "default" else _usecs(value)
    except ValueError:
        raise ValueError(
            'must be "default" (the kernel\'s autosizing) or a time like "1ms": the data of an skb at the'
            " pacing rate, in whole microseconds, up to 10s"
        ) from None


Gso = Annotated[
    int,
    PlainValidator(_gso),
    PlainSerializer(lambda ns: show(ns, TIME) if ns else "default", return_type=str),
    ValueKind('"default" or time', "ns", {"anyOf": [{"const": "default"}, TIME.schema()]}),
]


class Pacing(TomlTable):
    """TCP's pacing rate in percent of cwnd per RTT."""

    ss: Percent = Field(default=200, description="Percentage in slow start (tcp_pacing_ss_ratio).")
    ca: Percent = Field(default=120, description="Percentage in congestion avoidance (tcp_pacing_ca_ratio).")


class NodePacing(TomlTable):
    """Pacing that differs on one node."""

    ss: Percent | None = Field(default=None, description="Percentage in slow start.")
    ca: Percent | None = Field(default=None, description="Percentage in congestion avoidance.")


class NodeStack(TomlTable):
    """Settings of one node that differ from `[stack]`."""

    cc: Cc | None = Field(default=None, description="Congestion control.")
    tsq: TsqLimit | None = Field(default=None, description="TCP Small Queues limit per socket.")
    gso: Gso | None = Field(default=None, description="Data per skb.")
    pacing: NodePacing | None = Field(default=None, description="Pacing ratios.")
    qdisc: Qdisc | None = Field(default=None, description="Queueing discipline.")
    sysctl: Sysctls = Field(default={}, description="Further sysctls.")
    device: dict[str, DeviceStack] = Field(default={}, description="Settings of single devices, by name.")


class Stack(TomlTable):
    """The stack of all nodes, and in `nodes` the differences of single nodes."""

    cc: Cc = Field(default="cubic", description="Congestion control of the node's flows.")
    tsq: TsqLimit = Field(
        default=Tsq("default"),
        description='TCP Small Queues limit per socket, in qdisc and NIC. "default": the kernel\'s rule. "off": no'
        " limit. Or a time (of data at the pacing rate), or a size.",
    )
    gso: Gso = Field(
        default=0,
        description='Data per skb. "default": the kernel\'s autosizing. Or a time of data at the pacing rate.',
    )
    pacing: Pacing = Field(default=Pacing(ss=200, ca=120), description="Pacing ratios.")
    qdisc: Qdisc = Field(
        default="pfifo_fast",
        description="Queueing discipline of every device: HTB's leaf if there is a shaper, otherwise the root. Write"
        " what follows `root` in tc: `stab` or the kind first.",
    )
    sysctl: Sysctls = Field(default={}, description="Other sysctls of the node's network namespace.")
    nodes: dict[str, NodeStack] = Field(default={}, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _gather_nodes(cls, data: Any) -> Any:
        """Move tables that are no key of the stack to nodes."""
        if not isinstance(data, dict):
            return data
        stack_values = {key: value for key, value in data.items() if key in STACK_KEYS or not isinstance(value, dict)}
        return stack_values | {"nodes": {key: value for key, value in data.items() if key not in stack_values}}

    @model_serializer(mode="wrap")
    def _spread_nodes(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        nodes = {name: node.model_dump(exclude_none=True, exclude_defaults=True) for name, node in self.nodes.items()}
        return {**handler(self), **nodes}

    def of(self, node: str) -> "Stack":
        """Return the stack of one node."""
        node_stack = self.nodes.get(node, NodeStack())
        changes = {
            key: value for key in ("cc", "tsq", "gso", "qdisc") if (value := getattr(node_stack, key)) is not None
        }
        pacing = node_stack.pacing.model_dump(exclude_none=True) if node_stack.pacing else {}
        merged = {
            "pacing": self.pacing.model_copy(update=pacing),
            "sysctl": self.sysctl | node_stack.sysctl,
            "nodes": {},
        }
        return self.model_copy(update=changes | merged)

    def at(self, device: NodeDevice) -> DeviceStack:
        """Return the settings of one device."""
        return self.nodes.get(device.node, NodeStack()).device.get(device.device, DeviceStack())

    def qdisc_at(self, device: NodeDevice) -> tuple[str, str]:
        """Return the qdisc of a device, and the dotted key that decides it."""
        if qdisc := self.at(device).qdisc:
            return qdisc, self.device_origin(device, "qdisc")
        return self.of(device.node).qdisc, self.origin(device.node, "qdisc")

    def device_origin(self, device: NodeDevice, key: str = "") -> str:
        """Return the dotted key of a device's setting."""
        return ".".join(["stack", device.node, "device", device.device, *([key] if key else [])])

    def origin(self, node: str, key: str, part: str = "") -> str:
        """Return the dotted key that decides `key` (or its `part`: a sysctl, a pacing ratio) on the node."""
        value = getattr(self.nodes.get(node, NodeStack()), key)
        if part:
            value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
        return ".".join(["stack", *([node] if value is not None else []), key, *([part] if part else [])])


STACK_KEYS = tuple(key for key in Stack.model_fields if key != "nodes")
"""The keys of `[stack]`; no node can have one of these names."""
