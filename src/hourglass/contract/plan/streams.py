# SPDX-License-Identifier: Apache-2.0
"""Streams: traffic that is measured. `id` is the place in the plan's list; records call a stream by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeVar

from pydantic import Field

from hourglass.contract.plan.plan_values import (
    U16,
    U64,
    Address,
    AgentType,
    Dscp,
    Ecn,
    Ns,
    Payload,
    PlanPart,
    Positive,
    Size,
    Writes,
)

STREAMS_MAX: Final = 16384
"""The most streams of a plan. Each has its port, and the packet probe follows this number."""

UDP_PING_PAYLOAD_MIN: Final = 16
"""A UDP ping carries its number and the time of its arrival at the server."""
DATAGRAM_PAYLOAD_MIN: Final = 4
"""A datagram carries its number."""
REQUEST_MIN: Final = 8
"""A request carries the size of its answer."""


class StreamBase(PlanPart):
    """The common keys of streams. `client` opens the stream to `address`:`port` at `server`."""

    table: ClassVar[str]
    """The record table of its packets; for a flow, of its socket samples."""

    id: U16
    name: str
    client: str
    server: str
    address: Address
    port: U16
    dscp: Dscp
    start_ns: Ns
    stop_ns: Ns


class FlowStream(StreamBase):
    """A TCP connection. `sender`, one of the two nodes, sends without pause, or the data that its application `writes`.
    It lasts from `start_ns` (the SYN leaves) to `stop_ns` (both ends abort). `backend`: with `load` the kernel discards
    the received data, with `socket` the agent reads it. `pace_bps`: the highest rate (SO_MAX_PACING_RATE, which is in
    bytes: a multiple of 8), or null for no limit."""

    table = "tcp"
    kind: Literal["flow"]
    sender: str
    cc: str
    pace_bps: Annotated[int, Field(ge=8, lt=2**63, multiple_of=8), AgentType("u64", "pace")] | None
    writes: Writes | None
    backend: Literal["load", "socket"]

    @property
    def upload(self) -> bool:
        """Return whether the client sends the data."""
        return self.sender == self.client


class PingStream(StreamBase):
    """A packet every `interval_ns`, which the server answers.

    `icmp`: echo requests with the identifier `port`. `udp`: isochronous round trips with one-way delays. Packet N is
    delayed by splitmix64(`jitter_seed` XOR N) modulo `jitter_ns`."""

    table = "ping"
    kind: Literal["ping"]
    protocol: Literal["icmp", "udp"]
    ecn: Ecn
    payload_bytes: Payload
    interval_ns: Positive
    jitter_ns: Ns
    jitter_seed: U64


class Phase(PlanPart):
    """A period of a datagram stream, with a burst at `start_ns` and every `interval_ns` after it, before `stop_ns`."""

    start_ns: Ns
    stop_ns: Ns
    interval_ns: Positive


class DatagramStream(StreamBase):
    """`burst` packets back to back at each instant of its consecutive `phases`, from client to server. The server does
    not answer. A packet that finds the socket's buffer full is not sent."""

    table = "datagram"
    kind: Literal["datagrams"]
    ecn: Ecn
    payload_bytes: Payload
    burst: Annotated[int, Field(ge=1, lt=2**32), AgentType("u32", "count")]
    phases: list[Phase]


class FetchStream(StreamBase):
    """Requests by the client with a TCP connection each; the answers have the `sizes` in turn, in bytes. The next
    request begins when the previous one is done and `interval_ns` has passed since its start. `stop_ns` aborts the
    current request."""

    table = "fetch"
    kind: Literal["fetches"]
    cc: str
    request_bytes: Payload
    sizes: list[Size]
    interval_ns: Positive


class TransactionStream(StreamBase):
    """Requests by the client over one TCP connection, which it opens at `start_ns`. Each answer has `response_bytes`.
    The next request leaves when the answer is complete. `stop_ns` aborts the current request."""

    table = "transaction"
    kind: Literal["transactions"]
    cc: str
    request_bytes: Size
    response_bytes: Size


Stream = Annotated[
    FlowStream | PingStream | DatagramStream | FetchStream | TransactionStream, Field(discriminator="kind")
]
AnyStream = TypeVar("AnyStream", bound=StreamBase)


class StreamsByKind:
    """The streams of a plan or of a recording, by kind."""

    if TYPE_CHECKING:

        @property
        def streams(self) -> Sequence[Stream]: ...

    def of_kind(self, kind: type[AnyStream]) -> tuple[AnyStream, ...]:
        """Return the streams of a kind, in their order."""
        return tuple(stream for stream in self.streams if isinstance(stream, kind))

    @property
    def flows(self) -> tuple[FlowStream, ...]:
        return self.of_kind(FlowStream)

    @property
    def pings(self) -> tuple[PingStream, ...]:
        return self.of_kind(PingStream)

    @property
    def datagrams(self) -> tuple[DatagramStream, ...]:
        return self.of_kind(DatagramStream)

    @property
    def fetches(self) -> tuple[FetchStream, ...]:
        return self.of_kind(FetchStream)

    @property
    def transactions(self) -> tuple[TransactionStream, ...]:
        return self.of_kind(TransactionStream)
