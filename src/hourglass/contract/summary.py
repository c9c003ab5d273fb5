# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, as in `hourglass run --json` and `summary.json`. `results/summarize.py` computes them.

Statistics cover the loaded window: the `length` seconds under load, or the whole run if nothing loads it. Drops and
the qdiscs' own counters cover the whole run. Goodput is payload bytes received per second. A missing value is null;
floats have six significant digits. These models generate the published JSON Schema.
"""

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Final = 1
"""Increases when a key changes its meaning. Keys may be added at any time."""


class SummaryPart(BaseModel):
    """A part of the summary."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Statistics(SummaryPart):
    """Statistics of samples; without samples n is 0 and the rest null. Percentiles are interpolated linearly, as in
    numpy."""

    n: int
    min: float | None
    p10: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None
    mean: float | None


class LossFigures(SummaryPart):
    """Packets without an answer; null if the tool does not number them, as netperf's UDP_RR."""

    lost: int | None


class PingFigures(Statistics, LossFigures):
    """Round trips of a ping stream, ms. A packet counts in the window in which it was sent."""


class Totals(SummaryPart):
    """All flows together: goodput by direction, and Jain's index (1: all equal). With flows in both directions, tables,
    pictures and reports show `upload_fairness` and `download_fairness`. `fairness` treats all flows as if they shared
    one direction, so it is low on an asymmetric line even if each direction is fair. `_mbps` is null if a Flent file
    has series of this direction, but no data of them."""

    upload_mbps: float | None
    download_mbps: float | None
    fairness: float | None
    upload_fairness: float | None
    download_fairness: float | None

    @property
    def mbps(self) -> float:
        """The goodput of both directions, as far as it is known."""
        return (self.upload_mbps or 0.0) + (self.download_mbps or 0.0)


class FlowFigures(SummaryPart):
    """A TCP connection. `retransmits`: segments retransmitted within the window, spurious ones included. `tcp_rtt_ms`
    has samples of the sender's smoothed RTT. `hystart_exit_s` counts from the flow's start."""

    id: str
    cc: str
    goodput_mbps: float
    retransmits: int | None
    tcp_rtt_ms: Statistics
    hystart_exit_s: float | None


class DatagramFigures(SummaryPart):
    """One-way packets. `refused`: packets that found the sender's socket full; `lost` includes them. VoIP has `mos`."""

    id: str
    goodput_mbps: float
    sent: int
    lost: int
    refused: int
    owd_ms: Statistics
    jitter_ms: float | None
    mos: float | None = Field(default=None, description="Mean opinion score by the E-model; VoIP only.")


class FetchFigures(SummaryPart):
    """Requests of a client and the times of their answers, overall and by size in bytes."""

    id: str
    begun: int
    unfinished: int
    first_byte_ms: Statistics
    done_ms: Statistics
    by_bytes: dict[str, Statistics]


class TransactionFigures(SummaryPart):
    """Consecutive requests on one connection: answers per second, and the times of the answers. A transaction counts in
    the window in which it began."""

    id: str
    rate_per_s: float
    begun: int
    unfinished: int
    done_ms: Statistics


Confidence = Literal["low", "medium", "high"]
"""Of a value that must be stable: too few values, not stable, stable."""


class ResponsivenessFigures(SummaryPart):
    """Responsiveness under working conditions, in round trips per minute (draft-ietf-ippm-responsiveness). `rpm`: the
    mean of `foreign_rpm`, of probes on new connections, and `loaded_rpm`, of round trips on the loading flows.
    `idle_rpm`: of probes before the load. `_ms`: their round trips, without the longest 5 %. `_mbps`: the goodput of
    the last four intervals. `saturated_s`, `stable_s`: when goodput and responsiveness became stable, after the load's
    start; null if they did not. All figures are of `stable_s`, or of the load's end."""

    rpm: float | None
    foreign_rpm: float | None
    loaded_rpm: float | None
    idle_rpm: float | None
    foreign_ms: float | None
    loaded_ms: float | None
    upload_mbps: float | None
    download_mbps: float | None
    probes: int
    flows: int
    saturated_s: float | None
    stable_s: float | None
    capacity_confidence: Confidence
    confidence: Confidence


class Subframes(SummaryPart):
    """MPDUs per PPDU, without beacons."""

    mean: float | None
    p50: int | None
    p90: int | None
    max: int | None


class QueueLength(SummaryPart):
    """Packets in a queue at the sampling instants."""

    mean: float | None
    max: int | None


CATEGORIES = {"VO": "voice", "VI": "video", "BE": "best effort", "BK": "background"}
"""Access categories, the highest priority first."""


class CategoryFigures(SummaryPart):
    """Transmissions of a radio in one access category, with the terms of `RadioFigures`; and the mean wait of an MPDU
    before its first transmission: in mac80211's queue (`txq_ms`), in driver and hardware after other MPDUs of its
    category (`ring_ms`), and at their head for the medium (`contention_ms`). `waiting_ms` is the sum."""

    ppdus: int
    not_acked: int
    mpdus: int
    air_percent: float
    txq_ms: float | None
    ring_ms: float | None
    contention_ms: float | None
    waiting_ms: float | None


class RadioFigures(SummaryPart):
    """Transmissions of a radio. `ppdus`: transmitted PPDUs, repetitions included. `not_acked`: PPDUs without an
    acknowledgment ("not acknowledged %"), because they collided (`collisions`) or were lost. `mpdus`: transmitted
    MPDUs, repetitions included. `retries`: the repetitions among them ("retried %"), which have the retry bit. The
    hardware repeats whole PPDUs without acknowledgment, software repeats single MPDUs of an aggregate. `dropped`:
    MPDUs that the radio gave up. MPDUs do not include beacons.

    `air_percent` ("air %"): the share of the window in which the radio sent, including RTS and CTS before its data.
    `busy_percent` ("busy %"): the share in which its channel was busy with transmissions of any radio (a collision
    counts once), answers, and the SIFS within exchanges. The remainder is AIFS, backoff, timeouts and idle time.
    `air_share`: the share of the air time by peer node, to it and from it. Multicast and broadcast without beacons are
    `group-addressed`, absent below 0.5 %. `txq`, `held`: packets in mac80211's queues, and MPDUs below them.
    `categories`: the access categories in use, of VO (voice), VI (video), BE (best effort) and BK (background)."""

    ppdus: int
    mpdus: int
    retries: int
    dropped: int
    not_acked: int
    collisions: int
    subframes: Subframes
    air_percent: float | None
    busy_percent: float | None
    air_share: dict[str, float | None]
    categories: dict[str, CategoryFigures]
    txq: QueueLength
    held: QueueLength
    txq_drops: int


class CpuFigures(SummaryPart):
    """The CPU of a node on which packets and calls take time, in percent of the window: busy, and with received frames,
    with skbs on their way to a NIC, and with programs' system calls."""

    busy_percent: float
    received_percent: float
    sent_percent: float
    calls_percent: float


class DropFigures(SummaryPart):
    """Packets dropped at a device during the run: in its qdiscs and mac80211's queues, in the NIC, on the cable or in
    the air, and above (`stack`: in the stack and at open sockets). A packet is an IP packet of at most one MTU, as in
    a frame. `qdisc_skbs`: the counter `dropped` of tc; an skb is one packet or, with GSO, many. `qdisc` is null
    without the packet probe."""

    qdisc: int | None
    qdisc_skbs: int
    nic: int
    cable: int
    stack: int


class EcnFigures(SummaryPart):
    """ECN of a stream that sends ECT, over the run, in the direction with most data: packets sent with `ect1` and
    `ect0`, packets delivered with `ce`, and the latter in percent of all delivered packets."""

    ect1: int
    ect0: int
    ce: int
    ce_percent: float | None


class LinkFigures(SummaryPart):
    """Frames that the link's policer dropped (`policed`) or that found its shaper full (`shaper_full`), and packets
    that the shaper marked (ECN)."""

    policed: int
    shaper_full: int
    marked: int


class LayerFigures(SummaryPart):
    """Time of `n` packets in a layer of a node, ms. `n`, `mean` and `share` (of the whole path) cover all packets;
    percentiles cover the recorded packets."""

    n: int
    p50: float | None
    p99: float | None
    mean: float
    share: float


class AppFigures(SummaryPart):
    """A program. `status`: its end (`exit 0`, `SIGSEGV`), `running` if Hourglass stopped it, `not started`, or
    `spinning` if it made system calls endlessly without virtual time passing. Times are seconds of test time, of its
    last start. Hourglass reads figures from the output of common tools: `goodput_mbps` at the receiver, `latency_ms`
    of round trips or requests. `tail`: the last lines of output. `cpu_s`: CPU time on the host, summed over all starts;
    it differs between runs. `waits`: virtual time by cause, summed over all starts: system calls by name, `cpu` of its
    node, `spun` and `stopped`, as in the table `app_wait`."""

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


class ConnectionFigures(SummaryPart):
    """A stream that a program opened: a TCP connection, a subflow of MPTCP, or datagrams between two sockets (`udp`).
    With `connections` above 1 it represents several later connections of a program to a server. `app`, `to_app`: the
    programs at its ends, or "" if not known. Up is the direction to the server, `peer`. `_mbps`: payload over its
    lifetime. `retransmits`: of both ends. RTT: of the end that sent most; null if the connection was too short for a
    sample."""

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


class RunWarning(SummaryPart):
    """A warning: a trap of the run (with the name of its lint), or a line of the console."""

    id: str
    text: str
    remedy: str


class EventFigures(SummaryPart):
    """An event during the test, with the plan's name for it. `said`: the tools' warnings."""

    t_s: float
    node: str
    name: str
    said: str


class CheckVerdict(SummaryPart):
    """The verdict on a bound, one for each figure of the run that the bound matches. `reason`: the cause of a missing
    value; a bound without a value is missed."""

    figure: str
    bound: str
    value: int | float | None
    unit: str
    ok: bool
    reason: str


Anatomy = dict[str, dict[str, LayerFigures]]
"""{node: {layer: figures}}, in the order of the path, without layers that took no time."""


class Summary(SummaryPart):
    """The figures of a run."""

    schema_: Literal[1] = Field(alias="schema")
    scenario: str
    engine: str
    kernel: str
    seed: int | None
    virtual_s: float
    wall_s: float
    digest: str
    totals: Totals
    flows: list[FlowFigures]
    tcp_rtt_ms: Statistics
    ping_ms: dict[str, PingFigures]
    datagrams: list[DatagramFigures]
    fetches: list[FetchFigures]
    transactions: list[TransactionFigures]
    responsiveness: ResponsivenessFigures | None = Field(default=None, description="Only of the tests `rpm`.")
    wifi: dict[str, dict[str, RadioFigures]] = Field(description="By node and device.")
    cpu: dict[str, CpuFigures] = Field(
        default_factory=dict, description="By node; only if nodes have a CPU on which something takes time."
    )
    drops: dict[str, dict[str, DropFigures]] = Field(description="By node and device.")
    drops_by_reason: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        description='Drops that the packet probe saw, in packets, by node, device ("-": none), place and the kernel\'s '
        "reason. They include every packet that the balance of a stream lacks. `closed`: at a socket, after its stream "
        "had stopped."
    )
    marks: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        default_factory=dict,
        description='Packets that the packet probe saw marked (CE), by node, device ("-": none), place and stream; only'
        " if some were.",
    )
    ecn: dict[str, EcnFigures] = Field(default_factory=dict, description="By stream; only streams that send ECT.")
    qdiscs: dict[str, dict[str, dict[str, dict[str, int]]]] = Field(
        default_factory=dict,
        description="The qdiscs' own counters at the end, in tc's words, by node, device and qdisc (\"fq_codel 11:\").",
    )
    links: dict[str, dict[str, LinkFigures]] = Field(
        default_factory=dict,
        description="Drops and marks by the links' policers and shapers, by the node and device that sent the frames;"
        " only if some exist.",
    )
    layers_ms: Anatomy = Field(description="The time of the flows' data by node and layer.")
    ping_layers_ms: dict[str, Anatomy] = Field(description="The same for each ping's round trips.")
    transaction_layers_ms: dict[str, Anatomy] = Field(description="The same for requests and answers.")
    connection_layers_ms: dict[str, Anatomy] = Field(
        default_factory=dict,
        description="The same for programs' connections: the eight with the most payload, one direction; only if some"
        " exist.",
    )
    apps: list[AppFigures] = Field(default_factory=list, description="The programs; only if the scenario has some.")
    connections: list[ConnectionFigures] = Field(
        default_factory=list, description="The connections of programs; only if they opened some."
    )
    warnings: list[RunWarning]
    events: list[EventFigures] = Field(
        default_factory=list, description="The events during the test; only if the scenario has some."
    )
    checks: list[CheckVerdict] = Field(
        default_factory=list, description="The verdicts on the scenario's bounds (`[check]`); only if it has some."
    )

    def to_json(self) -> str:
        """Return the JSON object, indented, without a final newline."""
        return json.dumps(self.data(), indent=2, ensure_ascii=False, allow_nan=False)

    def data(self) -> dict[str, Any]:
        """Return the JSON object as plain data."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def summary_schema() -> dict[str, Any]:
    """Return the JSON Schema of `--json`. It allows more keys: additions do not change the number `schema`."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Summary.model_json_schema() | {"title": "Hourglass summary"}
