# SPDX-License-Identifier: Apache-2.0
"""The plan: what is done, step by step. `hourglass.plan` writes it, the agent's `plan.rs` reads it.

Times are ns of test time; test time 0 is when the set-up is done. Nothing here has a default: whoever executes a plan
decides nothing. Keys that are not declared here are refused, by the agent too (`tests/contract/test_plan.py`).
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import Field, model_validator

from hourglass.contract.plan_apps import App, Room, Root, app_problems
from hourglass.contract.plan_tell import TellStep as TellStep
from hourglass.contract.plan_values import (
    U16,
    U32,
    U64,
    Address,
    Bps,
    Dscp,
    Ecn,
    FileName,
    Interface,
    Ns,
    Part,
    Payload,
    Positive,
)
from hourglass.contract.plan_values import Writes as Writes

VERSION: Final = 6
STREAMS_MAX: Final = 16384
"""Streams of one plan: each has a port of its own, and the packet probe follows so many."""

UDP_PING_PAYLOAD_MIN: Final = 16
"""A UDP ping carries its number and the time of its arrival at the server."""
DATAGRAM_PAYLOAD_MIN: Final = 4
"""A datagram carries its number."""
REQUEST_MIN: Final = 8
"""A request carries the size of its answer."""


# Set-up. `node: null` is the kernel's first namespace. `origin` is the scenario's key to blame when the step fails; the
# agent hands it back untouched.


class BatchStep(Part):
    """Lines for the real `ip` or `tc`, run as a batch in the node."""

    do: Literal["ip", "tc"]
    node: str | None
    lines: list[str]
    origin: str | None


class WriteStep(Part):
    """A value written to a file of /proc or /sys as the node sees it."""

    do: Literal["write"]
    node: str | None
    path: str
    value: str
    origin: str | None


class EthtoolStep(Part):
    """One call of the real `ethtool` in the node."""

    do: Literal["ethtool"]
    node: str
    args: list[str]
    origin: str | None


class EpochStep(Part):
    """At test time 0, the clock's value (CLOCK_MONOTONIC, ns) is written to the file: a trace begins then."""

    do: Literal["epoch"]
    node: str
    path: str
    origin: str | None


class ReachStep(Part):
    """Ping from the node until the address answers; resolves neighbours before the test."""

    do: Literal["reach"]
    node: str
    address: Address
    timeout_ns: Ns
    origin: str | None


class IwStep(Part):
    """One call of the real `iw`, which has to end well within `timeout_ns`.

    With `says` it is called again until it prints that: `iw connect` ends well when it does not connect, too.
    """

    do: Literal["iw"]
    node: str | None
    args: list[str]
    says: str | None
    timeout_ns: Ns
    origin: str | None


class DaemonStep(Part):
    """A program that stays until the end of the run; `config` is the file it is given. The set-up goes on when it
    has said `ready`."""

    do: Literal["daemon"]
    node: str
    tool: Literal["hostapd"]
    config: str
    ready: str
    timeout_ns: Ns
    origin: str | None


class TakeStep(Part):
    """A device of the machine's own, `real`, is moved from the first namespace into the node, where it is called
    `device`. It is given back as it was, in whatever way the run ends."""

    do: Literal["take"]
    node: str
    real: str
    device: str
    origin: str | None


class KeepStep(Part):
    """What later steps change of a namespace that outlives the run: `devices` and `files` of /proc and /sys, which are
    made again what they are at this step; and devices that are `made`, which vanish. In whatever way the run ends."""

    do: Literal["keep"]
    node: str | None
    devices: list[str]
    files: list[str]
    made: list[str]
    origin: str | None


class HostStep(Part):
    """The node is a machine, which ssh reaches at `destination`, and its devices are these interfaces. For those who
    conduct several machines; an agent passes it over."""

    do: Literal["host"]
    node: str
    destination: str
    devices: dict[str, str]
    origin: str | None


Step = Annotated[
    BatchStep | WriteStep | EthtoolStep | EpochStep | ReachStep | IwStep | DaemonStep | TellStep | TakeStep | KeepStep
    | HostStep, Field(discriminator="do"),
]  # fmt: skip


# Events: what changes during the test.


class AppStep(Part):
    """A program, by its id, is killed (SIGKILL to all its processes), paused (SIGSTOP), resumed (SIGCONT), or told to
    stop and started again."""

    do: Literal["app"]
    node: str
    app: U16
    act: Literal["kill", "pause", "resume", "restart"]
    origin: str | None


EventStep = Annotated[
    BatchStep | WriteStep | EthtoolStep | IwStep | DaemonStep | TellStep | AppStep, Field(discriminator="do")
]
"""As in the set-up. A daemon that is given the tool, node and configuration of one that runs takes its place."""


class Event(Part):
    """At `at_ns` the `steps` are carried out, one after the other, by a thread of their own: what a step waits for
    keeps nobody else waiting. `name`: what is done, in the scenario's words; `node`: where."""

    at_ns: Ns
    node: str
    name: str
    steps: Annotated[list[EventStep], Field(min_length=1)]


# Streams: traffic that is measured. `id` is the place in the plan's list; records call a stream by it.


class StreamBase(Part):
    """What every stream has. `client` opens it, to `address`:`port` at `server`."""

    table: ClassVar[str]
    """The record table of what it sends; of a flow, of its sockets' samples."""

    id: U16
    name: str
    client: str
    server: str
    address: Address
    port: U16
    dscp: Dscp
    start_ns: Ns
    stop_ns: Ns


class Flow(StreamBase):
    """One TCP connection; `sender`, one of the two nodes, sends without pause, or what its application `writes`, from
    `start_ns` (when the SYN leaves) to `stop_ns`, when both ends abort. `backend` load: the kernel discards what
    arrives; socket: the agent reads it. `pace_bps`: at most so fast (SO_MAX_PACING_RATE, which is in bytes: a multiple
    of 8); null: as TCP likes."""

    table = "tcp"
    kind: Literal["flow"]
    sender: str
    cc: str
    pace_bps: Annotated[int, Field(ge=8, lt=2**63, multiple_of=8)] | None
    writes: Writes | None
    backend: Literal["load", "socket"]

    @property
    def upload(self) -> bool:
        """Whether the data go from client to server."""
        return self.sender == self.client


class Ping(StreamBase):
    """One packet at each `interval_ns`, displaced by a seeded amount in [0, `jitter_ns`), which the server answers.

    `icmp`: echo requests, whose identifier is `port`. `udp`: isochronous round trips with one-way delays. Packet N is
    displaced by splitmix64(`jitter_seed` XOR N) modulo `jitter_ns`."""

    table = "ping"
    kind: Literal["ping"]
    protocol: Literal["icmp", "udp"]
    ecn: Ecn
    payload_bytes: Payload
    interval_ns: Positive
    jitter_ns: Ns
    jitter_seed: U64


class Phase(Part):
    """A span of a datagram stream: something is sent at `start_ns` and at each `interval_ns` after it, before
    `stop_ns`."""

    start_ns: Ns
    stop_ns: Ns
    interval_ns: Positive


class Datagrams(StreamBase):
    """`burst` packets, one after the other without a pause, at each instant of its `phases`, which follow one another;
    from client to server, exactly on their grids; nobody answers, and a packet that the socket has no room for is not
    sent."""

    table = "datagram"
    kind: Literal["datagrams"]
    ecn: Ecn
    payload_bytes: Payload
    burst: Annotated[int, Field(ge=1, lt=2**32)]
    phases: list[Phase]


class Fetches(StreamBase):
    """Requests of the client's, answered by `sizes` bytes in turn, a TCP connection each; the next one begins when the
    last is done and `interval_ns` since its beginning has passed. At `stop_ns` the one at hand is aborted."""

    table = "fetch"
    kind: Literal["fetches"]
    cc: str
    request_bytes: Payload
    sizes: list[Positive]
    interval_ns: Positive


class Transactions(StreamBase):
    """Requests of the client's, each answered by `response_bytes`, over one TCP connection, which it makes at
    `start_ns`. The next one leaves when the answer is complete. At `stop_ns` the one at hand is aborted."""

    table = "transaction"
    kind: Literal["transactions"]
    cc: str
    request_bytes: Positive
    response_bytes: Positive


Stream = Annotated[Flow | Ping | Datagrams | Fetches | Transactions, Field(discriminator="kind")]
Kind = TypeVar("Kind", bound=StreamBase)


class ByKind:
    """The streams of a plan, or of a recording, by their kind."""

    if TYPE_CHECKING:

        @property
        def streams(self) -> Sequence[Stream]: ...

    def of(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """Those of one kind, in their order."""
        return tuple(one for one in self.streams if isinstance(one, kind))

    @property
    def flows(self) -> tuple[Flow, ...]:
        return self.of(Flow)

    @property
    def pings(self) -> tuple[Ping, ...]:
        return self.of(Ping)

    @property
    def datagrams(self) -> tuple[Datagrams, ...]:
        return self.of(Datagrams)

    @property
    def fetches(self) -> tuple[Fetches, ...]:
        return self.of(Fetches)

    @property
    def transactions(self) -> tuple[Transactions, ...]:
        return self.of(Transactions)


# Paths: what the testbed is to a stream.


class Hop(Part):
    """A device that packets leave by, and where that leads."""

    node: str
    device: str
    address: Interface
    to_node: str
    to_device: str
    to_address: Interface
    medium: Literal["cable", "air"]
    line_bps: Bps
    """What the medium carries: the cable's rate, or the radio's PHY rate (for minstrel the highest it may choose)."""
    shaper_bps: Bps | None
    """HTB's rate at the device."""
    rate_bps: Bps
    """The least of the medium's rate, the shaper's, the qdisc's own, that of `ingress`, and those of the link's policer
    and shaper."""
    delay_ns: Ns
    """Propagation, and netem's delay at the device."""
    qdisc: str
    """The qdisc under test, below the shaper, in tc's words."""
    ingress: str | None
    """The qdisc, on an ifb, of what arrives at `to_device`, in tc's words."""
    impairments: list[str]
    """What else happens on the medium, in the scenario's words: "loss 0.1%", "trace", "shaper rate 20mbit, …"."""
    origin: str
    """The scenario's key of the link or cell."""


class Path(Part):
    """The way of the streams between two nodes, hop by hop."""

    client: str
    server: str
    there: list[Hop]
    back: list[Hop]


class Sampling(Part):
    """Intervals of the samples; 0 is off (`device_ns`: at start and end only; `totals_ns`, the sums over each stream's
    packets: at the end only). The times of one packet in `packets` in each layer become rows; 0 is off."""

    tcp_ns: Ns
    device_ns: Ns
    totals_ns: Ns
    packets: U32


class Capture(Part):
    """Frames of a device, cut to `snaplen` bytes (0: whole), into `file` beside the records."""

    node: str
    device: str
    file: FileName
    snaplen: U32


class Radio(Part):
    """A radio of the `radio` driver: its name there, the device it is in a node, and its address."""

    phy: str
    node: str
    device: str
    address: str


class Plan(Part, ByKind):
    """What is done, step by step."""

    version: Literal[6]
    seed: U64
    end_ns: Ns
    nodes: list[str]
    setup: list[Step]
    streams: Annotated[list[Stream], Field(max_length=STREAMS_MAX)]
    paths: list[Path]
    sampling: Sampling
    captures: list[Capture]
    radios: list[Radio]
    events: list[Event]
    """In the order of their times; at one instant, in this order."""
    roots: list[Root]
    rooms: list[Room]
    apps: list[App]
    apps_end: bool
    """The test ends, at `end_ns` at the latest, when no program that it waits for runs or is still to start."""

    @model_validator(mode="after")
    def _holds_together(self) -> "Plan":
        """What no single part shows; the agent checks the same."""
        for problem in _problems(self):
            raise ValueError(problem)
        return self

    def path(self, client: str, server: str) -> Path:
        """The path of a stream's two nodes."""
        return next(path for path in self.paths if (path.client, path.server) == (client, server))

    def to_json(self) -> bytes:
        """Canonical JSON: equal plans are equal bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _problems(plan: Plan) -> Iterator[str]:
    nodes = set(plan.nodes)
    if len(nodes) != len(plan.nodes):
        yield "two nodes of one name"
    named: list[tuple[str, str | None]] = [("a step", step.node) for step in plan.setup]
    named += [("an event", event.node) for event in plan.events]
    named += [("a step", step.node) for event in plan.events for step in event.steps]
    named += [(f"radio {radio.phy}", radio.node) for radio in plan.radios]
    named += [("a capture", capture.node) for capture in plan.captures]
    named += [(f"stream {one.name}", node) for one in plan.streams for node in (one.client, one.server)]
    for what, node in named:
        if node is not None and node not in nodes:
            yield f"{what} names the node {node}, which is not in nodes"
    for place, stream in enumerate(plan.streams):
        if stream.id != place:
            yield f"stream {stream.name} has the id {stream.id}, not its place {place}"
        for problem in _stream_problems(stream, plan.end_ns):
            yield f"stream {stream.name}: {problem}"
    yield from app_problems(nodes, plan.roots, plan.rooms, plan.apps, plan.end_ns)
    for step in (step for event in plan.events for step in event.steps if isinstance(step, AppStep)):
        if step.app >= len(plan.apps) or plan.rooms[plan.apps[step.app].room].node != step.node:
            yield f"an event names app {step.app}, which is not there"
    times = [event.at_ns for event in plan.events]
    if times != sorted(times) or (times and times[-1] >= plan.end_ns):
        yield "events are not in the order of their times, or not before end_ns"
    pairs: list[Any] = [(path.client, path.server) for path in plan.paths]
    for what, keys in (
        ("streams", [stream.name for stream in plan.streams]),
        ("paths", pairs),
        ("captures", [capture.file for capture in plan.captures]),
        ("captures", [(capture.node, capture.device) for capture in plan.captures]),
    ):
        if len(set(keys)) != len(keys):
            yield f"two {what} are the same"
    for stream in plan.streams:
        if (stream.client, stream.server) not in pairs:
            yield f"stream {stream.name} has no path"


def _stream_problems(stream: Stream, end_ns: int) -> Iterator[str]:
    if not stream.start_ns < stream.stop_ns <= end_ns:
        yield "start_ns < stop_ns <= end_ns does not hold"
    match stream:
        case Flow() if stream.sender not in (stream.client, stream.server):
            yield f"its sender {stream.sender} is neither its client nor its server"
        case Ping():
            if stream.jitter_ns > stream.interval_ns:
                yield "jitter_ns is above interval_ns"
            if stream.protocol == "udp" and stream.payload_bytes < UDP_PING_PAYLOAD_MIN:
                yield f"payload_bytes is below {UDP_PING_PAYLOAD_MIN}"
        case Datagrams():
            if stream.payload_bytes < DATAGRAM_PAYLOAD_MIN:
                yield f"payload_bytes is below {DATAGRAM_PAYLOAD_MIN}"
            if not stream.phases:
                yield "no phases"
            moments = [stream.start_ns, *(at for one in stream.phases for at in (one.start_ns, one.stop_ns))]
            rising = all(one.start_ns < one.stop_ns for one in stream.phases)
            if not rising or [*moments, stream.stop_ns] != sorted([*moments, stream.stop_ns]):
                yield "its phases do not follow one another from start_ns to stop_ns"
        case Fetches():
            if not stream.sizes:
                yield "no sizes"
            if stream.request_bytes < REQUEST_MIN:
                yield f"request_bytes is below {REQUEST_MIN}"
