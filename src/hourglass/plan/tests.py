# SPDX-License-Identifier: Apache-2.0
"""The test's flows and probes. What tests there are stands in `scenario/tests.py`.

     0          delay                        delay + length      2 delay + length
probes |-----------|-------------------------------|-------------------|
flows              |===============================|
"""

from collections import Counter
from typing import Literal

from hourglass.plan.model import Flow, Probe
from hourglass.plan.network import Network
from hourglass.scenario import Scenario, Test
from hourglass.scenario.tests import BE, TESTS, Stream
from hourglass.scenario.units import seconds_ns
from hourglass.scenario.wifi import Competing

FLOW_PORT = 5000
"""Flow N is on port 5000 + N."""
UDP_PROBE_PORT = 2112
"""irtt's port; the further UDP probes have the ports after it."""
PAYLOAD_BYTES = 56
"""ping's default; the UDP probe is as large."""
JITTER_PART = 10
"""A probe is up to a tenth of its interval late: round intervals would always meet periodic states in one phase."""


def end_ns(test: Test) -> int:
    """When the test is over."""
    idle = 2 if TESTS[test.name].idle_after else 1
    return idle * seconds_ns(test.delay) + seconds_ns(test.length)


def flows(scenario: Scenario, network: Network) -> list[Flow]:
    """Uploads first, then downloads; named upload::1, upload::2, …, download::1, … or by their labels; then those
    that compete, named other1-upload::1 and so on."""
    test = scenario.test
    kind = TESTS[test.name]
    ways = {"upload": _streams(test, kind.uploads), "download": _streams(test, kind.downloads)}
    wanted = [(way, stream) for way, streams in ways.items() for stream in streams]
    address = str(network.address(test.client, test.server).ip)
    made = [_flow(scenario, place, way, stream, address) for place, (way, stream) in enumerate(wanted)]
    numbers: Counter[str] = Counter()
    for competing in test.competing:
        counts = {"upload": competing.upload_streams, "download": competing.download_streams}
        for way in (way for way, count in counts.items() for _ in range(count)):
            prefix = f"{competing.client}-{way}"
            numbers[prefix] += 1
            made.append(_competing(scenario, network, len(made), way, f"{prefix}::{numbers[prefix]}", competing))
    return made


def _streams(test: Test, streams: int | str | tuple[Stream, ...]) -> tuple[Stream, ...]:
    """The flows of one way; those that are only counted are labelled 1, 2, …"""
    if isinstance(streams, tuple):
        return streams
    count = getattr(test, streams) if isinstance(streams, str) else streams
    assert isinstance(count, int), streams
    return tuple(Stream(str(number + 1)) for number in range(count))


def _competing(scenario: Scenario, network: Network, place: int, way: str, name: str, competing: Competing) -> Flow:
    """A flow beside the test's, in the same span of time."""
    test = scenario.test
    sender = competing.client if way == "upload" else competing.server
    return Flow(
        id=place,
        name=name,
        client=competing.client,
        server=competing.server,
        sender=sender,
        address=str(network.address(competing.client, competing.server).ip),
        port=FLOW_PORT + place,
        cc=competing.cc or scenario.stack.of(sender).cc,
        dscp=0,
        start_ns=seconds_ns(test.delay),
        stop_ns=seconds_ns(test.delay) + seconds_ns(test.length),
    )


def _flow(scenario: Scenario, place: int, way: str, stream: Stream, address: str) -> Flow:
    test = scenario.test
    sender = test.client if way == "upload" else test.server
    late = test.stream_delays[place % len(test.stream_delays)] if test.stream_delays else 0
    loaded_ns = seconds_ns(test.delay)
    return Flow(
        id=place,
        name=f"{way}::{stream.label}",
        client=test.client,
        server=test.server,
        sender=sender,
        address=address,
        port=FLOW_PORT + place,
        cc=test.flow_cc[place % len(test.flow_cc)] if test.flow_cc else stream.cc or scenario.stack.of(sender).cc,
        dscp=stream.dscp,
        start_ns=(0 if stream.from_start else loaded_ns) + seconds_ns(late),
        stop_ns=loaded_ns + seconds_ns(test.length),
    )


def probes(scenario: Scenario, network: Network) -> list[Probe]:
    """ICMP and UDP from the client to the server, from the first to the last moment."""
    test = scenario.test
    address = str(network.address(test.client, test.server).ip)
    udp_ns = seconds_ns(test.udp_interval)
    return [
        _probe(test, 0, "icmp", "icmp", BE, address, 0, seconds_ns(test.ping_interval)),
        *(
            _probe(test, 1 + place, "udp", name, dscp, address, UDP_PROBE_PORT + place, udp_ns)
            for place, (name, dscp) in enumerate(TESTS[test.name].udp)
        ),
    ]


def _probe(
    test: Test,
    place: int,
    kind: Literal["icmp", "udp"],
    name: str,
    dscp: int,
    address: str,
    port: int,
    interval_ns: int,
) -> Probe:
    return Probe(
        id=place,
        name=name,
        kind=kind,
        client=test.client,
        server=test.server,
        address=address,
        port=port,
        dscp=dscp,
        payload_bytes=PAYLOAD_BYTES,
        start_ns=0,
        stop_ns=end_ns(test),
        interval_ns=interval_ns,
        jitter_ns=interval_ns // JITTER_PART,
    )
