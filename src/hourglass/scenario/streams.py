# SPDX-License-Identifier: Apache-2.0
"""The streams of a test: names, nodes, marks. The plan adds addresses, ports and times. testkinds.py lists the
tests."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hourglass.scenario.test import Test
from hourglass.scenario.testkinds import BE, TESTS, Bulk, TestKind, Way

WAYS: tuple[Way, ...] = ("upload", "download")
PER_STREAM = ("markings", "labels", "cc_algos")


@dataclass(frozen=True)
class TestFlow:
    """A TCP flow. `cc` None: the sender's default. `late_s`: its start after the load's start, or after the test's
    start with `from_start`; `stop_s`: its end after the load's start, None: with the load. `pace_bps`: the maximum;
    0: no limit. `writes_bps`: the rate of its application; 0: unlimited."""

    __test__ = False

    name: str
    way: Way
    client: str
    server: str
    dscp: int = BE
    cc: str | None = None
    from_start: bool = False
    late_s: int | float = 0
    stop_s: int | float | None = None
    pace_bps: int = 0
    writes_bps: int = 0

    @property
    def sender(self) -> str:
        return self.client if self.way == "upload" else self.server


@dataclass(frozen=True)
class TestPing:
    """A ping from the test's client."""

    __test__ = False

    name: str
    protocol: Literal["icmp", "udp"]
    server: str
    dscp: int = BE


def flows(test: Test) -> list[TestFlow]:
    """Return uploads, then downloads, then competing flows. They are named upload::1, upload::2, …, download::1, …
    or by their labels; competing ones other1-upload::1 and so on."""
    kind = TESTS[test.name]
    bulk = [
        (way, server, flow, late_s)
        for way in WAYS
        for server, flow, late_s in _ramped(test, kind, _bulk(test, kind, way))
    ]
    test_flows = []
    for index, (way, server, flow, late_s) in enumerate(bulk):
        cc = _cc(test, index, way, flow)
        times = {
            "late_s": _in_turn(test.stream_delays, index) or late_s,
            "stop_s": _in_turn(test.stream_stops, index),
            "pace_bps": _in_turn(test.stream_rates, index) or 0,
            "writes_bps": _in_turn(test.stream_writes, index) or 0,
        }
        name = f"{way}::{flow.label}"
        test_flows.append(TestFlow(name, way, test.client, server, flow.dscp, cc, flow.from_start, **times))
    return test_flows + list(_competing(test))


def pings(test: Test) -> list[TestPing]:
    """Return pings by ICMP and UDP from the client to the server, or to each of the servers."""
    kind, hosts = TESTS[test.name], test.hosts or ()
    if not kind.pings:
        return []
    if kind.hosts:
        streams = _plain(test, kind, len(hosts))
        labels = kind.hosts.preset.get("ping_labels") or _filled(test.ping_labels, len(hosts))
        return [
            *(TestPing(f"{label or 'ICMP'} {host}", "icmp", host) for host, label in zip(hosts, labels, strict=True)),
            *(TestPing(f"udp {host}", "udp", host, stream.dscp) for host, stream in zip(hosts, streams, strict=True)),
        ]
    udp = list(kind.udp)
    if kind.udp_per_stream:
        udp += [(f"udp {stream.label}", stream.dscp) for _, stream in _bulk(test, kind, "upload")]
    return [TestPing("icmp", "icmp", test.server), *(TestPing(name, "udp", test.server, dscp) for name, dscp in udp)]


def _bulk(test: Test, kind: TestKind, way: Way) -> list[tuple[str, Bulk]]:
    """Return the flows of one direction, each with its server."""
    flow_source = kind.uploads if way == "upload" else kind.downloads
    if isinstance(flow_source, tuple):
        return [(test.server, flow) for flow in flow_source]
    count = getattr(test, flow_source) if isinstance(flow_source, str) else flow_source
    if kind.hosts:
        count = len(test.hosts or ()) if flow_source else 0
    servers = test.hosts or (test.server,) * count
    streams = zip(servers, _plain(test, kind, count), strict=False)
    return [pair for index, pair in enumerate(streams) if _has_direction(test, kind, index, way)]


def _ramped(test: Test, kind: TestKind, bulk: list[tuple[str, Bulk]]) -> Iterator[tuple[str, Bulk, int | float]]:
    """Yield the flows of one direction with their delays, without those that would start after the end."""
    every_s = getattr(test, kind.ramp) if kind.ramp else 0
    for number, (server, flow) in enumerate(bulk):
        if (late_s := number * every_s) < test.length:
            yield server, flow, late_s


def _plain(test: Test, kind: TestKind, count: int) -> list[Bulk]:
    """Return the plain flows, by the test's parameters or by its presets."""
    preset = kind.hosts.preset if kind.hosts else {}
    marks, labels, ccs = (_filled(preset.get(key) or getattr(test, key), count) for key in PER_STREAM)
    plain_flows = []
    for index, (mark, label, cc) in enumerate(zip(marks, labels, ccs, strict=True)):
        dscp = BE if mark is None else mark
        label_text = f"{label or 'BE'} {test.hosts[index]}" if test.hosts else label or kind.label(index, dscp)
        plain_flows.append(Bulk(label_text, dscp, cc))
    return plain_flows


def _filled(values_given: Sequence[Any] | None, count: int) -> list[Any]:
    """Return one value for each stream; missing ones are None."""
    values = list(values_given or ())[:count]
    return values + [None] * (count - len(values))


def _has_direction(test: Test, kind: TestKind, index: int, way: Way) -> bool:
    """Return true if the directions of a mixed test include this flow."""
    if "data_directions" not in kind.parameters or index >= len(test.data_directions or ()):
        return True
    return way[0] in (test.data_directions or ())[index]


def _in_turn(values: Sequence[Any], index: int) -> Any:
    """Return the value of a flow; None if there are no values."""
    return values[index % len(values)] if values else None


def _cc(test: Test, index: int, way: Way, flow: Bulk) -> str | None:
    """Return the flow's congestion control: its individual one, the next in turn, or that of its direction."""
    if test.flow_cc:
        return test.flow_cc[index % len(test.flow_cc)]
    if flow.cc or not test.tcp_cong_control:
        return flow.cc
    return test.tcp_cong_control[0 if way == "upload" else -1]


def _competing(test: Test) -> Iterator[TestFlow]:
    """Return the flows in addition to the test's, during the same time."""
    numbers: Counter[str] = Counter()
    for competitor in test.competing:
        for way, count in zip(WAYS, (competitor.upload_streams, competitor.download_streams), strict=True):
            prefix = f"{competitor.client}-{way}"
            for _ in range(count):
                numbers[prefix] += 1
                yield TestFlow(
                    f"{prefix}::{numbers[prefix]}", way, competitor.client, competitor.server,
                    cc=competitor.cc, late_s=competitor.start, stop_s=competitor.stop, pace_bps=competitor.rate,
                    writes_bps=competitor.writes,
                )  # fmt: skip
