# SPDX-License-Identifier: Apache-2.0
"""The streams of a test as far as its words decide them: names, nodes, marks. Addresses, ports and times are the
plan's. What tests there are stands in testkinds.py."""

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
    """A TCP flow. `cc` None: the sender's own. `late_s`: how long after the test's load begins, or after its very
    beginning with `from_start`; `stop_s`: after the load begins, None: with it. `pace_bps`: its most; 0: no limit.
    `writes_bps`: what its application has to send; 0: always something."""

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
    """Uploads first, then downloads; named upload::1, upload::2, …, download::1, … or by their labels; then those
    that compete, named other1-upload::1 and so on."""
    bulk = [(way, server, one) for way in WAYS for server, one in _bulk(test, TESTS[test.name], way)]
    made = []
    for place, (way, server, one) in enumerate(bulk):
        cc = _cc(test, place, way, one)
        times = {
            "late_s": _in_turn(test.stream_delays, place) or 0,
            "stop_s": _in_turn(test.stream_stops, place),
            "pace_bps": _in_turn(test.stream_rates, place) or 0,
            "writes_bps": _in_turn(test.stream_writes, place) or 0,
        }
        name = f"{way}::{one.label}"
        made.append(TestFlow(name, way, test.client, server, one.dscp, cc, one.from_start, **times))
    return made + list(_competing(test))


def pings(test: Test) -> list[TestPing]:
    """ICMP and UDP from the client to the server, or to each of them."""
    kind, hosts = TESTS[test.name], test.hosts or ()
    if not kind.pings:
        return []
    if kind.hosts:
        streams = _plain(test, kind, len(hosts))
        labels = kind.hosts.preset.get("ping_labels") or _filled(test.ping_labels, len(hosts))
        return [
            *(TestPing(f"{label or 'ICMP'} {host}", "icmp", host) for host, label in zip(hosts, labels, strict=True)),
            *(TestPing(f"udp {host}", "udp", host, one.dscp) for host, one in zip(hosts, streams, strict=True)),
        ]
    udp = list(kind.udp)
    if kind.udp_per_stream:
        udp += [(f"udp {one.label}", one.dscp) for _, one in _bulk(test, kind, "upload")]
    return [TestPing("icmp", "icmp", test.server), *(TestPing(name, "udp", test.server, dscp) for name, dscp in udp)]


def _bulk(test: Test, kind: TestKind, way: Way) -> list[tuple[str, Bulk]]:
    """The flows of one way, each with its server."""
    given = kind.uploads if way == "upload" else kind.downloads
    if isinstance(given, tuple):
        return [(test.server, one) for one in given]
    count = getattr(test, given) if isinstance(given, str) else given
    if kind.hosts:
        count = len(test.hosts or ()) if given else 0
    servers = test.hosts or (test.server,) * count
    streams = zip(servers, _plain(test, kind, count), strict=False)
    return [pair for place, pair in enumerate(streams) if _there(test, kind, place, way)]


def _plain(test: Test, kind: TestKind, count: int) -> list[Bulk]:
    """The plain flows, by the test's parameters or by what it presets."""
    preset = kind.hosts.preset if kind.hosts else {}
    marks, labels, ccs = (_filled(preset.get(key) or getattr(test, key), count) for key in PER_STREAM)
    made = []
    for place, (mark, label, cc) in enumerate(zip(marks, labels, ccs, strict=True)):
        dscp = BE if mark is None else mark
        shown = f"{label or 'BE'} {test.hosts[place]}" if test.hosts else label or kind.label(place, dscp)
        made.append(Bulk(shown, dscp, cc))
    return made


def _filled(given: Sequence[Any] | None, count: int) -> list[Any]:
    """One for each stream: those that are not given are None."""
    values = list(given or ())[:count]
    return values + [None] * (count - len(values))


def _there(test: Test, kind: TestKind, place: int, way: Way) -> bool:
    """Whether the directions of a mixed test have this flow."""
    if "data_directions" not in kind.parameters or place >= len(test.data_directions or ()):
        return True
    return way[0] in (test.data_directions or ())[place]


def _in_turn(values: Sequence[Any], place: int) -> Any:
    """The value of a flow; None where there are none."""
    return values[place % len(values)] if values else None


def _cc(test: Test, place: int, way: Way, one: Bulk) -> str | None:
    """What the test says: of this flow, of all in turn, of the way."""
    if test.flow_cc:
        return test.flow_cc[place % len(test.flow_cc)]
    if one.cc or not test.tcp_cong_control:
        return one.cc
    return test.tcp_cong_control[0 if way == "upload" else -1]


def _competing(test: Test) -> Iterator[TestFlow]:
    """The flows beside the test's, in the same span of time."""
    numbers: Counter[str] = Counter()
    for one in test.competing:
        for way, count in zip(WAYS, (one.upload_streams, one.download_streams), strict=True):
            prefix = f"{one.client}-{way}"
            for _ in range(count):
                numbers[prefix] += 1
                yield TestFlow(
                    f"{prefix}::{numbers[prefix]}", way, one.client, one.server,
                    cc=one.cc, late_s=one.start, stop_s=one.stop, pace_bps=one.rate, writes_bps=one.writes,
                )  # fmt: skip
