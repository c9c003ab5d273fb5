# SPDX-License-Identifier: Apache-2.0
"""The figures of a run: what `hourglass run --json` prints and `summary.json` holds. `results/summarize.py` makes them.

Statistics cover the loaded window: the `length` seconds under load, or the whole run when nothing loads it. Drops and
the qdiscs' own counters cover the whole run. Goodput is payload bytes received per second. A value that is not known
is null; floats have six significant digits. The published JSON Schema is made of these models.
"""

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Final = 1
"""Counts changes of a key's meaning. Keys may be added at any time."""


class Figures(BaseModel):
    """A part of the summary."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Statistics(Figures):
    """What samples are like; without samples n is 0 and the rest null. Percentiles are linear, as numpy's."""

    n: int
    min: float | None
    p10: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None
    mean: float | None


class Lost(Figures):
    """What got no answer."""

    lost: int


class Pings(Statistics, Lost):
    """Round trips of one ping stream, ms. A packet counts in the window in which it was sent."""


class Totals(Figures):
    """All flows together: goodput each way, and Jain's index (1: all equal). Tables, pictures and reports show
    `upload_fairness` and `download_fairness` where there are flows both ways: `fairness`, of all flows as if they
    shared one line, is low on a line that is faster one way, however fair it is."""

    upload_mbps: float
    download_mbps: float
    fairness: float | None
    upload_fairness: float | None
    download_fairness: float | None


class Flow(Figures):
    """One TCP connection. `retransmits`: segments sent once more within the window, of lost packets and, where the
    peer had them already, of others. Samples are the sender's smoothed RTT; `hystart_exit_s` counts from the flow's
    start."""

    id: str
    cc: str
    goodput_mbps: float
    retransmits: int | None
    tcp_rtt_ms: Statistics
    hystart_exit_s: float | None


class Datagrams(Figures):
    """One-way packets. `refused`: the sender's socket had no room; they are among the lost. Of VoIP, `mos`."""

    id: str
    goodput_mbps: float
    sent: int
    lost: int
    refused: int
    owd_ms: Statistics
    jitter_ms: float | None
    mos: float | None = Field(default=None, description="Mean opinion score by the E-model; only of VoIP.")


class Fetches(Figures):
    """Requests of one client and the times of their answers, all of them and by size in bytes."""

    id: str
    begun: int
    unfinished: int
    first_byte_ms: Statistics
    done_ms: Statistics
    by_bytes: dict[str, Statistics]


class Transactions(Figures):
    """Requests on one connection, one after the other: how many a second were answered, and when. A transaction counts
    in the window in which it began."""

    id: str
    rate_per_s: float
    begun: int
    unfinished: int
    done_ms: Statistics


class Subframes(Figures):
    """MPDUs of a PPDU; beacons are left out."""

    mean: float | None
    p50: int | None
    p90: int | None
    max: int | None


class Waiting(Figures):
    """Packets in a queue at the sampling instants."""

    mean: float | None
    max: int | None


class Category(Figures):
    """What a radio sent in one access category, in the words of `Radio`; and how long an MPDU waited in the mean
    before it was first sent: in mac80211's queue (`txq_ms`), then in driver and hardware behind others of its category
    (`ring_ms`), then at their head for the medium (`contention_ms`); `waiting_ms` is all of it."""

    ppdus: int
    not_acked: int
    mpdus: int
    air_percent: float
    txq_ms: float | None
    ring_ms: float | None
    contention_ms: float | None
    waiting_ms: float | None


class Radio(Figures):
    """What a radio sent: `ppdus` each time one was sent; `not_acked` those without an acknowledgment ("not
    acknowledged %"), be it that they collided (`collisions`) or were lost; `mpdus` each time one was sent, and
    `retries` those of them that had been sent before ("retried %"): their frames have the retry bit. The hardware
    repeats whole PPDUs that nobody acknowledged, software single MPDUs of an aggregate. `dropped`: MPDUs given up.
    No beacon is among the MPDUs.

    `air_percent` ("air %"): the share of the window in which it sent, RTS and CTS before its data included.
    `busy_percent` ("busy %"): in which its channel was busy, with whatever: what all radios on it send (once where it
    collides), answers, and the SIFS within exchanges. The rest is AIFS, backoff and timeouts, or nobody has anything
    to send. `air_share`: of the air time to and from the radios that it talked to, by node. `txq`, `held`: packets in
    mac80211's queues, and MPDUs below them. `categories`: VO (voice), VI (video), BE (best effort), BK (background),
    those that it sent in."""

    ppdus: int
    mpdus: int
    retries: int
    dropped: int
    not_acked: int
    collisions: int
    subframes: Subframes
    air_percent: float
    busy_percent: float | None
    air_share: dict[str, float | None]
    categories: dict[str, Category]
    txq: Waiting
    held: Waiting
    txq_drops: int


class Drops(Figures):
    """Packets dropped at a device during the run: in its qdiscs and mac80211's queues, in the NIC, on the cable or in
    the air, and above (`stack`: in the stack and at sockets that are open). A packet is an IP packet of at most an MTU,
    what a frame carries. `qdisc_skbs`: what tc calls `dropped`; an skb holds one packet or, with GSO, many. `qdisc` is
    not known of skbs that nobody followed: without the packet probe."""

    qdisc: int | None
    qdisc_skbs: int
    nic: int
    cable: int
    stack: int


class Ecn(Figures):
    """A stream that sends ECT, over the run, the way in which it sends most: packets sent with `ect1` and `ect0`,
    delivered with `ce`, and those in percent of all that were delivered."""

    ect1: int
    ect0: int
    ce: int
    ce_percent: float | None


class Link(Figures):
    """Frames that left a NIC and found no room at the link's policer (`policed`) or in its shaper (`shaper_full`), and
    packets that the shaper marked (ECN)."""

    policed: int
    shaper_full: int
    marked: int


class Layer(Figures):
    """Time of `n` packets in one layer of one node, ms. `n`, `mean` and `share` (of the whole way) are of all packets;
    percentiles are of those that were kept one by one."""

    n: int
    p50: float | None
    p99: float | None
    mean: float
    share: float


class App(Figures):
    """A program. `status`: how it ended (`exit 0`, `SIGSEGV`), `running` where it was told to stop, `not started`,
    `spinning` where it asked the kernel without end while time stood. Times are seconds of test time, of its last
    start. What its output says, of tools that are known: `goodput_mbps` as its receiver has it, `latency_ms` of its
    round trips or requests. `tail`: the last lines that it wrote. `cpu_s`: time of the host's CPU, all starts together;
    no two runs have the same. `waits`: what virtual time went by with, all starts together: system calls by name,
    `cpu` of its node, `spun` and `stopped`, as the table `app_wait` has them."""

    id: str
    node: str
    command: str
    status: str
    expected: str
    starts: int
    exit: int | None
    start_s: float | None
    ready_s: float | None
    end_s: float | None
    output_bytes: int
    error_bytes: int
    calls: int | None
    cpu_s: float | None
    waits: dict[str, float]
    goodput_mbps: float | None
    sent_mbps: float | None
    retransmits: int | None
    lost: int | None
    jitter_ms: float | None
    latency_ms: Statistics
    tail: str


class Connection(Figures):
    """A stream that a program opened: a TCP connection, a subflow of MPTCP, datagrams between two sockets (`udp`), or,
    where `connections` are many, the later ones of a program to a server. `app`, `to_app`: the programs at its ends, ""
    of what nobody saw; up is to the server, `peer`. `_mbps`: payload over its life, `retransmits` of both ends, RTT of
    the end that sent most; null of what was too short to be sampled."""

    id: str
    app: str
    node: str
    to_app: str
    to_node: str
    peer: str
    protocol: str
    connections: int
    start_s: float
    end_s: float
    bytes_up: int
    bytes_down: int
    up_mbps: float | None
    down_mbps: float | None
    retransmits: int | None
    tcp_rtt_ms: Statistics


class Warning(Figures):
    """Something to beware of: a trap that the run fell into (its lint's name), or a line of the console."""

    id: str
    text: str
    remedy: str


class Event(Figures):
    """What changed during the test, as the plan calls it; `said`: the tools' warnings."""

    t_s: float
    node: str
    name: str
    said: str


class Check(Figures):
    """A bound that was judged. `figure`: one name of the run's for each that the bound stands for. `reason`: why there
    is no value; a bound is never kept without one."""

    figure: str
    bound: str
    value: int | float | None
    unit: str
    ok: bool
    reason: str


Anatomy = dict[str, dict[str, Layer]]
"""{node: {layer: figures}}, in the order of the path; layers that took no time are left out."""


class Summary(Figures):
    """The figures of one run."""

    schema_: Literal[1] = Field(alias="schema")
    scenario: str
    engine: str
    kernel: str
    seed: int | None
    virtual_s: float
    wall_s: float
    digest: str
    totals: Totals
    flows: list[Flow]
    tcp_rtt_ms: Statistics
    ping_ms: dict[str, Pings]
    datagrams: list[Datagrams]
    fetches: list[Fetches]
    transactions: list[Transactions]
    wifi: dict[str, dict[str, Radio]] = Field(description="By node and device.")
    drops: dict[str, dict[str, Drops]] = Field(description="By node and device.")
    drops_by_reason: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        description='Packets that the packet probe saw dropped, by node, device ("-": none), place and the kernel\'s '
        "own reason. Of the streams' packets they are all that their balances miss. `closed`: at a socket, after its "
        "stream had stopped."
    )
    marks: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        default_factory=dict,
        description='Packets that the packet probe saw marked (CE), by node, device ("-": none), place and stream; only'
        " where some were.",
    )
    ecn: dict[str, Ecn] = Field(default_factory=dict, description="By stream; only of those that send ECT.")
    qdiscs: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        default_factory=dict,
        description="The qdiscs' own counters at the end, in tc's words, by node, device and qdisc (\"fq_codel 11:\").",
    )
    links: dict[str, dict[str, Link]] = Field(
        default_factory=dict,
        description="What the links' policers and shapers did, by the node and device from which the frames came; only"
        " where they did something.",
    )
    layers_ms: Anatomy = Field(description="Where the flows' data spend their time, by node and layer.")
    ping_layers_ms: dict[str, Anatomy] = Field(description="The same of each ping's round trips.")
    transaction_layers_ms: dict[str, Anatomy] = Field(description="The same of the packets there and back.")
    connection_layers_ms: dict[str, Anatomy] = Field(
        default_factory=dict,
        description="The same of programs' connections, the eight with the most payload, one way; only where there are"
        " some.",
    )
    apps: list[App] = Field(default_factory=list, description="The programs; only of a scenario that has some.")
    connections: list[Connection] = Field(
        default_factory=list, description="What programs opened; only of a run in which they did."
    )
    warnings: list[Warning]
    events: list[Event] = Field(
        default_factory=list, description="What changed during the test; only of a scenario in which something does."
    )
    checks: list[Check] = Field(
        default_factory=list, description="The scenario's bounds (`[check]`), judged; only of a scenario that has some."
    )

    def to_json(self) -> str:
        """The JSON object, indented, without a line's end."""
        return json.dumps(self.data(), indent=2, ensure_ascii=False, allow_nan=False)

    def data(self) -> dict[str, Any]:
        """The JSON object as plain data."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def summary_schema() -> dict[str, Any]:
    """The JSON Schema of what `--json` prints. Further keys are allowed: they are added without a new `schema`."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Summary.model_json_schema() | {"title": "Hourglass summary"}
