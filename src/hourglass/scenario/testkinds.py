# SPDX-License-Identifier: Apache-2.0
"""The tests, each declared once, as data: Flent's names, flows, marks, pings and parameters.

Names and marks are those of Flent 2.3.0. `series` and `ping` are the names of flows and pings in a Flent file. Every
test except `none` has the pings `icmp` and at least one of `udp …`, even if Flent's test has none.
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
    """Return the name of a DSCP, or its number."""
    return next((name for name, value in MARKINGS.items() if value == dscp), str(dscp))


Way = Literal["upload", "download"]


@dataclass(frozen=True)
class Bulk:
    """One TCP flow of a test. `cc` None: the sender's default. `from_start`: sends without the delay."""

    label: str
    dscp: int = BE
    cc: str | None = None
    from_start: bool = False


@dataclass(frozen=True)
class TrafficKind:
    """Traffic other than bulk flows: its parameters with their defaults; whether it is a load, which begins after
    `delay`, or lasts the whole test; the parameter with the number of its streams, if not one. `plan/streams.py`
    builds the streams."""

    parameters: dict[str, object]
    load: bool = False
    count: str = ""


TRAFFIC = {
    "flood": TrafficKind({"udp_bandwidth": 10**6, "udp_pktsize": 1470, "udp_ecn": "not_ect"}, load=True),
    "voip": TrafficKind({"voip_marking": BE, "voip_ecn": "not_ect"}),
    "http": TrafficKind(
        {"http_sizes": (10_000, 100_000, 1_000_000), "http_interval": 0.2, "http_workers": 1}, count="http_workers"
    ),
    "tcp_rr": TrafficKind({"rr_request": 1, "rr_response": 1, "rr_streams": 1}, count="rr_streams"),
    "rpm_probes": TrafficKind({"rpm_probe_rate": 100, "rpm_probers": 20}, count="rpm_probers"),
}
"""By name, in the order of their streams. The flood has the defaults of Flent's iperf (1 Mbit/s in packets of 1470
B). The web's defaults are an icon, a script, a picture. Those of tcp_rr are netperf's.
The rate of the probes of responsiveness is the draft's (`results/responsiveness.py`)."""

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
    "rpm_connections": 16,
    "rpm_interval": 5,
    **{key: default for kind in TRAFFIC.values() for key, default in kind.parameters.items()},
}
"""Parameters of some tests only, with their defaults, which are Flent's if it has them."""

Rule = Callable[[int, int], str]
"""Return the label of a stream from its index (from 0) and its DSCP."""


@dataclass(frozen=True)
class Hosts:
    """One flow in each direction per server. `count` servers, or all of `test.hosts` when None; `preset`: by
    parameter."""

    count: int | None = None
    preset: dict[str, tuple[object, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TestKind:
    """`uploads` and `downloads`: the flows, or the number of plain flows, or the name of the parameter with that
    number, or 0.

    `label`: of plain flows. `hosts`: if set, there is one plain flow per host in each direction that is not 0. `series`
    and `ping`: names in a Flent file, of a flow's direction and label and of a ping. `udp`: the UDP pings as (name,
    DSCP); `udp_per_stream`: one more per plain flow. `idle_after`: whether pings continue for `delay` after the flows.
    `traffic`: its other traffic, by the names of `TRAFFIC`. `further`: parameters of this test alone. `ramp`:
    the parameter with the seconds between the starts of the flows of a direction. `in_flent`: whether Flent has a test
    of this name. `pings`: whether it has any.
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
    ramp: str = ""
    in_flent: bool = True
    pings: bool = True

    @property
    def counts(self) -> tuple[str, ...]:
        """Return the parameters with the numbers of flows."""
        return tuple(dict.fromkeys(flows for flows in (self.uploads, self.downloads) if isinstance(flows, str)))

    @property
    def plain(self) -> bool:
        """Return true if it has flows without individual labels."""
        return not self.hosts and any(
            flows and not isinstance(flows, tuple) for flows in (self.uploads, self.downloads)
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters of this test that not every test has."""
        names = [*self.counts, *self.further, *filter(None, [self.ramp])]
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
        return (*names, *(key for name in self.traffic for key in TRAFFIC[name].parameters))

    @property
    def bulk(self) -> bool:
        """Return true if it has bulk flows."""
        return bool(self.uploads or self.downloads)

    @property
    def loaded(self) -> bool:
        """Return true if a load begins after `delay`; other traffic alone runs from start to end."""
        return self.bulk or any(TRAFFIC[name].load for name in self.traffic)

    def flow_series(self, name: str) -> str:
        """Return the name of flow "way::label" in a Flent file; a competing flow keeps its name."""
        way, label = name.split("::", 1)
        return self.series.format(way=way, label=label) if way in ("upload", "download") else f"TCP {name}"

    def ping_series(self, name: str) -> str:
        """Return the name of a ping in a Flent file: "icmp" is "Ping (ms) ICMP"."""
        first, *rest = name.split(" ", 1)
        title = " ".join([first.upper() if first in ("icmp", "udp") else first, *rest])
        return self.ping.format(name=title)


PROBE_NAME = "probe"
"""The name of the clients that probe responsiveness, before their number."""
WORKERS_MAX = 100
"""The most fetches, or transactions, at a time."""

VOIP_INTERVAL_S, VOIP_BYTES = 0.02, 172
"""G.711 (ITU-T G.711, RFC 3551): 20 ms of 64 kbit/s are 160 B, with 12 B of RTP; Flent's voip sends the same."""

_RRUL = (Bulk("BE"), Bulk("BK", CS1), Bulk("CS5", CS5), Bulk("EF", EF))
_RRUL_BE = (Bulk("BE"), Bulk("BE2"), Bulk("BE3"), Bulk("BE4"))


def _rrul(description: str, *traffic: str) -> TestKind:
    """Return a test with marked flows in both directions and a UDP ping of three of the marks, with other traffic."""
    return TestKind(
        description,
        uploads=_RRUL,
        downloads=_RRUL,
        series="TCP {way} {label}",
        udp=(("udp EF", EF), ("udp BK", CS1), ("udp BE", BE)),
        traffic=traffic,
    )


def _versus(other: str, cc: str) -> TestKind:
    """Return a test of Cubic against another congestion control, as best effort and as background."""
    streams = tuple(
        Bulk(f"{name} {mark}", dscp, algorithm)
        for mark, dscp in (("BE", BE), ("CS1", CS1))
        for name, algorithm in (("Cubic", "cubic"), (other, cc))
    )
    return TestKind(
        f"Cubic against {other}: one flow of each in both directions, one best effort, one background (CS1).",
        uploads=streams,
        downloads=streams,
        series="TCP {way} {label}",
        udp=(("udp BE", BE), ("udp CS1", CS1), ("udp CS6", CS6)),
    )


_RTT_FAIR_LABELS = ("BE1", "BE2", "BK1", "BK2")


def _rtt_fair(description: str, marks: tuple[int, ...], labels: tuple[str, ...], directions: str = "ud") -> TestKind:
    """Return a test with a fixed number of servers, marks and labels."""
    preset = {"markings": marks, "labels": labels, "ping_labels": tuple(f"ICMP{i + 1}" for i in range(len(labels)))}
    return TestKind(
        description,
        uploads=1 if "u" in directions else 0,
        downloads=1 if "d" in directions else 0,
        series="TCP {way} {label}",
        hosts=Hosts(len(labels), preset),
        udp=(),
    )


def _rtt_fair_var(description: str, directions: str = "ud", further: tuple[str, ...] = ()) -> TestKind:
    """Return a test with as many servers as `test.hosts` names."""
    return TestKind(
        f"{description} with each of `hosts`.",
        uploads=1 if "u" in directions else 0,
        downloads=1 if "d" in directions else 0,
        series="TCP {way} {label}",
        hosts=Hosts(),
        udp=(),
        further=further,
    )


def _best_effort(count: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return (BE,) * count, tuple(f"BE{i + 1}" for i in range(count))


_HTTP = "fetches of `http_sizes` in turn, each on a new TCP connection, with their completion times"
_RR = (
    "on `rr_streams` TCP connections, requests of `rr_request` one after another, each answered by"
    " `rr_response` (TCP_RR)"
)
_VOIP = "a one-way G.711 stream (172 B each 20 ms) from client to server with its delay, jitter, loss and MOS"


def _rpm(description: str, uploads: bool, downloads: bool) -> TestKind:
    """Return a test of responsiveness, with one more flow in each interval."""
    flows = "rpm_connections"
    return TestKind(
        f"Responsiveness (RPM) under {description}: one more flow each `rpm_interval`, at most `rpm_connections`"
        " in a direction, and probes on new connections.",
        uploads=flows if uploads else 0,
        downloads=flows if downloads else 0,
        ramp="rpm_interval",
        traffic=("rpm_probes",),
        in_flent=False,
    )


TESTS = {
    "ping": TestKind("Only pings, for `length` seconds."),
    "tcp_upload": TestKind("One TCP flow from client to server.", uploads=1, series="TCP {way}"),
    "tcp_download": TestKind("One TCP flow from server to client.", downloads=1, series="TCP {way}"),
    "tcp_bidirectional": TestKind("One TCP flow in each direction.", uploads=1, downloads=1, series="TCP {way}"),
    "tcp_1up": TestKind("One TCP flow from client to server.", uploads=1, series="TCP {way}"),
    "tcp_1down": TestKind("One TCP flow from server to client.", downloads=1, series="TCP {way}"),
    **{f"tcp_{n}up": TestKind(f"{n} TCP flows from client to server.", uploads=n) for n in (2, 4, 6, 8, 12)},
    **{f"tcp_{n}down": TestKind(f"{n} TCP flows from server to client.", downloads=n) for n in (2, 4, 6, 8, 12)},
    "tcp_nup": TestKind("`upload_streams` TCP flows from client to server.", uploads="upload_streams"),
    "tcp_ndown": TestKind("`download_streams` TCP flows from server to client.", downloads="download_streams"),
    "tcp_2up_delay": TestKind(
        "Two TCP flows from client to server. The second starts `delay` later, and both stop together.",
        uploads=(Bulk("1", from_start=True), Bulk("2")),
        series="TCP stream {label}",
        idle_after=False,
    ),
    "rrul": _rrul("Realtime response under load: four TCP flows in each direction, marked BE, BK (CS1), CS5 and EF."),
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
        "rrul with `bidir_streams` flows in each direction, marked by `markings`, and a UDP ping for each.",
        uploads="bidir_streams",
        downloads="bidir_streams",
        ping="Ping (ms)::{name}",
        udp=(),
        udp_per_stream=True,
        label=lambda place, dscp: f"{place} ({marking_name(dscp)})",
    ),
    "rtt_fair": _rtt_fair(
        "A TCP flow in each direction with each of four servers: two best effort, two background (CS1).",
        (BE, BE, CS1, CS1),
        _RTT_FAIR_LABELS,
    ),
    "rtt_fair4be": _rtt_fair("rtt_fair with every flow best effort.", *_best_effort(4)),
    "rtt_fair6be": _rtt_fair("rtt_fair with six servers and every flow best effort.", *_best_effort(6)),
    "rtt_fair_up": _rtt_fair("rtt_fair4be with uploads only.", *_best_effort(4), directions="u"),
    "rtt_fair_var": _rtt_fair_var("A TCP flow in each direction"),
    "rtt_fair_var_up": _rtt_fair_var("An upload", "u"),
    "rtt_fair_var_down": _rtt_fair_var("A download", "d"),
    "rtt_fair_var_mixed": _rtt_fair_var(
        "TCP flows as `data_directions` says (u, d or ud for each)", further=("data_directions",)
    ),
    "udp_flood": TestKind("UDP packets at `udp_bandwidth` from client to server.", traffic=("flood",)),
    "voip": TestKind(f"VoIP: {_VOIP}.", traffic=("voip",)),
    "voip-1up": TestKind(
        "voip together with one TCP flow from client to server.", uploads=1, series="TCP {way}", traffic=("voip",)
    ),
    "voip-rrul": _rrul("voip together with rrul.", "voip"),
    "http": TestKind(f"Web: {_HTTP}.", traffic=("http",)),
    "http-1up": TestKind(
        "http together with one TCP flow from client to server.", uploads=1, series="TCP {way}", traffic=("http",)
    ),
    "http-1down": TestKind(
        "http together with one TCP flow from server to client.", downloads=1, series="TCP {way}", traffic=("http",)
    ),
    "http-rrul": _rrul("http together with rrul.", "http"),
    "tcp_rr": TestKind(f"Transactions: {_RR}.", traffic=("tcp_rr",), in_flent=False),
    "tcp_rr-1up": TestKind(
        "tcp_rr together with one TCP flow from client to server.", uploads=1, traffic=("tcp_rr",), in_flent=False
    ),
    "rpm": _rpm("uploads and downloads", uploads=True, downloads=True),
    "rpm_up": _rpm("uploads", uploads=True, downloads=False),
    "rpm_down": _rpm("downloads", uploads=False, downloads=True),
    "none": TestKind("Only the programs of `[[app]]`, until they have ended.", udp=(), pings=False, in_flent=False),
}
