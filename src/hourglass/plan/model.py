# SPDX-License-Identifier: Apache-2.0
"""The plan: this end of the contract whose other end is the agent's `plan.rs`. ARCHITECTURE.md says what each part
means.

Times are ns of test time. Nothing here has a default: whoever executes a plan decides nothing.
"""

import json
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

VERSION: Final = 1

Ns = Annotated[int, Field(ge=0, lt=2**63)]


class Part(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class BatchStep(Part):
    """Lines for the real `ip` or `tc`, run as a batch in the node."""

    do: Literal["ip", "tc"]
    node: str | None
    lines: list[str]
    origin: str | None


class WriteStep(Part):
    """A value written to a file of /proc or /sys as the node sees it; `node: null` is the guest's first namespace."""

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
    address: str
    timeout_ns: Ns
    origin: str | None


class IwStep(Part):
    """One call of the real `iw`, which has to end well within `timeout_ns`; `node: null` is the first namespace.

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


Step = Annotated[
    BatchStep | WriteStep | EthtoolStep | EpochStep | ReachStep | IwStep | DaemonStep, Field(discriminator="do")
]


class Flow(Part):
    """One TCP connection; `sender`, one of the two nodes, sends from `start_ns` to `stop_ns`."""

    id: int
    name: str
    client: str
    server: str
    sender: str
    address: str
    port: int
    cc: str
    dscp: int
    start_ns: Ns
    stop_ns: Ns
    backend: Literal["load", "socket"]


class Probe(Part):
    """Packets at an interval, each displaced by a seeded amount in [0, `jitter_ns`)."""

    id: int
    name: str
    kind: Literal["icmp", "udp"]
    client: str
    server: str
    address: str
    port: int
    dscp: int
    payload_bytes: int
    start_ns: Ns
    stop_ns: Ns
    interval_ns: Ns
    jitter_ns: Ns


class Datagram(Part):
    """One-way packets from client to server; the id is of one space with the probes'."""

    id: int
    name: str
    client: str
    server: str
    address: str
    port: int
    dscp: int
    payload_bytes: int
    start_ns: Ns
    stop_ns: Ns
    interval_ns: Ns


class Fetch(Part):
    """Requests of the client's, answered by `sizes` bytes in turn, a TCP connection each; the next one begins when the
    last is done and `interval_ns` since its beginning has passed."""

    id: int
    name: str
    client: str
    server: str
    address: str
    port: int
    cc: str
    dscp: int
    request_bytes: int
    sizes: list[int]
    start_ns: Ns
    stop_ns: Ns
    interval_ns: Ns


class Sampling(Part):
    """Intervals of the samples; 0 is off (`device_ns`: at start and end only; `totals_ns`, the sums over each flow's
    packets: at the end only). The layers' times of one packet in `packets` become rows; 0 is off."""

    tcp_ns: Ns
    device_ns: Ns
    totals_ns: Ns
    packets: Annotated[int, Field(ge=0, lt=2**32)]


class Capture(Part):
    """Frames of a device, cut to `snaplen` bytes (0: whole), into `file` beside the records."""

    node: str
    device: str
    file: str
    snaplen: Annotated[int, Field(ge=0, lt=2**32)]


class Radio(Part):
    """A radio of the `radio` driver: its name there, the device it is in a node, and its address."""

    phy: str
    node: str
    device: str
    address: str


class Plan(Part):
    """What is done, step by step."""

    version: Literal[1]
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    end_ns: Ns
    nodes: list[str]
    setup: list[Step]
    flows: list[Flow]
    probes: list[Probe]
    datagrams: list[Datagram]
    fetches: list[Fetch]
    sampling: Sampling
    captures: list[Capture]
    radios: list[Radio]

    def to_json(self) -> bytes:
        """Canonical JSON: equal plans are equal bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
