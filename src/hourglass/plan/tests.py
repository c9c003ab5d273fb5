# SPDX-License-Identifier: Apache-2.0
"""The test's flows and probes. What tests there are stands in `scenario/tests.py`.

     0          delay                        delay + length      2 delay + length
probes |-----------|-------------------------------|-------------------|
flows              |===============================|
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hourglass.plan.model import Flow, Probe
from hourglass.plan.network import Network
from hourglass.scenario import Scenario, Test
from hourglass.scenario.tests import BE, TESTS, Stream, TestKind
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


@dataclass(frozen=True)
class Wanted:
    """A flow of the test: which way, with which server, and its place among the streams of its way."""

    way: str
    stream: Stream
    server: str
    place: int


def flows(scenario: Scenario, network: Network) -> list[Flow]:
    """Uploads first, then downloads; named upload::1, upload::2, …, download::1, … or by their labels; then those
    that compete, named other1-upload::1 and so on."""
    test = scenario.test
    kind = TESTS[test.name]
    wanted = [one for way in ("upload", "download") for one in _wanted(test, kind, way)]
    made = [_flow(scenario, network, place, one) for place, one in enumerate(wanted)]
    numbers: Counter[str] = Counter()
    for competing in test.competing:
        counts = {"upload": competing.upload_streams, "download": competing.download_streams}
        for way in (way for way, count in counts.items() for _ in range(count)):
            prefix = f"{competing.client}-{way}"
            numbers[prefix] += 1
            made.append(_competing(scenario, network, len(made), way, f"{prefix}::{numbers[prefix]}", competing))
    return made


def _wanted(test: Test, kind: TestKind, way: str) -> list[Wanted]:
    """The flows of one way."""
    streams = kind.uploads if way == "upload" else kind.downloads
    if kind.hosts:
        streams = len(test.hosts or ()) if streams else 0
    if isinstance(streams, tuple):
        return [Wanted(way, stream, test.server, place) for place, stream in enumerate(streams)]
    count = getattr(test, streams) if isinstance(streams, str) else streams
    assert isinstance(count, int), streams
    return [
        Wanted(way, stream, test.hosts[place] if test.hosts else test.server, place)
        for place, stream in enumerate(plain(test, kind, count))
        if _there(test, kind, place, way)
    ]


def plain(test: Test, kind: TestKind, count: int) -> list[Stream]:
    """The plain streams, by the test's parameters or by what it presets."""
    preset = kind.hosts.preset if kind.hosts else {}
    marks, labels, ccs = (_filled(preset.get(key) or getattr(test, key), count) for key in PER_STREAM)
    made = []
    for place, (mark, label, cc) in enumerate(zip(marks, labels, ccs, strict=True)):
        dscp = BE if mark is None else mark
        shown = f"{label or 'BE'} {test.hosts[place]}" if test.hosts else label or kind.label(place, dscp)
        made.append(Stream(shown, dscp, cc))
    return made


PER_STREAM = ("markings", "labels", "cc_algos")


def _filled(given: Sequence[Any] | None, count: int) -> list[Any]:
    """One for each stream: those that are not given are None."""
    values = list(given or ())[:count]
    return values + [None] * (count - len(values))


def _there(test: Test, kind: TestKind, place: int, way: str) -> bool:
    """Whether the directions of a mixed test have this flow."""
    if "data_directions" not in kind.parameters or place >= len(test.data_directions or ()):
        return True
    return way[0] in (test.data_directions or ())[place]


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
        backend=scenario.flow.backend,
    )


def _flow(scenario: Scenario, network: Network, place: int, wanted: Wanted) -> Flow:
    test, stream = scenario.test, wanted.stream
    sender = test.client if wanted.way == "upload" else wanted.server
    late = test.stream_delays[place % len(test.stream_delays)] if test.stream_delays else 0
    loaded_ns = seconds_ns(test.delay)
    return Flow(
        id=place,
        name=f"{wanted.way}::{stream.label}",
        client=test.client,
        server=wanted.server,
        sender=sender,
        address=str(network.address(test.client, wanted.server).ip),
        port=FLOW_PORT + place,
        cc=_cc(test, place, wanted) or scenario.stack.of(sender).cc,
        dscp=stream.dscp,
        start_ns=(0 if stream.from_start else loaded_ns) + seconds_ns(late),
        stop_ns=loaded_ns + seconds_ns(test.length),
        backend=scenario.flow.backend,
    )


def _cc(test: Test, place: int, wanted: Wanted) -> str | None:
    """What the test says: of this flow, of all in turn, of the way."""
    if test.flow_cc:
        return test.flow_cc[place % len(test.flow_cc)]
    if wanted.stream.cc or not test.tcp_cong_control:
        return wanted.stream.cc
    return test.tcp_cong_control[0 if wanted.way == "upload" else -1]


def probes(scenario: Scenario, network: Network) -> list[Probe]:
    """ICMP and UDP from the client to the server, or to each of them, from the first to the last moment."""
    test = scenario.test
    kind = TESTS[test.name]
    made: list[Probe] = []

    def add(way: Literal["icmp", "udp"], name: str, dscp: int, server: str) -> None:
        udp = sum(one.kind == "udp" for one in made)
        interval = test.ping_interval if way == "icmp" else test.udp_interval
        port = UDP_PROBE_PORT + udp if way == "udp" else 0
        address = str(network.address(test.client, server).ip)
        made.append(_probe(test, len(made), way, name, dscp, server, address, port, seconds_ns(interval)))

    if kind.hosts:
        streams = plain(test, kind, len(test.hosts or ()))
        labels = kind.hosts.preset.get("ping_labels") or _filled(test.ping_labels, len(streams))
        for server, label in zip(test.hosts or (), labels, strict=True):
            add("icmp", f"{label or 'ICMP'} {server}", BE, server)
        for server, stream in zip(test.hosts or (), streams, strict=True):
            add("udp", f"udp {server}", stream.dscp, server)
        return made
    add("icmp", "icmp", BE, test.server)
    for name, dscp in kind.udp:
        add("udp", name, dscp, test.server)
    if kind.udp_per_stream:
        for one in _wanted(test, kind, "upload"):
            add("udp", f"udp {one.stream.label}", one.stream.dscp, test.server)
    return made


def _probe(
    test: Test,
    place: int,
    kind: Literal["icmp", "udp"],
    name: str,
    dscp: int,
    server: str,
    address: str,
    port: int,
    interval_ns: int,
) -> Probe:
    return Probe(
        id=place,
        name=name,
        kind=kind,
        client=test.client,
        server=server,
        address=address,
        port=port,
        dscp=dscp,
        payload_bytes=PAYLOAD_BYTES,
        start_ns=0,
        stop_ns=end_ns(test),
        interval_ns=interval_ns,
        jitter_ns=interval_ns // JITTER_PART,
    )
