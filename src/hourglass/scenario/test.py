# SPDX-License-Identifier: Apache-2.0
"""The test: what is run on the testbed, and the types of its parameters. What tests there are stands in
testkinds.py, what is filled in and refused in check_streams.py."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator

from hourglass.scenario.datagrams import DatagramStream, Payload
from hourglass.scenario.kinds import (
    LIST,
    Kind,
    Schema,
    choice,
    integer,
    list_of,
    one_of,
    quantity,
    seconds,
    seconds_schema,
    sequence,
    words,
    words_of,
)
from hourglass.scenario.marks import MARK_SCHEMA, Ecn, Marking, marking, show_mark
from hourglass.scenario.table import Rows, Table
from hourglass.scenario.testkinds import TESTS, WORKERS_MAX
from hourglass.scenario.units import RATE, SIZE, Bounds, parse_seconds, show
from hourglass.scenario.values import CC_SCHEMA, DAY_S, Cc, Ccs, NodeName, Number, PositiveSeconds, Seconds, cc

ANSWER = Bounds(SIZE, 1, 2**40)
_LABEL_TEXT = r"[A-Za-z0-9][A-Za-z0-9 ()._+-]{0,31}"
_LABEL = re.compile(_LABEL_TEXT, re.ASCII)
_DIRECTIONS = ("u", "d", "ud")


def _label(value: object) -> str:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ValueError("labels of 1 to 32 letters, digits, spaces and ( ) . _ + -")
    return value


def _names(check: Callable[[object], str], what: str, shown: str, schema: Schema) -> tuple[object, ...]:
    """A list of texts, or one text with commas, each of which is checked."""

    def texts(value: object) -> tuple[str, ...]:
        return tuple(check(one) for one in words(value, what))

    return PlainValidator(texts), LIST, Kind(shown, schema=words_of(schema))


Markings = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(marking(one) for one in words(value, "marks"))),
    PlainSerializer(lambda marks: [show_mark(one) for one in marks]),
    Kind("list of names or numbers", "DSCP", words_of(MARK_SCHEMA)),
]
Labels = Annotated[
    tuple[str, ...],
    *_names(_label, "labels", "list of texts", {"type": "string", "pattern": f"^{_LABEL_TEXT}$"}),
]
Directions = Annotated[
    tuple[str, ...],
    *_names(one_of(_DIRECTIONS, "A direction"), "directions", 'list of "u", "d", "ud"', {"enum": list(_DIRECTIONS)}),
]
CcNames = Annotated[
    tuple[str, ...],
    PlainValidator(lambda value, info: tuple(cc(one, info) for one in words(value, "congestion controls"))),
    LIST,
    Kind("one, or a list of them", schema={"anyOf": [words_of(CC_SCHEMA), CC_SCHEMA]}),
]
Sizes = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(ANSWER.parse(one) for one in words(value, "sizes"))),
    PlainSerializer(lambda sizes: [show(one, SIZE) for one in sizes]),
    Kind("list of sizes", "B", words_of(ANSWER.schema())),
]
PACE = Bounds(RATE, 8000, 10**12, zero=True)
UdpRate = Annotated[int, *quantity(Bounds(RATE, 1000, 10**11))]
Streams = Annotated[int, *integer(1, 1000, "flows")]
Flows = Annotated[int, *integer(0, 1000, "flows")]
Workers = Annotated[int, *integer(1, WORKERS_MAX, "fetches at a time")]
Message = Annotated[int, *quantity(ANSWER)]
Connections = Annotated[int, *integer(1, WORKERS_MAX, "connections")]
TestName = Annotated[str, *choice(tuple(TESTS), "A test", "name")]
Length = Annotated[Number, *seconds(Fraction(1, 10), DAY_S)]


def _moments(low: Fraction) -> tuple[object, ...]:
    """A list of numbers of seconds."""

    def moments(value: object) -> tuple[Number, ...]:
        return tuple(parse_seconds(one, low, DAY_S) for one in sequence(value, "seconds"))

    return PlainValidator(moments), LIST, Kind("list of numbers", "s", list_of(seconds_schema(low, DAY_S)))


StartDelays = Annotated[tuple[Number, ...], *_moments(Fraction(0))]
Stops = Annotated[tuple[Number, ...], *_moments(Fraction(1, 1000))]


def _pace(value: object) -> int:
    rate = PACE.parse(value)
    if rate % 8:
        raise ValueError(f"{PACE.allowed()}, in whole bytes per second")
    return rate


def _paces(value: object) -> tuple[int, ...]:
    return tuple(_pace(one) for one in sequence(value, "rates"))


Pace = Annotated[
    int,
    PlainValidator(_pace),
    PlainSerializer(lambda rate: show(rate, RATE), return_type=str),
    Kind("rate, 0 = none", "bit/s", PACE.schema()),
]
Paces = Annotated[
    tuple[int, ...],
    PlainValidator(_paces),
    PlainSerializer(lambda rates: [show(one, RATE) for one in rates]),
    Kind("list of rates", "bit/s", list_of(PACE.schema())),
]


def _hosts(value: object) -> tuple[str, ...]:
    named = [one for one in words(value, "nodes") if isinstance(one, str)]
    if len(set(named)) != len(words(value, "nodes")):
        raise ValueError("names of nodes, each once")
    return tuple(named)


NodeNames = Annotated[
    tuple[str, ...], PlainValidator(_hosts), LIST, Kind("list of nodes", schema=words_of({"type": "string"}))
]


class Competing(Table):
    """Flows beside those of the test, in the same span of time."""

    client: NodeName = Field(description="The node that connects.")
    server: NodeName = Field(default="", description="The node that listens; default: the test's server.")
    upload_streams: Flows = Field(default=1, description="Flows from client to server.")
    download_streams: Flows = Field(default=0, description="Flows from server to client.")
    cc: Cc | None = Field(default=None, description="Congestion control; default: the sender's stack.cc.")
    start: Seconds = Field(default=0, description="When they begin, in seconds after the load does.")
    stop: PositiveSeconds | None = Field(
        default=None, description="When they end, in seconds after the load's beginning; default: with the load."
    )
    rate: Pace = Field(default=0, description="The most that each of them sends, as in `test.stream_rates`.")
    writes: Pace = Field(default=0, description="How fast its application writes, as in `test.stream_writes`.")


class Test(Table):
    """What is run on the testbed."""

    __test__ = False

    name: TestName = Field(default="tcp_nup", description=f"One of {', '.join(TESTS)}.")
    client: NodeName = Field(
        default="", description="The node that connects; default: the host named client, else the first host."
    )
    server: NodeName = Field(
        default="", description="The node that listens; default: the host named server, else the last host."
    )
    upload_streams: Streams | None = Field(
        default=None, description="Flows from client to server; tcp_nup and rrul_be_nflows, default 1."
    )
    download_streams: Streams | None = Field(
        default=None, description="Flows from server to client; tcp_ndown and rrul_be_nflows, default 1."
    )
    bidir_streams: Streams | None = Field(default=None, description="Flows each way; rrul_var, default 1.")
    hosts: NodeNames | None = Field(
        default=None, description="Servers of rtt_fair; default: every host but the client. `server` is the first."
    )
    markings: Markings | None = Field(
        default=None, description="Marks of the flows, in order; missing ones are CS0. Plain flows and hosts."
    )
    labels: Labels | None = Field(
        default=None, description="Names of the flows; rrul_var and rtt_fair_var, default N (MARK), or BE."
    )
    ping_labels: Labels | None = Field(default=None, description="Names of the pings; rtt_fair_var, default ICMP.")
    cc_algos: CcNames | None = Field(
        default=None, description="Congestion controls, stream by stream, the same in both directions."
    )
    tcp_cong_control: CcNames | None = Field(
        default=None, description="Congestion control of all flows of the test, or [up, down]; default: stack.cc."
    )
    data_directions: Directions | None = Field(
        default=None, description="Which flows there are with each host; rtt_fair_var_mixed, default ud."
    )
    udp_bandwidth: UdpRate | None = Field(default=None, description="UDP payload; udp_flood, default 1mbit.")
    udp_pktsize: Payload | None = Field(default=None, description="UDP payload of a packet; udp_flood, default 1470.")
    udp_ecn: Ecn | None = Field(default=None, description="ECN field of its packets; udp_flood, default not_ect.")
    voip_marking: Marking | None = Field(default=None, description="Mark of the voip stream, default CS0.")
    voip_ecn: Ecn | None = Field(default=None, description="ECN field of the voip stream, default not_ect.")
    http_sizes: Sizes | None = Field(default=None, description="Sizes fetched in turn; http, default 10KB, 100KB, 1MB.")
    http_interval: PositiveSeconds | None = Field(
        default=None,
        description="Time between the beginnings of two fetches, unless the first takes longer; default 0.2.",
    )
    http_workers: Workers | None = Field(default=None, description="Clients that fetch at the same time, default 1.")
    rr_request: Message | None = Field(default=None, description="Size of a request; tcp_rr, default 1B.")
    rr_response: Message | None = Field(default=None, description="Size of its answer; tcp_rr, default 1B.")
    rr_streams: Connections | None = Field(default=None, description="Connections of tcp_rr, default 1.")
    length: Length = Field(default=30, description="Duration of the flows.")
    delay: Seconds = Field(
        default=5, description="Time with pings only, before and after the flows; 0 for the test ping."
    )
    step: PositiveSeconds = Field(default=0.2, description="Step of resampled series.")
    flow_cc: Ccs = Field(
        default=(), description="Congestion controls of the flows, in turn; default: the sender's stack.cc."
    )
    competing: Rows[Competing] = Field(default=(), description="Flows of other nodes, in addition to the test's.")
    datagrams: Rows[DatagramStream] = Field(default=(), description="Streams of UDP, in addition to the test's.")
    stream_delays: StartDelays = Field(default=(), description="Start delay of each flow, in turn.")
    stream_stops: Stops = Field(
        default=(), description="When each flow ends, in turn, in seconds after the load's beginning; default: with it."
    )
    stream_rates: Paces = Field(
        default=(),
        description="The most that each flow sends, in turn; 0: no limit. It is paced (SO_MAX_PACING_RATE): its"
        " payload, with the qdisc fq too.",
    )
    stream_writes: Paces = Field(
        default=(),
        description="How fast the application of each flow writes, in turn; 0: it always has something to send. What"
        " the socket has no room for waits: no byte is left out.",
    )
    write_interval: PositiveSeconds = Field(
        default=0.02, description="Time from one write of such an application to its next, from the connection on."
    )
    ping_interval: PositiveSeconds = Field(
        default=0.2, description="Interval of ICMP echo requests, each up to a tenth late."
    )
    udp_interval: PositiveSeconds = Field(
        default=0.2, description="Interval of UDP round trips, each up to a tenth late."
    )
    ping_ecn: Ecn = Field(
        default="not_ect", description="ECN field of all pings; with `ect1` they take the queue of L4S."
    )


class Flow(Table):
    """How the data of TCP flows is moved."""

    backend: Annotated[Literal["load", "socket"], *choice(("load", "socket"), "What takes the data")] = Field(
        default="load",
        description="load: all inside the kernel, which copies nothing and discards what arrives; socket: it copies,"
        " and a thread reads, as an application does, which takes three times as long. The packets are the same, at"
        " the same ns.",
    )
