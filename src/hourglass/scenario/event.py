# SPDX-License-Identifier: Apache-2.0
"""Events: changes during the test. `[[event]]` has a time, a node and exactly one action."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hourglass.scenario.app_values import word
from hourglass.scenario.loss import Losses
from hourglass.scenario.stack import SYSCTLS, sysctls
from hourglass.scenario.testbed import Delays, Mtu, Rates, Shares
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.value_kinds import ValueKind, choice, integer, list_of, sequence
from hourglass.scenario.values import (
    PLACEHOLDER,
    TOOL_CHARACTERS,
    TOOL_LINE,
    Description,
    DeviceName,
    NodeName,
    PositiveSeconds,
    Seconds,
)

COUNT_MAX = 10_000
LINES_MAX = 100
_PATH = re.compile(r"/(?:sys|proc/sys)(?:/[A-Za-z0-9_.:@+-]+)+", re.ASCII)
_VALUE = re.compile(r"[ -~]{1,200}", re.ASCII)


def _line(value: object) -> str:
    """Quotes, backslashes and # are refused: they would change how the tools read their batch."""
    text = " ".join(value.split(" ")).strip() if isinstance(value, str) else ""
    text = re.sub(" +", " ", text)
    if len(text) > 1000 or not TOOL_LINE.fullmatch(PLACEHOLDER.sub("address", text)):
        raise ValueError(
            f"must be a line of words of {TOOL_CHARACTERS}, or addresses like {{client.wlan0.mac}}, without the tool's"
            " name"
        )
    return text


def _lines(value: object) -> tuple[str, ...]:
    lines = tuple(_line(text) for text in ([value] if isinstance(value, str) else sequence(value, "lines")))
    if not 0 < len(lines) <= LINES_MAX:
        raise ValueError(f"must be a line, or a list of 1 to {LINES_MAX} lines")
    return lines


def _writes(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not 0 < len(value) <= LINES_MAX:
        raise ValueError('must be a table of files and values, like { "/proc/sys/net/ipv4/tcp_ecn" = 1 }')
    for path, content in value.items():
        if not _PATH.fullmatch(path) or "/../" in f"{path}/" or "/./" in f"{path}/":
            raise ValueError(f"{path[:80]!r} must be a file below /sys or /proc/sys, as the node sees it")
        if isinstance(content, bool) or not isinstance(content, int | str) or not _VALUE.fullmatch(str(content)):
            raise ValueError(f"{path[:80]} must be a whole number, or one line of at most 200 ASCII characters")
    return {path: str(content) for path, content in value.items()}


def _programs(value: object) -> tuple[str, ...]:
    allowed = f'the name of a program, a list of names, or "{ALL}"'
    names = tuple(word(text, allowed) for text in ([value] if isinstance(value, str) else sequence(value, "programs")))
    if not names or len(set(names)) != len(names) or (ALL in names and len(names) > 1):
        raise ValueError(f"must be {allowed}")
    return names


ALL = "*"
"""Stands for all programs of the node."""
_LINE_SCHEMA = {"type": "string", "minLength": 1}
Lines = Annotated[
    tuple[str, ...],
    PlainValidator(_lines),
    PlainSerializer(lambda lines: lines[0] if len(lines) == 1 else list(lines)),
    ValueKind("line, or list of lines", schema={"anyOf": [_LINE_SCHEMA, list_of(_LINE_SCHEMA, minItems=1)]}),
]
Programs = Annotated[
    tuple[str, ...],
    PlainValidator(_programs),
    PlainSerializer(lambda names: names[0] if len(names) == 1 else list(names)),
    ValueKind(
        f'program, list of programs, or "{ALL}"', schema={"anyOf": [_LINE_SCHEMA, list_of(_LINE_SCHEMA, minItems=1)]}
    ),
]
Writes = Annotated[
    dict[str, str],
    PlainValidator(_writes),
    ValueKind("table", schema=SYSCTLS),
]


def _settings(value: object) -> dict[str, str]:
    if not (settings := sysctls(value, {})):
        raise ValueError("must set at least one sysctl")
    return settings


Settings = Annotated[dict[str, str], PlainValidator(_settings), ValueKind("table", schema=SYSCTLS)]
Count = Annotated[int, *integer(1, COUNT_MAX, "times")]
Channel = Annotated[int, *integer(1, 64, "a channel's number")]


class LinkChange(TomlTable):
    """New values of a link's keys, from `[[testbed.link]]`. Frames in a NIC's ring are not affected."""

    rate: Rates | None = Field(default=None, description="Line rate. Refused for a link with a trace or outages.")
    delay: Delays | None = Field(default=None, description="Propagation delay, one way. No frame overtakes another.")
    jitter: Delays | None = Field(default=None, description="Maximum random extra delay per frame.")
    loss: Losses | None = Field(default=None, description="Share of frames lost, or bursts of losses.")
    corrupt: Shares | None = Field(default=None, description="Share of frames that arrive damaged.")
    duplicate: Shares | None = Field(default=None, description="Share of frames that arrive twice.")
    reorder: Shares | None = Field(default=None, description="Share of frames delayed by the link's `reorder_delay`.")
    mtu: Mtu | None = Field(default=None, description="MTU of both NICs.")

    @model_validator(mode="after")
    def _something(self) -> "LinkChange":
        if not self.model_fields_set:
            raise ValueError(f"must have at least one of {', '.join(LinkChange.model_fields)}")
        return self

    @model_serializer(mode="wrap")
    def _without_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class Event(TomlTable):
    """A change during the test."""

    at: Seconds = Field(description="Time of the event, in seconds of test time. Test time begins with the first ping.")
    node: NodeName = Field(description="Where.")
    device: DeviceName | None = Field(
        default=None,
        description="The device, for `link`, `cable`, `set`, `station`, `ap` and `channel`. Default: the node's only"
        " one.",
    )
    label: Description = Field(
        default="", description="Label of the event in pictures and report. Default: its action."
    )
    every: PositiveSeconds | None = Field(
        default=None, description="Period after which the event repeats, `count` times in all."
    )
    count: Count = Field(default=1, description="Number of times in all; needs `every`.")
    tc: Lines | None = Field(default=None, description="Arguments of `tc`, without its name.")
    ip: Lines | None = Field(default=None, description="Arguments of `ip`: link set, addr, route, rule or neigh.")
    bridge: Lines | None = Field(
        default=None, description="Arguments of `bridge` at a switch: link set, fdb, mdb or vlan."
    )
    iw: Lines | None = Field(
        default=None,
        description="Arguments of `iw`: dev DEVICE …. Here and in the lines of other tools,"
        " `{client.wlan0.mac}` and `{server.address}` become addresses, as in `app.N.command`.",
    )
    ethtool: Lines | None = Field(default=None, description="Arguments of `ethtool`: OPTION DEVICE ….")
    sysctl: Settings | None = Field(default=None, description="Sysctls of the node's network namespace.")
    write: Writes | None = Field(default=None, description="Files below /sys and /proc/sys, as the node sees them.")
    link: Annotated[Literal["down", "up"], *choice(("down", "up"), "A link's state")] | None = Field(
        default=None,
        description='Sets the device down or up, as `ip link set` does. "up" restores its routes and addresses.',
    )
    cable: Annotated[Literal["pull", "plug"], *choice(("pull", "plug"), "An action on a cable")] | None = Field(
        default=None,
        description='"pull": both ends lose their carrier, and frames on the cable are lost. "plug": the cable is'
        " connected again.",
    )
    set: LinkChange | None = Field(default=None, description="New values of keys of the device's link.")
    station: Annotated[Literal["leave", "return"], *choice(("leave", "return"), "An action of a station")] | None = (
        Field(
            default=None,
            description='"leave": the station leaves its cell. "return": it joins again by scan, authentication and'
            " association.",
        )
    )
    ap: Annotated[Literal["restart"], *choice(("restart",), "An action of an access point", '"restart"')] | None = (
        Field(default=None, description="Restarts hostapd. Then the stations join again.")
    )
    kill: Programs | None = Field(
        default=None,
        description="Sends SIGKILL to all processes of these programs of the node. They are not restarted.",
    )
    pause: Programs | None = Field(
        default=None, description="Sends SIGSTOP to these programs. The node's kernel keeps running."
    )
    resume: Programs | None = Field(default=None, description="Sends SIGCONT to these programs.")
    restart: Programs | None = Field(
        default=None, description="Stops these programs, as their `stop` does, and starts them when they have ended."
    )
    power: Annotated[Literal["off", "on"], *choice(("off", "on"), "A node's power")] | None = Field(
        default=None,
        description='"off": the node\'s cables lose their carrier, then its programs are killed, so that no peer'
        ' receives a FIN or RST. "on": the cables are connected and the programs start, at the same'
        " instant. Files and the kernel stay.",
    )

    channel: Channel | None = Field(
        default=None,
        description="The primary channel to which an access point changes. Its beacons announce the change (CSA),"
        " and its stations follow.",
    )

    @model_validator(mode="after")
    def _one_action(self) -> "Event":
        actions = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(actions) != 1:
            problem = f"cannot have both {actions[0]} and {actions[1]}" if actions else "the event has no action"
            raise ValueError(f"must have exactly one of {', '.join(ACTIONS)}; {problem}")
        if self.device and actions[0] not in AT_DEVICES:
            raise ValueError(f"device is for {', '.join(AT_DEVICES)}; a line of {actions[0]} names its device")
        if (self.every is None) != (self.count == 1):
            raise ValueError("every needs count, above 1")
        return self

    @model_serializer(mode="wrap")
    def _without_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in (None, "")}

    @property
    def action(self) -> str:
        """Return the key of the action."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)


TO_PROGRAMS = ("kill", "pause", "resume", "restart")
"""The actions on programs."""
ACTIONS = (
    *("tc", "ip", "bridge", "iw", "ethtool", "sysctl", "write", "link", "cable", "set", "station", "ap", "channel"),
    *(*TO_PROGRAMS, "power"),
)
AT_DEVICES = ("link", "cable", "set", "station", "ap", "channel")
"""The actions on a device."""
