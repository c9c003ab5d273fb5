# SPDX-License-Identifier: Apache-2.0
"""The plan's streams: the streams of `scenario/streams.py` and the test's other traffic, on the testbed.

             0        delay                          delay + length      2 delay + length
      pings  |---------|-------------------------------|-------------------|
      flows            |===============================|

A kind of traffic is a builder here: it gets the first id and returns its streams.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hourglass.contract.plan import (
    DatagramStream,
    FetchStream,
    FlowStream,
    Phase,
    PingStream,
    Stream,
    TransactionStream,
    Writes,
)
from hourglass.plan.paths import Paths
from hourglass.plan.seeds import splitmix64
from hourglass.scenario import Scenario
from hourglass.scenario.datagrams import interval_ns
from hourglass.scenario.quantities import seconds_ns
from hourglass.scenario.streams import flows, pings
from hourglass.scenario.testkinds import BE, PROBE_NAME, TESTS, TRAFFIC, VOIP_BYTES, VOIP_INTERVAL_S

FIRST_PORT = 61_000
"""The base of a stream's port, to which its index is added. The range is above the ports that Linux gives to clients
(32768 to 60999); IANA and Wireshark know none in it."""
OVERFLOW_PORT = 10_000
"""Ports of streams that no longer fit above."""
PING_BYTES = 56
"""ping's default; the UDP ping has the same size."""
JITTER_PART = 10
"""A ping is up to a tenth of its interval late: fixed intervals would always meet periodic states in one phase."""
REQUEST_BYTES = 300
"""A GET with a browser's usual headers."""
NS_PER_S = 1_000_000_000
PROBE_BYTES = 1000
"""A handshake, a request and an answer of one byte, and the end of the connection, in both directions."""
PROBES_PERCENT = 5
"""The part of the slowest link's rate that probes may use (PTC)."""


@dataclass(frozen=True)
class StreamContext:
    """The input of all builders, with the instants of the test in ns."""

    scenario: Scenario
    paths: Paths

    @property
    def load_ns(self) -> int:
        """Return the start of the load."""
        return seconds_ns(self.scenario.test.delay)

    @property
    def stop_ns(self) -> int:
        """Return the end of the load."""
        return self.load_ns + seconds_ns(self.scenario.test.length)

    @property
    def end_ns(self) -> int:
        """Return the end of the test."""
        return self.stop_ns + (self.load_ns if TESTS[self.scenario.test.name].idle_after else 0)

    def ends(self, server: str, client: str | None = None) -> dict[str, Any]:
        """Return client, server and address; the client defaults to the test's."""
        client = client or self.scenario.test.client
        address = str(self.paths.between(client, server).there[-1].to_address).split("/")[0]
        return {"client": client, "server": server, "address": address}


Builder = Callable[[StreamContext, int], list[Stream]]


def _port(number: int) -> int:
    beyond = FIRST_PORT + number - (1 << 16)
    return FIRST_PORT + number if beyond < 0 else OVERFLOW_PORT + beyond


def streams(setting: StreamContext) -> list[Stream]:
    """Return flows, pings, the test's other traffic in the order of `TRAFFIC`, additional datagrams; the id is the
    index."""
    kinds = TESTS[setting.scenario.test.name].traffic
    made_streams: list[Stream] = []
    for builder in (_flows, _pings, *(BUILDERS[name] for name in TRAFFIC if name in kinds), _datagrams):
        made_streams += builder(setting, len(made_streams))
    return made_streams


def _flows(setting: StreamContext, first: int) -> list[Stream]:
    scenario = setting.scenario
    every_ns = seconds_ns(scenario.test.write_interval)
    return [
        FlowStream(
            kind="flow",
            id=first + number,
            name=flow.name,
            **setting.ends(flow.server, flow.client),
            sender=flow.sender,
            port=_port(first + number),
            cc=flow.cc or scenario.stack.of(flow.sender).cc,
            pace_bps=flow.pace_bps or None,
            writes=Writes(rate_bps=flow.writes_bps, interval_ns=every_ns) if flow.writes_bps else None,
            dscp=flow.dscp,
            start_ns=(0 if flow.from_start else setting.load_ns) + seconds_ns(flow.late_s),
            stop_ns=setting.stop_ns if flow.stop_s is None else setting.load_ns + seconds_ns(flow.stop_s),
            backend=scenario.flow.backend,
        )
        for number, flow in enumerate(flows(scenario.test))
    ]


def _pings(setting: StreamContext, first: int) -> list[Stream]:
    """Return the pings of the whole test. An ICMP ping's port is its identifier: its index among the pings."""
    test = setting.scenario.test
    every_ns = {"icmp": seconds_ns(test.ping_interval), "udp": seconds_ns(test.udp_interval)}
    return [
        PingStream(
            kind="ping",
            id=first + number,
            name=ping.name,
            protocol=ping.protocol,
            **setting.ends(ping.server),
            port=_port(first + number) if ping.protocol == "udp" else number,
            dscp=ping.dscp,
            ecn=test.ping_ecn,
            payload_bytes=PING_BYTES,
            start_ns=0,
            stop_ns=setting.end_ns,
            interval_ns=every_ns[ping.protocol],
            jitter_ns=every_ns[ping.protocol] // JITTER_PART,
            jitter_seed=splitmix64(setting.scenario.seed) ^ number << 32,
        )
        for number, ping in enumerate(pings(test))
    ]


def _flood(setting: StreamContext, first: int) -> list[Stream]:
    """Return UDP at a rate, during the load."""
    test = setting.scenario.test
    assert test.udp_bandwidth is not None
    assert test.udp_pktsize is not None
    return [
        DatagramStream(
            kind="datagrams",
            id=first,
            name="udp upload",
            **setting.ends(test.server),
            port=_port(first),
            dscp=BE,
            ecn=test.udp_ecn or "not_ect",
            payload_bytes=test.udp_pktsize,
            **_phases([(setting.load_ns, setting.stop_ns, interval_ns(test.udp_pktsize, test.udp_bandwidth))]),
        )
    ]


def _datagrams(setting: StreamContext, first: int) -> list[Stream]:
    """Return the streams of `[[test.datagrams]]`, in their spans of the load."""
    made_streams: list[Stream] = []
    for number, stream in enumerate(setting.scenario.test.datagrams):
        assert stream.name
        stop_ns = setting.stop_ns if stream.stop is None else setting.load_ns + seconds_ns(stream.stop)
        spans = stream.spans(setting.load_ns + seconds_ns(stream.start), stop_ns)
        made_streams.append(
            DatagramStream(
                kind="datagrams",
                id=first + number,
                name=stream.name,
                **setting.ends(stream.receiver, stream.sender),
                port=_port(first + number),
                dscp=stream.marking,
                ecn=stream.ecn,
                payload_bytes=stream.size,
                **_phases(spans, stream.burst),
            )
        )
    return made_streams


def _phases(spans: list[tuple[int, int, int]], burst: int = 1) -> dict[str, Any]:
    """Return when datagrams are sent: from the start of the first (start, stop, interval) to the stop of the last."""
    phases = [Phase(start_ns=start, stop_ns=stop, interval_ns=interval) for start, stop, interval in spans]
    return {"start_ns": phases[0].start_ns, "stop_ns": phases[-1].stop_ns, "burst": burst, "phases": phases}


def _voip(setting: StreamContext, first: int) -> list[Stream]:
    """Return the VoIP stream of the whole test."""
    test = setting.scenario.test
    return [
        DatagramStream(
            kind="datagrams",
            id=first,
            name="voip",
            **setting.ends(test.server),
            port=_port(first),
            dscp=test.voip_marking or BE,
            ecn=test.voip_ecn or "not_ect",
            payload_bytes=VOIP_BYTES,
            **_phases([(0, setting.end_ns, seconds_ns(VOIP_INTERVAL_S))]),
        )
    ]


def _http(setting: StreamContext, first: int) -> list[Stream]:
    """Return the clients of the web, of the whole test."""
    test = setting.scenario.test
    assert test.http_workers is not None
    assert test.http_interval is not None
    return [
        FetchStream(
            kind="fetches",
            id=first + number,
            name="http" if test.http_workers == 1 else f"http {number + 1}",
            **setting.ends(test.server),
            port=_port(first + number),
            cc=setting.scenario.stack.of(test.server).cc,
            dscp=BE,
            request_bytes=REQUEST_BYTES,
            sizes=list(test.http_sizes or ()),
            start_ns=0,
            stop_ns=setting.end_ns,
            interval_ns=seconds_ns(test.http_interval),
        )
        for number in range(test.http_workers)
    ]


def _tcp_rr(setting: StreamContext, first: int) -> list[Stream]:
    """Return requests and responses of the whole test."""
    test = setting.scenario.test
    assert test.rr_streams is not None
    assert test.rr_request is not None
    assert test.rr_response is not None
    return [
        TransactionStream(
            kind="transactions",
            id=first + number,
            name="tcp_rr" if test.rr_streams == 1 else f"tcp_rr {number + 1}",
            **setting.ends(test.server),
            port=_port(first + number),
            cc=setting.scenario.stack.of(test.server).cc,
            dscp=BE,
            request_bytes=test.rr_request,
            response_bytes=test.rr_response,
            start_ns=0,
            stop_ns=setting.end_ns,
        )
        for number in range(test.rr_streams)
    ]


def _rpm_probes(setting: StreamContext, first: int) -> list[Stream]:
    """Return clients that fetch one byte each, on new connections, by turns and evenly spread over the test."""
    test = setting.scenario.test
    assert test.rpm_probers is not None
    assert test.rpm_probe_rate is not None
    ends = setting.ends(test.server)
    hops = setting.paths.between(test.client, test.server)
    slowest_bps = min(hop.rate_bps for hop in (*hops.there, *hops.back))
    rate = max(1, min(test.rpm_probe_rate, slowest_bps * PROBES_PERCENT // (100 * 8 * PROBE_BYTES)))
    return [
        FetchStream(
            kind="fetches",
            id=first + number,
            name=f"{PROBE_NAME} {number + 1}",
            **ends,
            port=_port(first + number),
            cc=setting.scenario.stack.of(test.server).cc,
            dscp=BE,
            request_bytes=REQUEST_BYTES,
            sizes=[1],
            start_ns=number * NS_PER_S // rate,
            stop_ns=setting.end_ns,
            interval_ns=test.rpm_probers * NS_PER_S // rate,
        )
        for number in range(test.rpm_probers)
        if number * NS_PER_S // rate < setting.end_ns
    ]


BUILDERS: dict[str, Builder] = {
    "flood": _flood, "voip": _voip, "http": _http, "tcp_rr": _tcp_rr, "rpm_probes": _rpm_probes,
}  # fmt: skip
