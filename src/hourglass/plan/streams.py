# SPDX-License-Identifier: Apache-2.0
"""The plan's streams: what `scenario/streams.py` and the test's other traffic come to on the testbed.

     0        delay                          delay + length      2 delay + length
pings  |---------|-------------------------------|-------------------|
flows            |===============================|

A kind of traffic is a builder here: it is told where the streams begin to count and gives its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hourglass.contract.plan import Datagrams, Fetches, Flow, Phase, Ping, Stream, Transactions, Writes
from hourglass.plan.paths import Paths
from hourglass.plan.seeds import splitmix64
from hourglass.scenario import Scenario
from hourglass.scenario.datagrams import interval_ns
from hourglass.scenario.streams import flows, pings
from hourglass.scenario.testkinds import BE, TESTS, TRAFFIC, VOIP_BYTES, VOIP_INTERVAL_S
from hourglass.scenario.units import seconds_ns

FIRST_PORT = 61_000
"""A stream's port is this and its place: above those that Linux gives to clients (32768 to 60999), in a range in which
IANA assigns none, and Wireshark knows none."""
FURTHER_PORT = 10_000
"""Those of streams for which there are none left above."""
PING_BYTES = 56
"""ping's default; the UDP ping is as large."""
JITTER_PART = 10
"""A ping is up to a tenth of its interval late: round intervals would always meet periodic states in one phase."""
REQUEST_BYTES = 300
"""A GET with a browser's usual headers."""


@dataclass(frozen=True)
class Setting:
    """What builders build from, with the moments of the test in ns."""

    scenario: Scenario
    paths: Paths

    @property
    def load_ns(self) -> int:
        """When the load begins."""
        return seconds_ns(self.scenario.test.delay)

    @property
    def stop_ns(self) -> int:
        """When the load ends."""
        return self.load_ns + seconds_ns(self.scenario.test.length)

    @property
    def end_ns(self) -> int:
        """When the test is over."""
        return self.stop_ns + (self.load_ns if TESTS[self.scenario.test.name].idle_after else 0)

    def ends(self, server: str, client: str | None = None) -> dict[str, Any]:
        """Who talks to whom; the client is the test's unless said otherwise."""
        client = client or self.scenario.test.client
        address = self.paths.between(client, server).there[-1].to_address.split("/")[0]
        return {"client": client, "server": server, "address": address}


Builder = Callable[[Setting, int], list[Stream]]


def _port(place: int) -> int:
    beyond = FIRST_PORT + place - (1 << 16)
    return FIRST_PORT + place if beyond < 0 else FURTHER_PORT + beyond


def streams(setting: Setting) -> list[Stream]:
    """Flows, pings, the test's other traffic in the order of `TRAFFIC`, further datagrams; the id is the place."""
    wanted = TESTS[setting.scenario.test.name].traffic
    made: list[Stream] = []
    for builder in (_flows, _pings, *(BUILDERS[name] for name in TRAFFIC if name in wanted), _datagrams):
        made += builder(setting, len(made))
    return made


def _flows(setting: Setting, first: int) -> list[Stream]:
    scenario = setting.scenario
    every_ns = seconds_ns(scenario.test.write_interval)
    return [
        Flow(
            kind="flow",
            id=first + place,
            name=one.name,
            **setting.ends(one.server, one.client),
            sender=one.sender,
            port=_port(first + place),
            cc=one.cc or scenario.stack.of(one.sender).cc,
            pace_bps=one.pace_bps or None,
            writes=Writes(rate_bps=one.writes_bps, interval_ns=every_ns) if one.writes_bps else None,
            dscp=one.dscp,
            start_ns=(0 if one.from_start else setting.load_ns) + seconds_ns(one.late_s),
            stop_ns=setting.stop_ns if one.stop_s is None else setting.load_ns + seconds_ns(one.stop_s),
            backend=scenario.flow.backend,
        )
        for place, one in enumerate(flows(scenario.test))
    ]


def _pings(setting: Setting, first: int) -> list[Stream]:
    """From the first to the last moment. An ICMP ping's port is its identifier: its place among the pings."""
    test = setting.scenario.test
    every_ns = {"icmp": seconds_ns(test.ping_interval), "udp": seconds_ns(test.udp_interval)}
    return [
        Ping(
            kind="ping",
            id=first + place,
            name=one.name,
            protocol=one.protocol,
            **setting.ends(one.server),
            port=_port(first + place) if one.protocol == "udp" else place,
            dscp=one.dscp,
            ecn=test.ping_ecn,
            payload_bytes=PING_BYTES,
            start_ns=0,
            stop_ns=setting.end_ns,
            interval_ns=every_ns[one.protocol],
            jitter_ns=every_ns[one.protocol] // JITTER_PART,
            jitter_seed=splitmix64(setting.scenario.seed) ^ place << 32,
        )
        for place, one in enumerate(pings(test))
    ]


def _flood(setting: Setting, first: int) -> list[Stream]:
    """UDP at a rate, during the load."""
    test = setting.scenario.test
    assert test.udp_bandwidth is not None
    assert test.udp_pktsize is not None
    return [
        Datagrams(
            kind="datagrams",
            id=first,
            name="udp upload",
            **setting.ends(test.server),
            port=_port(first),
            dscp=BE,
            ecn=test.udp_ecn or "not_ect",
            payload_bytes=test.udp_pktsize,
            **_sent([(setting.load_ns, setting.stop_ns, interval_ns(test.udp_pktsize, test.udp_bandwidth))]),
        )
    ]


def _datagrams(setting: Setting, first: int) -> list[Stream]:
    """The streams of `[[test.datagrams]]`, in their spans of the load."""
    made: list[Stream] = []
    for place, one in enumerate(setting.scenario.test.datagrams):
        assert one.name
        stop_ns = setting.stop_ns if one.stop is None else setting.load_ns + seconds_ns(one.stop)
        spans = one.spans(setting.load_ns + seconds_ns(one.start), stop_ns)
        made.append(
            Datagrams(
                kind="datagrams",
                id=first + place,
                name=one.name,
                **setting.ends(one.receiver, one.sender),
                port=_port(first + place),
                dscp=one.marking,
                ecn=one.ecn,
                payload_bytes=one.size,
                **_sent(spans, one.burst),
            )
        )
    return made


def _sent(spans: list[tuple[int, int, int]], burst: int = 1) -> dict[str, Any]:
    """When datagrams are sent: from the start of the first (start, stop, interval) to the stop of the last."""
    phases = [Phase(start_ns=start, stop_ns=stop, interval_ns=interval) for start, stop, interval in spans]
    return {"start_ns": phases[0].start_ns, "stop_ns": phases[-1].stop_ns, "burst": burst, "phases": phases}


def _voip(setting: Setting, first: int) -> list[Stream]:
    """The VoIP stream, from beginning to end."""
    test = setting.scenario.test
    return [
        Datagrams(
            kind="datagrams",
            id=first,
            name="voip",
            **setting.ends(test.server),
            port=_port(first),
            dscp=test.voip_marking or BE,
            ecn=test.voip_ecn or "not_ect",
            payload_bytes=VOIP_BYTES,
            **_sent([(0, setting.end_ns, seconds_ns(VOIP_INTERVAL_S))]),
        )
    ]


def _http(setting: Setting, first: int) -> list[Stream]:
    """The clients of the web, from the first to the last moment."""
    test = setting.scenario.test
    assert test.http_workers is not None
    assert test.http_interval is not None
    return [
        Fetches(
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


def _tcp_rr(setting: Setting, first: int) -> list[Stream]:
    """Request and response, from the first to the last moment."""
    test = setting.scenario.test
    assert test.rr_streams is not None
    assert test.rr_request is not None
    assert test.rr_response is not None
    return [
        Transactions(
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


BUILDERS: dict[str, Builder] = {"flood": _flood, "voip": _voip, "http": _http, "tcp_rr": _tcp_rr}
