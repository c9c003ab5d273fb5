# SPDX-License-Identifier: Apache-2.0
"""The tests, each declared once, as data: Flent's names, flows, marks and pings, and what can be set.

Names and marks are those of Flent 2.3.0. `series` and `ping_series` say what a Flent file calls a flow and a ping.
Every test has the pings `icmp` and at least one of `udp …`, also those that have none in Flent.
"""

from dataclasses import dataclass
from typing import Literal

BE, CS1, CS5, EF, CS6 = 0, 8, 40, 46, 48
"""DSCP (RFC 2474, RFC 3246); Flent's BK is CS1."""

Way = Literal["upload", "download"]


@dataclass(frozen=True)
class Stream:
    """One TCP flow of a test with fixed flows. `cc` None: the sender's own. `from_start`: sends without the delay."""

    label: str
    dscp: int = BE
    cc: str | None = None
    from_start: bool = False


@dataclass(frozen=True)
class TestKind:
    """`uploads` and `downloads`: the flows; how many plain ones; the name of the parameter that says how many; or 0.

    `series`: a flow's name in a Flent file, of its way and label. `udp`: the UDP pings as (name, DSCP).
    `idle_after`: whether pings go on for `delay` after the flows.
    """

    __test__ = False

    description: str
    uploads: int | str | tuple[Stream, ...] = 0
    downloads: int | str | tuple[Stream, ...] = 0
    series: str = "TCP {way}::{label}"
    udp: tuple[tuple[str, int], ...] = (("udp", BE),)
    idle_after: bool = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """The stream parameters of the test."""
        return tuple(dict.fromkeys(one for one in (self.uploads, self.downloads) if isinstance(one, str)))

    @property
    def loaded(self) -> bool:
        """Whether it has flows at all."""
        return bool(self.uploads or self.downloads)

    def flow_series(self, name: str) -> str:
        """The name of flow "way::label" in a Flent file."""
        way, label = name.split("::", 1)
        return self.series.format(way=way, label=label)

    def ping_series(self, name: str) -> str:
        """The name of a ping in a Flent file: "icmp" is "Ping (ms) ICMP"."""
        return f"Ping (ms) {name.replace('icmp', 'ICMP').replace('udp', 'UDP')}"


STREAM_PARAMETERS = ("upload_streams", "download_streams")

_RRUL = (Stream("BE"), Stream("BK", CS1), Stream("CS5", CS5), Stream("EF", EF))
_RRUL_BE = (Stream("BE"), Stream("BE2"), Stream("BE3"), Stream("BE4"))


def _versus(other: str, cc: str) -> TestKind:
    """Cubic against another congestion control, as best effort and as background."""
    streams = tuple(
        Stream(f"{name} {mark}", dscp, algorithm)
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
        uploads=(Stream("1", from_start=True), Stream("2")),
        series="TCP stream {label}",
        idle_after=False,
    ),
    "rrul": TestKind(
        "Realtime response under load: four TCP flows each way, marked BE, BK (CS1), CS5 and EF.",
        uploads=_RRUL,
        downloads=_RRUL,
        series="TCP {way} {label}",
        udp=(("udp EF", EF), ("udp BK", CS1), ("udp BE", BE)),
    ),
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
}
