# SPDX-License-Identifier: Apache-2.0
"""`Scenario`: everything a run is made from. `load` makes one; every default is spelled out in it."""

import json
from fractions import Fraction
from typing import Annotated

from pydantic import Field, PlainValidator

from hourglass.contract.kernels import CHOICES, DEFAULT
from hourglass.scenario.marks import CcNames, Directions, Labels, Marking, Markings, Sizes, UdpRate, words
from hourglass.scenario.stack import Stack
from hourglass.scenario.table import Rows, Table
from hourglass.scenario.testbed import Testbed
from hourglass.scenario.testkinds import TESTS, WORKERS_MAX
from hourglass.scenario.units import parse_seconds
from hourglass.scenario.values import (
    DAY_S,
    LIST,
    Backend,
    Ccs,
    Description,
    Interval,
    KernelName,
    Kind,
    NodeName,
    Number,
    Packets,
    Places,
    PositiveSeconds,
    ScenarioName,
    Seconds,
    integer,
    one_of,
    sequence,
)
from hourglass.scenario.wifi import Competing

Snaplen = Annotated[int, integer(0, 65535, "bytes"), Kind("integer", "B")]
Streams = Annotated[int, integer(1, 1000, "flows"), Kind("integer")]
Payload = Annotated[int, integer(4, 65_507, "bytes"), Kind("integer", "B")]
Workers = Annotated[int, integer(1, WORKERS_MAX, "fetches at a time"), Kind("integer")]
Seed = Annotated[int, integer(0, 2**63 - 1, ""), Kind("integer")]
TestName = Annotated[str, PlainValidator(one_of(tuple(TESTS), "A test")), Kind("name")]
Length = Annotated[
    Number, PlainValidator(lambda value: parse_seconds(value, Fraction(1, 10), DAY_S)), Kind("number", "s")
]


def _delays(value: object) -> tuple[Number, ...]:
    return tuple(parse_seconds(one, Fraction(0), DAY_S) for one in sequence(value, "seconds"))


Delays = Annotated[tuple[Number, ...], PlainValidator(_delays), LIST, Kind("list of numbers", "s")]


def _hosts(value: object) -> tuple[str, ...]:
    named = [one for one in words(value, "nodes") if isinstance(one, str)]
    if len(set(named)) != len(words(value, "nodes")):
        raise ValueError("names of nodes, each once")
    return tuple(named)


NodeNames = Annotated[tuple[str, ...], PlainValidator(_hosts), LIST, Kind("list of nodes")]


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
        default=None, description="The servers of rtt_fair; default: every host but the client. `server` is the first."
    )
    markings: Markings | None = Field(
        default=None, description="Marks of the flows; one of fewer marks than flows is CS0. Plain flows and hosts."
    )
    labels: Labels | None = Field(
        default=None, description="Names of the flows; rrul_var and rtt_fair_var, default N (MARK), or BE."
    )
    ping_labels: Labels | None = Field(default=None, description="Names of the pings; rtt_fair_var, default ICMP.")
    cc_algos: CcNames | None = Field(
        default=None, description="Congestion controls of the flows, stream by stream, both ways of one alike."
    )
    tcp_cong_control: CcNames | None = Field(
        default=None, description="Congestion control of all flows of the test, or [up, down]; default: stack.cc."
    )
    data_directions: Directions | None = Field(
        default=None, description="Which flows there are with each host; rtt_fair_var_mixed, default ud."
    )
    udp_bandwidth: UdpRate | None = Field(default=None, description="UDP payload; udp_flood, default 1mbit.")
    udp_pktsize: Payload | None = Field(default=None, description="UDP payload of a packet; udp_flood, default 1470.")
    voip_marking: Marking | None = Field(default=None, description="Mark of the voip stream, default CS0.")
    http_sizes: Sizes | None = Field(
        default=None, description="What is fetched in turn; http, default 10KB, 100KB, 1MB."
    )
    http_interval: PositiveSeconds | None = Field(
        default=None, description="The next fetch begins so long after the last began, or when that is done; 0.2."
    )
    http_workers: Workers | None = Field(default=None, description="Clients that fetch at the same time, default 1.")
    length: Length = Field(default=30, description="How long the flows send.")
    delay: Seconds = Field(
        default=5, description="How long there are pings alone, before the flows and after them; 0 for the test ping."
    )
    step: PositiveSeconds = Field(default=0.2, description="Step to which series are resampled.")
    flow_cc: Ccs = Field(
        default=(), description="Congestion controls of the flows, in turn; default: the sender's stack.cc."
    )
    competing: Rows[Competing] = Field(default=(), description="Flows of further nodes beside the test's.")
    stream_delays: Delays = Field(
        default=(), description="How much later than the first possible time each flow starts, in turn."
    )
    ping_interval: PositiveSeconds = Field(
        default=0.2, description="Time between two ICMP echo requests, each up to a tenth late."
    )
    udp_interval: PositiveSeconds = Field(
        default=0.2, description="Time between two UDP round trips, each up to a tenth late."
    )


class Flow(Table):
    """Who moves the data of TCP flows."""

    backend: Backend = Field(
        default="load",
        description="load: all inside the kernel, which copies nothing and discards what arrives; socket: it copies,"
        " and a thread reads, as an application does, which takes three times as long. The packets are the same, at"
        " the same ns.",
    )


class Measure(Table):
    """What is recorded beside the pings. Measuring costs no virtual time."""

    tcp: Interval | None = Field(
        default=None,
        description="Interval of samples of every socket (tcp_info); unset: 10ms, with more than 64 flows so much"
        " longer that no more is written, at most `test.step`.",
    )
    devices: Interval = Field(
        default=2 * 10**8, description="Interval of samples of every NIC and qdisc; 0: at start and end only."
    )
    packets: Packets = Field(
        default=500,
        description="About how many packets per second have their time in each layer kept one by one; 0: none."
        " Sums are always over all packets.",
    )


class Capture(Table):
    """Frames on the cable, into pcapng files of the run directory. Capturing costs no virtual time."""

    pcap: Places = Field(
        default=(),
        description="The devices whose frames are captured, both directions; of a radio 802.11 with radiotap headers.",
    )
    snaplen: Snaplen = Field(default=128, description="Bytes kept of each frame, radiotap not counted; 0: all.")


class Scenario(Table):
    """A run, fully described."""

    name: ScenarioName = Field(default="scenario", description="Names the run; default: the file's name.")
    description: Description = Field(default="", description="One line about it.")
    kernel: KernelName = Field(default=DEFAULT, description=f"{CHOICES} or a name given with `hourglass kernel build`.")
    seed: Seed = Field(default=1, description="Of everything random; equal seeds give equal runs.")
    testbed: Testbed = Field(description="Nodes, links, cells, shapers: `preset = NAME`, or spelled out.")
    stack: Stack = Field(default=Stack(), description="The nodes' network stack.")
    test: Test = Field(default=Test(), description="What is run.")
    flow: Flow = Field(default=Flow(), description="Who moves the data of TCP flows.")
    measure: Measure = Field(default=Measure(), description="What is recorded.")
    capture: Capture = Field(default=Capture(), description="Which frames are captured.")

    def to_json(self) -> bytes:
        """Canonical JSON: equal scenarios are equal bytes. `load` makes the same scenario of it again."""
        text = json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()
