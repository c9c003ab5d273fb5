# SPDX-License-Identifier: Apache-2.0
"""Events: what changes during the test. `[[event]]` names a moment, a node and exactly one action."""

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
from hourglass.scenario.kinds import Kind, choice, integer, list_of, sequence
from hourglass.scenario.loss import Losses
from hourglass.scenario.stack import SYSCTLS, sysctls
from hourglass.scenario.table import Table
from hourglass.scenario.testbed import Delays, Mtu, Rates, Shares
from hourglass.scenario.values import Description, DeviceName, NodeName, PositiveSeconds, Seconds

COUNT_MAX = 10_000
LINES_MAX = 100
_WORDS = re.compile(r"[A-Za-z0-9_.:,/%+=-]+(?: [A-Za-z0-9_.:,/%+=-]+)*", re.ASCII)
_PATH = re.compile(r"/(?:sys|proc/sys)(?:/[A-Za-z0-9_.:@+-]+)+", re.ASCII)
_VALUE = re.compile(r"[ -~]{1,200}", re.ASCII)


def _line(value: object) -> str:
    """Quotes, backslashes and # would change how the tools read their batch."""
    text = " ".join(value.split(" ")).strip() if isinstance(value, str) else ""
    text = re.sub(" +", " ", text)
    if len(text) > 1000 or not _WORDS.fullmatch(text):
        raise ValueError("a line of words of letters, digits and _ . : , / % + = -, without the tool's name")
    return text


def _lines(value: object) -> tuple[str, ...]:
    lines = tuple(_line(one) for one in ([value] if isinstance(value, str) else sequence(value, "lines")))
    if not 0 < len(lines) <= LINES_MAX:
        raise ValueError(f"a line, or a list of 1 to {LINES_MAX}")
    return lines


def _writes(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not 0 < len(value) <= LINES_MAX:
        raise ValueError('a table of files and values, like { "/proc/sys/net/ipv4/tcp_ecn" = 1 }')
    for path, content in value.items():
        if not _PATH.fullmatch(path) or "/../" in f"{path}/" or "/./" in f"{path}/":
            raise ValueError(f"{path[:80]!r}: a file below /sys or /proc/sys, as the node sees it")
        if isinstance(content, bool) or not isinstance(content, int | str) or not _VALUE.fullmatch(str(content)):
            raise ValueError(f"{path[:80]}: a whole number, or one line of at most 200 ASCII characters")
    return {path: str(content) for path, content in value.items()}


def _programs(value: object) -> tuple[str, ...]:
    what = f'the name of a program, a list of some, or "{ALL}"'
    names = tuple(word(one, what) for one in ([value] if isinstance(value, str) else sequence(value, "programs")))
    if not names or len(set(names)) != len(names) or (ALL in names and len(names) > 1):
        raise ValueError(what)
    return names


ALL = "*"
"""All programs of the node."""
_LINE_SCHEMA = {"type": "string", "minLength": 1}
Lines = Annotated[
    tuple[str, ...],
    PlainValidator(_lines),
    PlainSerializer(lambda lines: lines[0] if len(lines) == 1 else list(lines)),
    Kind("line, or list of lines", schema={"anyOf": [_LINE_SCHEMA, list_of(_LINE_SCHEMA, minItems=1)]}),
]
Programs = Annotated[
    tuple[str, ...],
    PlainValidator(_programs),
    PlainSerializer(lambda names: names[0] if len(names) == 1 else list(names)),
    Kind(f'program, list of programs, or "{ALL}"', schema={"anyOf": [_LINE_SCHEMA, list_of(_LINE_SCHEMA, minItems=1)]}),
]
Writes = Annotated[
    dict[str, str],
    PlainValidator(_writes),
    Kind("table", schema=SYSCTLS),
]
Settings = Annotated[dict[str, str], PlainValidator(lambda value: sysctls(value, {})), Kind("table", schema=SYSCTLS)]
Count = Annotated[int, *integer(1, COUNT_MAX, "times")]
Channel = Annotated[int, *integer(1, 64, "a channel's number")]


class LinkChange(Table):
    """What a link is from then on: keys of `[[testbed.link]]`. Frames that are in a NIC's ring keep what they have."""

    rate: Rates | None = Field(default=None, description="Line rate. Not of a link with a trace or outages.")
    delay: Delays | None = Field(default=None, description="Propagation, one way. No frame overtakes another.")
    jitter: Delays | None = Field(default=None, description="Random extra delay per frame, up to this.")
    loss: Losses | None = Field(default=None, description="Share of frames lost, or bursts of losses.")
    corrupt: Shares | None = Field(default=None, description="Share of frames that arrive damaged.")
    duplicate: Shares | None = Field(default=None, description="Share of frames that arrive twice.")
    reorder: Shares | None = Field(default=None, description="Share of frames delayed by the link's `reorder_delay`.")
    mtu: Mtu | None = Field(default=None, description="MTU of both NICs.")

    @model_validator(mode="after")
    def _something(self) -> "LinkChange":
        if not self.model_fields_set:
            raise ValueError(f"at least one of {', '.join(LinkChange.model_fields)}")
        return self

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class Event(Table):
    """A change in the middle."""

    at: Seconds = Field(description="When: seconds of test time, which begins with the first ping.")
    node: NodeName = Field(description="Where.")
    device: DeviceName | None = Field(
        default=None,
        description="The device, for `link`, `cable`, `set`, `station`, `ap` and `channel`; default: the only one.",
    )
    label: Description = Field(default="", description="What pictures and report call it; default: what is done.")
    every: PositiveSeconds | None = Field(default=None, description="Again after so long, `count` times in all.")
    count: Count = Field(default=1, description="How often.")
    tc: Lines | None = Field(default=None, description="What follows `tc`.")
    ip: Lines | None = Field(default=None, description="What follows `ip`: link set, addr, route, rule, neigh.")
    iw: Lines | None = Field(default=None, description="What follows `iw`: dev DEVICE ….")
    ethtool: Lines | None = Field(default=None, description="What follows `ethtool`: OPTION DEVICE ….")
    sysctl: Settings | None = Field(default=None, description="Sysctls of the node's network namespace.")
    write: Writes | None = Field(default=None, description="Files below /sys and /proc/sys, as the node sees them.")
    link: Annotated[Literal["down", "up"], *choice(("down", "up"), "A link's state")] | None = Field(
        default=None,
        description="The device as `ip link set` does it; with its routes and addresses when it comes up again.",
    )
    cable: Annotated[Literal["pull", "plug"], *choice(("pull", "plug"), "What is done to a cable")] | None = Field(
        default=None,
        description="The cable is pulled: both ends lose their carrier, what is on it is lost; or plugged in again.",
    )
    set: LinkChange | None = Field(default=None, description="Keys of the device's link, from then on.")
    station: Annotated[Literal["leave", "return"], *choice(("leave", "return"), "What a station does")] | None = Field(
        default=None, description="A station leaves its cell, or joins it again: scan, authentication, association."
    )
    ap: Annotated[Literal["restart"], *choice(("restart",), "What an access point does", '"restart"')] | None = Field(
        default=None, description="hostapd is ended and started again; then the stations join."
    )
    kill: Programs | None = Field(
        default=None, description="Programs of the node get SIGKILL, all their processes; none is started again."
    )
    pause: Programs | None = Field(default=None, description="They get SIGSTOP; the node's kernel goes on.")
    resume: Programs | None = Field(default=None, description="They get SIGCONT.")
    restart: Programs | None = Field(
        default=None, description="They are told to stop, as by their `stop`, and started again when they have ended."
    )
    power: Annotated[Literal["off", "on"], *choice(("off", "on"), "A node's power")] | None = Field(
        default=None,
        description="The node's cables lose their carrier and its programs are killed, in this order: nobody hears of"
        " it; or they are plugged in again and the programs started, all at once. Files and the kernel stay.",
    )

    channel: Channel | None = Field(
        default=None,
        description="The primary channel that an access point changes to, announced in its beacons before (CSA); its "
        "stations follow.",
    )

    @model_validator(mode="after")
    def _one_action(self) -> "Event":
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            what = f"not both {given[0]} and {given[1]}" if given else "nothing is done"
            raise ValueError(f"exactly one of {', '.join(ACTIONS)}; {what}")
        if self.device and given[0] not in AT_DEVICES:
            raise ValueError(f"device goes with {', '.join(AT_DEVICES)}; a line of {given[0]} names its own")
        if (self.every is None) != (self.count == 1):
            raise ValueError("every goes with count, above 1")
        return self

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in (None, "")}

    @property
    def action(self) -> str:
        """The key that says what is done."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)


TO_PROGRAMS = ("kill", "pause", "resume", "restart")
"""Actions on programs."""
ACTIONS = (
    *("tc", "ip", "iw", "ethtool", "sysctl", "write", "link", "cable", "set", "station", "ap", "channel"),
    *(*TO_PROGRAMS, "power"),
)
AT_DEVICES = ("link", "cable", "set", "station", "ap", "channel")
"""Actions of one device."""
