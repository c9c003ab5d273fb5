# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: set-up steps, streams, events, programs. `hourglass.plan` writes it, the agent's `plan.rs` reads
it.

    plan_values.py   single values    steps.py   set-up, events    streams.py   traffic
    hops.py          paths            apps.py    programs

Times are ns of test time; test time 0 is the end of the set-up. Nothing here has a default, so that an engine decides
nothing. Both Python and the agent refuse undeclared keys (`tests/contract/test_plan.py`). The relations between parts
(`problems`) are checked here, and the agent assumes them.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from hourglass.contract.plan.apps import Container, PlanApp, Root, app_problems
from hourglass.contract.plan.hops import Hop as Hop
from hourglass.contract.plan.hops import Path as Path
from hourglass.contract.plan.plan_values import U32, U64, FileName, Ns, PlanPart
from hourglass.contract.plan.plan_values import Writes as Writes
from hourglass.contract.plan.steps import AddressStep as AddressStep
from hourglass.contract.plan.steps import AppStep as AppStep
from hourglass.contract.plan.steps import BatchStep as BatchStep
from hourglass.contract.plan.steps import CostStep as CostStep
from hourglass.contract.plan.steps import DaemonStep as DaemonStep
from hourglass.contract.plan.steps import DecisionStep as DecisionStep
from hourglass.contract.plan.steps import DeviceStep as DeviceStep
from hourglass.contract.plan.steps import DeviceToolStep as DeviceToolStep
from hourglass.contract.plan.steps import EpochStep as EpochStep
from hourglass.contract.plan.steps import EthtoolStep as EthtoolStep
from hourglass.contract.plan.steps import EventStep as EventStep
from hourglass.contract.plan.steps import HostStep as HostStep
from hourglass.contract.plan.steps import IngressStep as IngressStep
from hourglass.contract.plan.steps import IwStep as IwStep
from hourglass.contract.plan.steps import KeepStep as KeepStep
from hourglass.contract.plan.steps import LinkStep as LinkStep
from hourglass.contract.plan.steps import PortStep as PortStep
from hourglass.contract.plan.steps import QdiscStep as QdiscStep
from hourglass.contract.plan.steps import ReachStep as ReachStep
from hourglass.contract.plan.steps import RouteStep as RouteStep
from hourglass.contract.plan.steps import ShaperStep as ShaperStep
from hourglass.contract.plan.steps import Step as Step
from hourglass.contract.plan.steps import SwitchStep as SwitchStep
from hourglass.contract.plan.steps import TagStep as TagStep
from hourglass.contract.plan.steps import TakeStep as TakeStep
from hourglass.contract.plan.steps import TellStep as TellStep
from hourglass.contract.plan.steps import ToolStep as ToolStep
from hourglass.contract.plan.steps import VethStep as VethStep
from hourglass.contract.plan.steps import VlanStep as VlanStep
from hourglass.contract.plan.steps import WriteStep as WriteStep
from hourglass.contract.plan.streams import DATAGRAM_PAYLOAD_MIN as DATAGRAM_PAYLOAD_MIN
from hourglass.contract.plan.streams import REQUEST_MIN as REQUEST_MIN
from hourglass.contract.plan.streams import STREAMS_MAX as STREAMS_MAX
from hourglass.contract.plan.streams import UDP_PING_PAYLOAD_MIN as UDP_PING_PAYLOAD_MIN
from hourglass.contract.plan.streams import AnyStream as AnyStream
from hourglass.contract.plan.streams import DatagramStream as DatagramStream
from hourglass.contract.plan.streams import FetchStream as FetchStream
from hourglass.contract.plan.streams import FlowStream as FlowStream
from hourglass.contract.plan.streams import Phase as Phase
from hourglass.contract.plan.streams import PingStream as PingStream
from hourglass.contract.plan.streams import Stream as Stream
from hourglass.contract.plan.streams import StreamBase as StreamBase
from hourglass.contract.plan.streams import StreamsByKind as StreamsByKind
from hourglass.contract.plan.streams import TransactionStream as TransactionStream

VERSION: Final = 8


class PlanEvent(PlanPart):
    """Executes the `steps` in order at `at_ns`. A separate thread does so, so that a step that waits delays no other
    event. `name`: the event in the scenario's words. `node`: its node."""

    at_ns: Ns
    node: str
    name: str
    steps: Annotated[list[EventStep], Field(min_length=1)]


class Sampling(PlanPart):
    """Sampling intervals; 0 is off. With 0, `device_ns` samples at start and end only, and `totals_ns` (the sums over
    each stream's packets) at the end only. One packet in `packets` becomes rows with its time in each layer; 0:
    none."""

    tcp_ns: Ns
    device_ns: Ns
    totals_ns: Ns
    packets: U32


class PlanCapture(PlanPart):
    """A capture of a device's frames, cut to `snaplen` bytes (0: whole), in `file` next to the records."""

    node: str
    device: str
    file: FileName
    snaplen: U32


class PlanRadio(PlanPart):
    """A radio of the `radio` driver: its name in the driver, its node, device and address."""

    phy: str
    node: str
    device: str
    address: str


class Plan(PlanPart, StreamsByKind):
    """The plan of a run."""

    version: Literal[8]
    seed: U64
    end_ns: Ns
    nodes: list[str]
    setup: list[Step]
    streams: Annotated[list[Stream], Field(max_length=STREAMS_MAX)]
    paths: list[Path]
    sampling: Sampling
    captures: list[PlanCapture]
    radios: list[PlanRadio]
    events: list[PlanEvent]
    """In order of time; events at the same instant in this order."""
    roots: list[Root]
    rooms: list[Container]
    apps: list[PlanApp]
    apps_end: bool
    """The test ends when all programs that it waits for have ended, and at `end_ns` at the latest."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "Plan":
        for problem in problems(self):
            raise ValueError(problem)
        return self

    def path(self, client: str, server: str) -> Path:
        """Return the path between a stream's two nodes."""
        return next(path for path in self.paths if (path.client, path.server) == (client, server))

    def to_json(self) -> bytes:
        """Return canonical JSON: equal plans give equal bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def problems(plan: Plan) -> Iterator[str]:
    """Yield the inconsistencies of a plan."""
    nodes = set(plan.nodes)
    if len(nodes) != len(plan.nodes):
        yield "two nodes have the same name"
    named: list[tuple[str, str | None]] = [("a step", step.node) for step in plan.setup]
    named += [("an event", event.node) for event in plan.events]
    named += [("a step", step.node) for event in plan.events for step in event.steps]
    named += [(f"radio {radio.phy}", radio.node) for radio in plan.radios]
    named += [("a capture", capture.node) for capture in plan.captures]
    named += [(f"stream {stream.name}", node) for stream in plan.streams for node in (stream.client, stream.server)]
    for subject, node in named:
        if node is not None and node not in nodes:
            yield f"{subject} names the node {node}, which is not in nodes"
    for position, stream in enumerate(plan.streams):
        if stream.id != position:
            yield f"stream {stream.name} has the id {stream.id}, not its position {position}"
        for problem in _stream_problems(stream, plan.end_ns):
            yield f"stream {stream.name}: {problem}"
    yield from app_problems(nodes, plan.roots, plan.rooms, plan.apps, plan.end_ns)
    for step in (step for event in plan.events for step in event.steps if isinstance(step, AppStep)):
        if step.app >= len(plan.apps) or plan.rooms[plan.apps[step.app].room].node != step.node:
            yield f"an event names app {step.app}, which does not exist in its node"
    times = [event.at_ns for event in plan.events]
    if times != sorted(times) or (times and times[-1] >= plan.end_ns):
        yield "events are not in order of time, or not before end_ns"
    pairs: list[Any] = [(path.client, path.server) for path in plan.paths]
    for parts, keys in (
        ("streams", [stream.name for stream in plan.streams]),
        ("paths", pairs),
        ("captures", [capture.file for capture in plan.captures]),
        ("captures", [(capture.node, capture.device) for capture in plan.captures]),
    ):
        if len(set(keys)) != len(keys):
            yield f"two {parts} are the same"
    for stream in plan.streams:
        if (stream.client, stream.server) not in pairs:
            yield f"stream {stream.name} has no path"


def _stream_problems(stream: Stream, end_ns: int) -> Iterator[str]:
    if not stream.start_ns < stream.stop_ns <= end_ns:
        yield "start_ns < stop_ns <= end_ns does not hold"
    match stream:
        case FlowStream() if stream.sender not in (stream.client, stream.server):
            yield f"its sender {stream.sender} is neither its client nor its server"
        case PingStream():
            if stream.jitter_ns > stream.interval_ns:
                yield "jitter_ns is above interval_ns"
            if stream.protocol == "udp" and stream.payload_bytes < UDP_PING_PAYLOAD_MIN:
                yield f"payload_bytes is below {UDP_PING_PAYLOAD_MIN}"
        case DatagramStream():
            if stream.payload_bytes < DATAGRAM_PAYLOAD_MIN:
                yield f"payload_bytes is below {DATAGRAM_PAYLOAD_MIN}"
            if not stream.phases:
                yield "no phases"
            moments = [stream.start_ns, *(at for phase in stream.phases for at in (phase.start_ns, phase.stop_ns))]
            rising = all(phase.start_ns < phase.stop_ns for phase in stream.phases)
            if not rising or [*moments, stream.stop_ns] != sorted([*moments, stream.stop_ns]):
                yield "its phases do not follow one another from start_ns to stop_ns"
        case FetchStream():
            if not stream.sizes:
                yield "no sizes"
            if stream.request_bytes < REQUEST_MIN:
                yield f"request_bytes is below {REQUEST_MIN}"
