# SPDX-License-Identifier: Apache-2.0
"""The test and the types of its parameters. testkinds.py lists the tests; check_streams.py fills in and refuses
parameters."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator

from hourglass.scenario.datagrams import ExtraDatagrams, Payload
from hourglass.scenario.ip_marks import MARK_SCHEMA, Ecn, Marking, marking, show_mark
from hourglass.scenario.quantities import RATE, SIZE, Bounds, parse_seconds, show
from hourglass.scenario.testkinds import TESTS, WORKERS_MAX
from hourglass.scenario.toml_table import Rows, TomlTable
from hourglass.scenario.value_kinds import (
    LIST,
    Schema,
    ValueKind,
    choice,
    integer,
    list_of,
    one_of,
    quantity,
    seconds,
    seconds_schema,
    sequence,
    texts,
    texts_schema,
)
from hourglass.scenario.values import CC_SCHEMA, DAY_S, Cc, Ccs, NodeName, Number, PositiveSeconds, Seconds, cc

ANSWER = Bounds(SIZE, 1, 2**40)
_LABEL_TEXT = r"[A-Za-z0-9][A-Za-z0-9 ()._+-]{0,31}"
_LABEL = re.compile(_LABEL_TEXT, re.ASCII)
_DIRECTIONS = ("u", "d", "ud")


def _label(value: object) -> str:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ValueError("must be labels of 1 to 32 letters, digits, spaces and ( ) . _ + -")
    return value


def _names(check: Callable[[object], str], noun: str, description: str, schema: Schema) -> tuple[object, ...]:
    """Check each text of a list, or of one text with commas."""

    def check_each(value: object) -> tuple[str, ...]:
        return tuple(check(item) for item in texts(value, noun))

    return PlainValidator(check_each), LIST, ValueKind(description, schema=texts_schema(schema))


Markings = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(marking(item) for item in texts(value, "marks"))),
    PlainSerializer(lambda marks: [show_mark(item) for item in marks]),
    ValueKind("list of names or numbers", "DSCP", texts_schema(MARK_SCHEMA)),
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
    PlainValidator(lambda value, info: tuple(cc(item, info) for item in texts(value, "congestion controls"))),
    LIST,
    ValueKind("one, or a list of them", schema={"anyOf": [texts_schema(CC_SCHEMA), CC_SCHEMA]}),
]
Sizes = Annotated[
    tuple[int, ...],
    PlainValidator(lambda value: tuple(ANSWER.parse(item) for item in texts(value, "sizes"))),
    PlainSerializer(lambda sizes: [show(item, SIZE) for item in sizes]),
    ValueKind("list of sizes", "B", texts_schema(ANSWER.schema())),
]
PACE = Bounds(RATE, 8000, 10**12, zero=True)
UdpRate = Annotated[int, *quantity(Bounds(RATE, 1000, 10**11))]
Streams = Annotated[int, *integer(1, 1000, "flows")]
Flows = Annotated[int, *integer(0, 1000, "flows")]
Workers = Annotated[int, *integer(1, WORKERS_MAX, "fetches at a time")]
Message = Annotated[int, *quantity(ANSWER)]
Connections = Annotated[int, *integer(1, WORKERS_MAX, "connections")]
Probes = Annotated[int, *integer(1, 1000, "probes per second")]
TestName = Annotated[str, *choice(tuple(TESTS), "A test", "name")]
Length = Annotated[Number, *seconds(Fraction(1, 10), DAY_S)]


def _moments(low: Fraction) -> tuple[object, ...]:
    """Check a list of numbers of seconds."""

    def moments(value: object) -> tuple[Number, ...]:
        return tuple(parse_seconds(item, low, DAY_S) for item in sequence(value, "seconds"))

    return PlainValidator(moments), LIST, ValueKind("list of numbers", "s", list_of(seconds_schema(low, DAY_S)))


StartDelays = Annotated[tuple[Number, ...], *_moments(Fraction(0))]
Stops = Annotated[tuple[Number, ...], *_moments(Fraction(1, 1000))]


def _pace(value: object) -> int:
    rate = PACE.parse(value)
    if rate % 8:
        raise ValueError(f"must be {PACE.allowed()}, in whole bytes per second")
    return rate


def _paces(value: object) -> tuple[int, ...]:
    return tuple(_pace(item) for item in sequence(value, "rates"))


Pace = Annotated[
    int,
    PlainValidator(_pace),
    PlainSerializer(lambda rate: show(rate, RATE), return_type=str),
    ValueKind("rate, 0 = none", "bit/s", PACE.schema()),
]
Paces = Annotated[
    tuple[int, ...],
    PlainValidator(_paces),
    PlainSerializer(lambda rates: [show(item, RATE) for item in rates]),
    ValueKind("list of rates", "bit/s", list_of(PACE.schema())),
]


def _hosts(value: object) -> tuple[str, ...]:
    names = [item for item in texts(value, "nodes") if isinstance(item, str)]
    if len(set(names)) != len(texts(value, "nodes")):
        raise ValueError("must be names of nodes, each once")
    return tuple(names)


NodeNames = Annotated[
    tuple[str, ...], PlainValidator(_hosts), LIST, ValueKind("list of nodes", schema=texts_schema({"type": "string"}))
]


class Competing(TomlTable):
    """Flows in addition to those of the test, during the same time."""

    client: NodeName = Field(description="The node that connects.")
    server: NodeName = Field(default="", description="The node that listens. Default: the test's server.")
    upload_streams: Flows = Field(default=1, description="Flows from client to server.")
    download_streams: Flows = Field(default=0, description="Flows from server to client.")
    cc: Cc | None = Field(default=None, description="Congestion control. Default: the sender's stack.cc.")
    start: Seconds = Field(default=0, description="When they start, in seconds after the load's start.")
    stop: PositiveSeconds | None = Field(
        default=None, description="When they end, in seconds after the load's start. Default: with the load."
    )
    rate: Pace = Field(default=0, description="Maximum rate of each flow, as in `test.stream_rates`.")
    writes: Pace = Field(default=0, description="Write rate of each flow's application, as in `test.stream_writes`.")


class Test(TomlTable):
    """The test that runs on the testbed."""

    __test__ = False

    name: TestName = Field(default="tcp_nup", description=f"Name of the test: {', '.join(TESTS)}.")
    client: NodeName = Field(
        default="", description="The node that connects. Default: the host named client, else the first host."
    )
    server: NodeName = Field(
        default="",
        description="The node that listens. Default: the host named server, else the last host other than the client.",
    )
    upload_streams: Streams | None = Field(
        default=None, description="Flows from client to server. For tcp_nup and rrul_be_nflows. Default: 1."
    )
    download_streams: Streams | None = Field(
        default=None, description="Flows from server to client. For tcp_ndown and rrul_be_nflows. Default: 1."
    )
    bidir_streams: Streams | None = Field(
        default=None, description="Flows in each direction. For rrul_var. Default: 1."
    )
    hosts: NodeNames | None = Field(
        default=None, description="Servers of rtt_fair. `server` is the first. Default: every host except the client."
    )
    markings: Markings | None = Field(
        default=None, description="DSCPs of the flows, or of the flows with each host, in order. Missing ones are CS0."
    )
    labels: Labels | None = Field(
        default=None, description="Names of the flows. For rrul_var and rtt_fair_var. Default: N (MARK), or BE."
    )
    ping_labels: Labels | None = Field(default=None, description="Names of the pings. For rtt_fair_var. Default: ICMP.")
    cc_algos: CcNames | None = Field(
        default=None, description="Congestion controls of the flows of each direction, in order."
    )
    tcp_cong_control: CcNames | None = Field(
        default=None, description="Congestion control of all flows of the test, or [up, down]. Default: stack.cc."
    )
    data_directions: Directions | None = Field(
        default=None,
        description="Flows with each host: u (upload), d (download) or ud (both). For rtt_fair_var_mixed. Default: ud.",
    )
    udp_bandwidth: UdpRate | None = Field(
        default=None, description="Rate of UDP payload. For udp_flood. Default: 1mbit."
    )
    udp_pktsize: Payload | None = Field(
        default=None, description="UDP payload of a packet. For udp_flood. Default: 1470."
    )
    udp_ecn: Ecn | None = Field(
        default=None, description="ECN field of the UDP packets. For udp_flood. Default: not_ect."
    )
    voip_marking: Marking | None = Field(default=None, description="DSCP of the voip stream. Default: CS0.")
    voip_ecn: Ecn | None = Field(default=None, description="ECN field of the voip stream. Default: not_ect.")
    http_sizes: Sizes | None = Field(
        default=None, description="Sizes fetched in turn. For http. Default: 10KB, 100KB, 1MB."
    )
    http_interval: PositiveSeconds | None = Field(
        default=None,
        description="Time between the starts of two fetches, or longer if the first takes longer. Default: 0.2.",
    )
    http_workers: Workers | None = Field(default=None, description="Clients that fetch at the same time. Default: 1.")
    rr_request: Message | None = Field(default=None, description="Size of a request. For tcp_rr. Default: 1B.")
    rr_response: Message | None = Field(default=None, description="Size of an answer. For tcp_rr. Default: 1B.")
    rr_streams: Connections | None = Field(default=None, description="Connections. For tcp_rr. Default: 1.")
    rpm_connections: Streams | None = Field(
        default=None, description="Flows in each direction at most (MNP). For rpm. Default: 16."
    )
    rpm_interval: PositiveSeconds | None = Field(
        default=None,
        description="Time between the starts of two flows, and between two tests of stability (ID). Default: 5.",
    )
    rpm_probe_rate: Probes | None = Field(
        default=None,
        description="Probes per second (MPS). Fewer if these exceed 5 % of the slowest link (PTC). Default: 100.",
    )
    rpm_probers: Workers | None = Field(default=None, description="Probes at the same time. For rpm. Default: 20.")
    length: Length = Field(default=30, description="Duration of the flows.")
    delay: Seconds = Field(
        default=5, description="Time with pings only, before and after the flows. 0 for the test ping."
    )
    step: PositiveSeconds = Field(default=0.2, description="Time step of the series in Flent files.")
    flow_cc: Ccs = Field(
        default=(),
        description="Congestion controls of the flows, in turn. Excludes the two other keys. Default: stack.cc.",
    )
    competing: Rows[Competing] = Field(default=(), description="Flows of other nodes, in addition to the test's.")
    datagrams: Rows[ExtraDatagrams] = Field(default=(), description="UDP streams, in addition to the test's.")
    stream_delays: StartDelays = Field(default=(), description="Start delay of each flow, in turn.")
    stream_stops: Stops = Field(
        default=(), description="End of each flow, in turn, in seconds after the load's start. Default: with the load."
    )
    stream_rates: Paces = Field(
        default=(),
        description="Maximum rate of each flow's payload, in turn. 0: no limit. The socket paces it"
        " (SO_MAX_PACING_RATE), also with the qdisc fq.",
    )
    stream_writes: Paces = Field(
        default=(),
        description="Write rate of each flow's application, in turn. 0: it always has data. Data that do not fit"
        " into the socket wait; no byte is skipped.",
    )
    write_interval: PositiveSeconds = Field(
        default=0.02, description="Time between two writes with `stream_writes`, from the connection on."
    )
    ping_interval: PositiveSeconds = Field(
        default=0.2, description="Interval of ICMP echo requests. Each is up to a tenth late."
    )
    udp_interval: PositiveSeconds = Field(
        default=0.2, description="Interval of UDP round trips. Each is up to a tenth late."
    )
    ping_ecn: Ecn = Field(
        default="not_ect", description="ECN field of all pings. With `ect1` they take the queue of L4S."
    )


class FlowSettings(TomlTable):
    """The transport of the TCP flows' data."""

    backend: Annotated[Literal["load", "socket"], *choice(("load", "socket"), "A backend")] = Field(
        default="load",
        description='"load": data stay inside the kernel, without copies, and the receiver discards them. "socket":'
        " data are copied and a thread reads them, as in an application, which takes two to three times"
        " as long. The packets are the same, at the same ns.",
    )
