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
from hourglass.scenario.tests import TESTS
from hourglass.scenario.units import seconds_ns
from hourglass.scenario.wifi import Competing

FLOW_PORT = 5000
"""Flow N is on port 5000 + N."""
UDP_PROBE_PORT = 2112
"""irtt's port."""
PAYLOAD_BYTES = 56
"""ping's default; the UDP probe is as large."""
JITTER_PART = 10
"""A probe is up to a tenth of its interval late: round intervals would always meet periodic states in one phase."""


def end_ns(test: Test) -> int:
    """When the test is over."""
    return 2 * seconds_ns(test.delay) + seconds_ns(test.length)


def flows(scenario: Scenario, network: Network) -> list[Flow]:
    """Uploads first, then downloads; named upload::1, upload::2, …, download::1, …; then the competing ones, named
    other1-upload::1 and so on."""
    test = scenario.test
    kind = TESTS[test.name]
    counts = {"upload": _count(test, kind.uploads), "download": _count(test, kind.downloads)}
    made = [_flow(scenario, network, place, way, name) for place, (way, name) in enumerate(_names(counts))]
    numbers: Counter[str] = Counter()
    for competing in test.competing:
        counts = {"upload": competing.upload_streams, "download": competing.download_streams}
        for way, _ in _names(counts):
            prefix = f"{competing.client}-{way}"
            numbers[prefix] += 1
            made.append(_competing(scenario, network, len(made), way, f"{prefix}::{numbers[prefix]}", competing))
    return made


def _names(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [(way, f"{way}::{number + 1}") for way, count in counts.items() for number in range(count)]


def _count(test: Test, streams: int | str) -> int:
    count = getattr(test, streams) if isinstance(streams, str) else streams
    assert isinstance(count, int), streams
    return count


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


def _flow(scenario: Scenario, network: Network, place: int, way: str, name: str) -> Flow:
    test = scenario.test
    sender = test.client if way == "upload" else test.server
    late = test.stream_delays[place % len(test.stream_delays)] if test.stream_delays else 0
    start_ns = seconds_ns(test.delay)
    return Flow(
        id=place,
        name=name,
        client=test.client,
        server=test.server,
        sender=sender,
        address=str(network.address(test.client, test.server).ip),
        port=FLOW_PORT + place,
        cc=test.flow_cc[place % len(test.flow_cc)] if test.flow_cc else scenario.stack.of(sender).cc,
        dscp=0,
        start_ns=start_ns + seconds_ns(late),
        stop_ns=start_ns + seconds_ns(test.length),
    )


def probes(scenario: Scenario, network: Network) -> list[Probe]:
    """ICMP and UDP from the client to the server, from the first to the last moment."""
    test = scenario.test
    address = str(network.address(test.client, test.server).ip)
    return [
        _probe(test, 0, "icmp", address, 0, seconds_ns(test.ping_interval)),
        _probe(test, 1, "udp", address, UDP_PROBE_PORT, seconds_ns(test.udp_interval)),
    ]


def _probe(test: Test, place: int, kind: Literal["icmp", "udp"], address: str, port: int, interval_ns: int) -> Probe:
    return Probe(
        id=place,
        name=kind,
        kind=kind,
        client=test.client,
        server=test.server,
        address=address,
        port=port,
        dscp=0,
        payload_bytes=PAYLOAD_BYTES,
        start_ns=0,
        stop_ns=end_ns(test),
        interval_ns=interval_ns,
        jitter_ns=interval_ns // JITTER_PART,
    )
