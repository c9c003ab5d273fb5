# SPDX-License-Identifier: Apache-2.0
"""The tests, each declared once, as data: Flent's names, flows, marks and pings, and what can be set.

Names and marks are those of Flent 2.3.0. `series` and `ping` say what a Flent file calls a flow and a ping.
Every test but `none` has the pings `icmp` and at least one of `udp …`, also those that have none in Flent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

BE, CS1, CS5, EF, CS6 = 0, 8, 40, 46, 48
"""DSCP (RFC 2474, RFC 3246); Flent's BK is CS1."""

MARKINGS = {
    **{f"CS{i}": 8 * i for i in range(8)},
    **{f"AF{i}{j}": 8 * i + 2 * j for i in range(1, 5) for j in range(1, 4)},
    "VA": 44,
    "EF": EF,
    "LE": 1,
}
"""DSCP by name (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622)."""


def marking_name(dscp: int) -> str:
    """The name of a DSCP, or its number."""
    return next((name for name, value in MARKINGS.items() if value == dscp), str(dscp))


Way = Literal["upload", "download"]


@dataclass(frozen=True)
class Bulk:
    """One TCP flow of a test. `cc` None: the sender's own. `from_start`: sends without the delay."""

    label: str
    dscp: int = BE
    cc: str | None = None
    from_start: bool = False


@dataclass(frozen=True)
class Traffic:
    """Traffic other than bulk flows: its parameters with their defaults; whether it is a load, which begins after
    `delay`, or goes on from the first to the last moment; the parameter that says how many streams it is, if not one.
    The streams themselves: `plan/streams.py`."""

    parameters: dict[str, object]
    load: bool = False
    count: str = ""


TRAFFIC = {
    "flood": Traffic({"udp_bandwidth": 10**6, "udp_pktsize": 1470, "udp_ecn": "not_ect"}, load=True),
    "voip": Traffic({"voip_marking": BE, "voip_ecn": "not_ect"}),
    "http": Traffic(
        {"http_sizes": (10_000, 100_000, 1_000_000), "http_interval": 0.2, "http_workers": 1}, count="http_workers"
    ),
    "tcp_rr": Traffic({"rr_request": 1, "rr_response": 1, "rr_streams": 1}, count="rr_streams"),
}
"""By name, in the order of their streams. The flood's defaults are those of Flent's iperf (1 Mbit/s in packets of
1470 B). The web's are ours: an icon, a script, a picture. Those of tcp_rr are netperf's."""

PARAMETERS: dict[str, object] = {
    "upload_streams": 1,
    "download_streams": 1,
    "bidir_streams": 1,
    "hosts": (),
    "markings": (),
    "labels": (),
    "ping_labels": (),
    "cc_algos": (),
    "tcp_cong_control": (),
    "data_directions": (),
    **{key: default for one in TRAFFIC.values() for key, default in one.parameters.items()},
}
"""What some tests have and others do not, with defaults, Flent's where it has them."""

Rule = Callable[[int, int], str]
"""A label of a stream from its place (from 0) and its DSCP."""


@dataclass(frozen=True)
class Hosts:
    """One flow each way per server. `count` servers, or all of `test.hosts` when None; `preset`: by parameter."""

    count: int | None = None
    preset: dict[str, tuple[object, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TestKind:
    """`uploads` and `downloads`: the flows; how many plain ones; the name of the parameter that says how many; or 0.

    `label`: of plain flows. `hosts`: then there is one plain flow per host where `uploads` or `downloads` is not 0.
    `series` and `ping`: names in a Flent file, of a flow's way and label and of a ping. `udp`: the UDP pings as (name,
    DSCP); `udp_per_stream`: one more per plain flow. `idle_after`: whether pings go on for `delay` after the flows.
    `traffic`: its other traffic, by the names of `TRAFFIC`. `further`: parameters of this test alone.
    `in_flent`: whether Flent has a test of this name. `pings`: whether it has any.
    """

    __test__ = False

    description: str
    uploads: int | str | tuple[Bulk, ...] = 0
    downloads: int | str | tuple[Bulk, ...] = 0
    series: str = "TCP {way}::{label}"
    ping: str = "Ping (ms) {name}"
    udp: tuple[tuple[str, int], ...] = (("udp", BE),)
    udp_per_stream: bool = False
    idle_after: bool = True
    label: Rule = lambda place, dscp: str(place + 1)
    hosts: Hosts | None = None
    traffic: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    in_flent: bool = True
    pings: bool = True

    @property
    def counts(self) -> tuple[str, ...]:
        """The parameters that say how many flows there are."""
        return tuple(dict.fromkeys(one for one in (self.uploads, self.downloads) if isinstance(one, str)))

    @property
    def plain(self) -> bool:
        """Whether it has flows that the test itself does not tell apart."""
        return not self.hosts and any(one and not isinstance(one, tuple) for one in (self.uploads, self.downloads))

    @property
    def parameters(self) -> tuple[str, ...]:
        """What can be set of this test and not of every one."""
        names = [*self.counts, *self.further]
        if self.hosts:
            names.append("hosts")
        if (self.hosts and not self.hosts.preset) or self.plain:
            names += ["markings", "cc_algos"]
        if (self.hosts and not self.hosts.preset) or self.udp_per_stream:
            names.append("labels")
        if self.hosts and not self.hosts.preset:
            names.append("ping_labels")
        if self.uploads or self.downloads:
            names.append("tcp_cong_control")
        return (*names, *(key for one in self.traffic for key in TRAFFIC[one].parameters))

    @property
    def bulk(self) -> bool:
        """Whether it has flows of its own."""
        return bool(self.uploads or self.downloads)

    @property
    def loaded(self) -> bool:
        """Whether there is something to wait `delay` for; the other traffic alone has the whole time for itself."""
        return self.bulk or any(TRAFFIC[one].load for one in self.traffic)

    def flow_series(self, name: str) -> str:
        """The name of flow "way::label" in a Flent file; a competing flow's is its own."""
        way, label = name.split("::", 1)
        return self.series.format(way=way, label=label) if way in ("upload", "download") else f"TCP {name}"

    def ping_series(self, name: str) -> str:
        """The name of a ping in a Flent file: "icmp" is "Ping (ms) ICMP"."""
        first, *rest = name.split(" ", 1)
        shown = " ".join([first.upper() if first in ("icmp", "udp") else first, *rest])
        return self.ping.format(name=shown)


WORKERS_MAX = 100
"""Fetches, and transactions, at a time."""

VOIP_INTERVAL_S, VOIP_BYTES = 0.02, 172
"""G.711 (ITU-T G.711, RFC 3551): 20 ms of 64 kbit/s are 160 B, with 12 B of RTP; Flent's voip sends the same."""

_RRUL = (Bulk("BE"), Bulk("BK", CS1), Bulk("CS5", CS5), Bulk("EF", EF))
_RRUL_BE = (Bulk("BE"), Bulk("BE2"), Bulk("BE3"), Bulk("BE4"))


def _rrul(description: str, *traffic: str) -> TestKind:
    """Marked flows both ways and a UDP ping of three of the marks, with other traffic beside them."""
    return TestKind(
        description,
        uploads=_RRUL,
        downloads=_RRUL,
        series="TCP {way} {label}",
        udp=(("udp EF", EF), ("udp BK", CS1), ("udp BE", BE)),
        traffic=traffic,
    )


def _versus(other: str, cc: str) -> TestKind:
    """Cubic against another congestion control, as best effort and as background."""
    streams = tuple(
        Bulk(f"{name} {mark}", dscp, algorithm)
        for mark, dscp in (("BE", BE), ("CS1", CS1))
        for name, algorithm in (("Cubic", "cubic"), (other, cc))
    )
    return TestKind(
        f"Cubic against {other}: a flow of each, best effort and background (CS1), both ways at once.",
        uploads=streams,
        downloads=streams,
        series="TCP {way} {label}",
        udp=(("udp BE", BE), ("udp CS1", CS1), ("udp CS6", CS6)),
    )


_RTT_FAIR_LABELS = ("BE1", "BE2", "BK1", "BK2")


def _rtt_fair(what: str, marks: tuple[int, ...], labels: tuple[str, ...], ways: str = "ud") -> TestKind:
    """A fixed number of servers with fixed marks and labels."""
    preset = {"markings": marks, "labels": labels, "ping_labels": tuple(f"ICMP{i + 1}" for i in range(len(labels)))}
    return TestKind(
        what,
        uploads=1 if "u" in ways else 0,
        downloads=1 if "d" in ways else 0,
        series="TCP {way} {label}",
        hosts=Hosts(len(labels), preset),
        udp=(),
    )


def _rtt_fair_var(what: str, ways: str = "ud", further: tuple[str, ...] = ()) -> TestKind:
    """As many servers as `test.hosts` names."""
    return TestKind(
        f"{what} with each of `hosts`.",
        uploads=1 if "u" in ways else 0,
        downloads=1 if "d" in ways else 0,
        series="TCP {way} {label}",
        hosts=Hosts(),
        udp=(),
        further=further,
    )


def _best_effort(count: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return (BE,) * count, tuple(f"BE{i + 1}" for i in range(count))


_HTTP = "fetches of `http_sizes` in turn, a new TCP connection each, with their completion times"
_RR = "on `rr_streams` TCP connections one request of `rr_request` after the other, answered by `rr_response` (TCP_RR)"
_VOIP = "a one-way G.711 stream (172 B each 20 ms) from client to server with its delay, jitter, loss and MOS"

TESTS = {
    "ping": TestKind("Pings alone, for `length` seconds."),
    "tcp_upload": TestKind("One TCP flow from client to server.", uploads=1, series="TCP {way}"),
    "tcp_download": TestKind("One TCP flow from server to client.", downloads=1, series="TCP {way}"),
    "tcp_bidirectional": TestKind("One TCP flow each way.", uploads=1, downloads=1, series="TCP {way}"),
    "tcp_1up": TestKind("One TCP flow from client to server.", uploads=1, series="TCP {way}"),
    "tcp_1down": TestKind("One TCP flow from server to client.", downloads=1, series="TCP {way}"),
    **{f"tcp_{n}up": TestKind(f"{n} TCP flows from client to server.", uploads=n) for n in (2, 4, 6, 8, 12)},
    **{f"tcp_{n}down": TestKind(f"{n} TCP flows from server to client.", downloads=n) for n in (2, 4, 6, 8, 12)},
    "tcp_nup": TestKind("`upload_streams` TCP flows from client to server.", uploads="upload_streams"),
    "tcp_ndown": TestKind("`download_streams` TCP flows from server to client.", downloads="download_streams"),
    "tcp_2up_delay": TestKind(
        "Two TCP flows from client to server; the second starts `delay` later, both stop together.",
        uploads=(Bulk("1", from_start=True), Bulk("2")),
        series="TCP stream {label}",
        idle_after=False,
    ),
    "rrul": _rrul("Realtime response under load: four TCP flows each way, marked BE, BK (CS1), CS5 and EF."),
    "rrul_be": TestKind(
        "rrul with every flow best effort.",
        uploads=_RRUL_BE,
        downloads=_RRUL_BE,
        series="TCP {way} {label}",
        udp=(("udp BE1", BE), ("udp BE2", BE), ("udp BE3", BE)),
    ),
    "rrul_be_nflows": TestKind(
        "rrul_be with `upload_streams` and `download_streams` flows.",
        uploads="upload_streams",
        downloads="download_streams",
        series="TCP {way} BE::{label}",
        udp=(("udp BE", BE),),
    ),
    "cubic_bbr": _versus("BBR", "bbr"),
    "cubic_reno": _versus("Reno", "reno"),
    "rrul_var": TestKind(
        "rrul with `bidir_streams` flows each way, marked by `markings`, and a UDP ping as each.",
        uploads="bidir_streams",
        downloads="bidir_streams",
        ping="Ping (ms)::{name}",
        udp=(),
        udp_per_stream=True,
        label=lambda place, dscp: f"{place} ({marking_name(dscp)})",
    ),
    "rtt_fair": _rtt_fair(
        "A TCP flow each way with each of four servers, two best effort, two background (CS1).",
        (BE, BE, CS1, CS1),
        _RTT_FAIR_LABELS,
    ),
    "rtt_fair4be": _rtt_fair("rtt_fair with every flow best effort.", *_best_effort(4)),
    "rtt_fair6be": _rtt_fair("rtt_fair with six servers and every flow best effort.", *_best_effort(6)),
    "rtt_fair_up": _rtt_fair("rtt_fair4be with uploads alone.", *_best_effort(4), ways="u"),
    "rtt_fair_var": _rtt_fair_var("A TCP flow each way"),
    "rtt_fair_var_up": _rtt_fair_var("An upload", "u"),
    "rtt_fair_var_down": _rtt_fair_var("A download", "d"),
    "rtt_fair_var_mixed": _rtt_fair_var(
        "TCP flows as `data_directions` says (u, d or ud for each)", further=("data_directions",)
    ),
    "udp_flood": TestKind("UDP packets at `udp_bandwidth` from client to server.", traffic=("flood",)),
    "voip": TestKind(f"VoIP: {_VOIP}.", traffic=("voip",)),
    "voip-1up": TestKind(
        "voip beside one TCP flow from client to server.", uploads=1, series="TCP {way}", traffic=("voip",)
    ),
    "voip-rrul": _rrul("voip beside rrul.", "voip"),
    "http": TestKind(f"Web: {_HTTP}.", traffic=("http",)),
    "http-1up": TestKind(
        "http beside one TCP flow from client to server.", uploads=1, series="TCP {way}", traffic=("http",)
    ),
    "http-1down": TestKind(
        "http beside one TCP flow from server to client.", downloads=1, series="TCP {way}", traffic=("http",)
    ),
    "http-rrul": _rrul("http beside rrul.", "http"),
    "tcp_rr": TestKind(f"Transactions: {_RR}.", traffic=("tcp_rr",), in_flent=False),
    "tcp_rr-1up": TestKind(
        "tcp_rr beside one TCP flow from client to server.", uploads=1, traffic=("tcp_rr",), in_flent=False
    ),
    "none": TestKind("The programs of `[[app]]` alone, until they have ended.", udp=(), pings=False, in_flent=False),
}
