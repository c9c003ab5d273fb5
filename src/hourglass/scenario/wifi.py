# SPDX-License-Identifier: Apache-2.0
"""A Wi-Fi cell: an access point, its stations, their channel and their chip.

Numbers of the standard: IEEE 802.11-2020 (clauses 19 HT, 21 VHT) and 802.11ax-2021 (clause 27 HE). The `radio` driver
has the fixed behaviour of a chip; this module has its settings.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator

from hourglass.scenario.quantities import SHARE, TIME, Bounds, show
from hourglass.scenario.toml_table import Rows, TomlTable
from hourglass.scenario.value_kinds import SWITCH, ValueKind, choice, integer, integer_or, numbers, quantity
from hourglass.scenario.values import End

CELLS_MAX = 8
STATIONS_MAX = 50
"""The most stations of a cell. Each is a kernel thread or two, and three processes at the start."""

PPB_PER_PPM = 1000

CHANNELS = {"2.4GHz": tuple(range(1, 12)), "5GHz": tuple(range(36, 65, 4))}
"""Primary channels, by band. A cell begins on the first."""


@dataclass(frozen=True)
class Chip:
    """The capabilities of a chip: standards, spatial streams, widths in MHz, and whether mac80211 queues above it;
    and its defaults of a cell's keys."""

    standards: tuple[str, ...]
    streams: int
    widths: tuple[int, ...]
    txq: bool
    cell_defaults: dict[str, int]
    aql: bool = False

    def defaults(self, standard: str) -> dict[str, int]:
        """Return its defaults in a standard: aggregates of 802.11ax are longer."""
        return self.cell_defaults | {"aql": self.aql} | ({"max_subframes": 256} if standard == "ax" else {})


CHIPS = {
    "ath9k": Chip(("n",), 3, (20, 40), txq=True, cell_defaults={
        "max_subframes": 32, "max_airtime": 4096, "depth": 2, "rx_usecs": 500, "rx_usecs_first": 2000,
    }),
    "ath9k_htc": Chip(("n",), 1, (20, 40), txq=False, cell_defaults={
        "max_subframes": 17, "max_airtime": 5484, "depth": 1, "rx_usecs": 250, "rx_usecs_first": 700,
    }),
    "generic": Chip(("n", "ac", "ax"), 4, (20, 40, 80), txq=True, cell_defaults={
        "max_subframes": 64, "max_airtime": 5484, "depth": 1, "rx_usecs": 0, "rx_usecs_first": 0,
    }, aql=True),
}  # fmt: skip
"""AR9580 (PCIe), AR9271 (USB), and a current mt76 or ath10k."""


@dataclass(frozen=True)
class Standard:
    """An amendment's highest MCS of one stream, and the driver's guard intervals in ns."""

    mcs: int
    guards: tuple[int, ...]


STANDARDS = {
    "n": Standard(7, (400, 800)),
    "ac": Standard(9, (400, 800)),
    "ax": Standard(11, (800, 3200)),
}
NO_VHT = {(20, 9): {1, 2, 4}, (80, 6): {3}}
"""(width, MCS) → numbers of streams for which 802.11ac lacks this rate (802.11-2020, 21.5)."""


_ERROR = Bounds(SHARE, 0, 10**9 - 1)


def _error(value: object) -> int:
    ppb = _ERROR.parse(value)
    if ppb % PPB_PER_PPM:
        raise ValueError(f"must be {_ERROR.allowed()}, in whole parts per million")
    return ppb


Standards = Annotated[str, *choice(tuple(STANDARDS), "A standard")]
Band = Annotated[str, *choice(("2.4GHz", "5GHz"), "A band")]
Width = Annotated[int, *numbers(20, 40, 80, unit="MHz")]
SpatialStreams = Annotated[int, *integer(1, 4, "spatial streams")]
Guard = Annotated[int, *quantity(Bounds(TIME, 400, 3200))]
Mcs = Annotated[
    int | str,
    *integer_or("minstrel", 0, 11, 'an MCS per spatial stream, 0 to 7 (n), 9 (ac) or 11 (ax), or "minstrel"'),
]
Db = Annotated[int, *integer(0, 100, "dB", "dB")]
ErrorShare = Annotated[
    int,
    PlainValidator(_error),
    PlainSerializer(lambda ppb: show(ppb, SHARE), return_type=str),
    ValueKind("percentage", "ppb", _ERROR.schema()),
]
Shift = Annotated[
    int | str,
    *integer_or(
        "kernel", 5, 15, "\"kernel\" (mac80211's own, 7) or a whole number from 5 to 15 (10: the papers' 1 ms)"
    ),
]
Subframes = Annotated[int, *integer(1, 256, "subframes")]
AirTime = Annotated[int, *integer(100, 5484, "microseconds", "us")]
Depth = Annotated[int, *integer(1, 8, "aggregates")]
Threshold = Annotated[int, *integer(0, 65535, "bytes", "B")]
Mitigation = Annotated[int, *integer(0, 100_000, "microseconds", "us")]
BeaconInterval = Annotated[int, *integer(15, 10_000, "units of 1024 us", "1024 us")]
Count = Annotated[int, *integer(0, STATIONS_MAX, "stations")]
Traffic = Annotated[
    Literal["none", "upload", "download", "both"], *choice(("none", "upload", "download", "both"), "Traffic")
]
Toggle = Annotated[bool, *SWITCH]


class Station(TomlTable):
    """A station of the cell, and the differences of its link to the access point."""

    at: End = Field(description="The device.")
    mcs: Mcs | None = Field(default=None, description="MCS of its link, in both directions. Default: the cell's.")
    streams: SpatialStreams | None = Field(
        default=None, description="Spatial streams of its link, at most the cell's. Default: the cell's."
    )
    snr: Db | None = Field(default=None, description="SNR of its link, in both directions. Default: the cell's.")
    error: ErrorShare | None = Field(
        default=None, description="Error share of its link, in both directions. Default: the cell's."
    )


class Others(TomlTable):
    """More stations, added as hosts named `other1`, `other2`, …, and their traffic with `test.server`."""

    count: Count = Field(default=0, description="How many.")
    traffic: Traffic = Field(
        default="upload", description="Direction of each station's one flow, which lasts as long as the test's flows."
    )
    mcs: Mcs | None = Field(default=None, description="MCS of their links. Default: the cell's.")
    streams: SpatialStreams | None = Field(
        default=None, description="Spatial streams of their links. Default: the cell's."
    )
    snr: Db | None = Field(default=None, description="SNR of their links. Default: the cell's.")
    error: ErrorShare | None = Field(default=None, description="Error share of their links. Default: the cell's.")


class Wifi(TomlTable):
    """A cell: one channel, one access point, stations, all with one kind of chip."""

    ap: End = Field(description="The access point's device. Its node is a router or the server.")
    station: Rows[Station] = Field(description="The stations.")
    others: Others = Field(default=Others(), description="More stations that compete.")
    chip: Annotated[str, *choice(tuple(CHIPS), "A chip")] = Field(
        default="ath9k",
        description="Chip model, which decides how frames are queued, aggregated and retried: AR9580 (PCIe), AR9271"
        " (USB; kernels before 6.2), or a current chip with AQL.",
    )
    standard: Standards = Field(
        default="n", description="802.11n, ac or ax (single-user). ac and ax need the generic chip."
    )
    band: Band = Field(
        default="5GHz",
        description="Band: channel 36 at 5 GHz, or channel 1 at 2.4 GHz, where beacons and multicast have 1 Mbit/s."
        " SIFS is 16 us; at 2.4 GHz, 6 us of it are signal extension.",
    )
    width: Width = Field(default=40, description="Channel width.")
    streams: SpatialStreams = Field(default=1, description="Spatial streams.")
    guard: Guard = Field(default=400, description="Guard interval. 400ns or 800ns; with ax, 800ns or 3200ns.")
    mcs: Mcs = Field(
        default=7,
        description="MCS per stream, counted as in ac and ax, or \"minstrel\" for the kernel's rate control. 802.11n's"
        " index is this + 8 (streams - 1).",
    )
    snr: Db | None = Field(
        default=None,
        description="Signal-to-noise ratio, which decides each MPDU's error probability. Default: see `error`.",
    )
    error: ErrorShare = Field(default=0, description="Share of MPDUs lost, drawn independently.")
    collisions: Toggle = Field(
        default=True,
        description="Whether transmissions that begin in the same slot collide. Otherwise one, drawn at random,"
        " proceeds.",
    )
    pacing_shift: Shift = Field(
        default="kernel",
        description="TCP Small Queues and GSO autosizing on these radios: 2^-shift s of data at the pacing rate."
        ' "kernel": mac80211\'s 7, about 8 ms. 10: 1 ms, as on Ethernet and in the papers.'
        " `stack.tsq` and `stack.gso` take precedence.",
    )
    fairness: Toggle = Field(
        default=True, description="Whether the driver reports air time, from which mac80211 schedules stations fairly."
    )
    aql: Toggle | None = Field(
        default=None,
        description="Airtime queue limits (AQL): mac80211 holds back packets of a station that has 12 ms of air time"
        " below mac80211, or 5 ms if the radio has 24 ms. Default: on for the generic chip, off for the others.",
    )
    max_subframes: Subframes | None = Field(
        default=None,
        description="Maximum MPDUs per aggregate. Default: 32 (ath9k), 17 (ath9k_htc), 64 (generic) or 256 (generic"
        " with ax).",
    )
    max_airtime: AirTime | None = Field(
        default=None, description="Maximum duration of an aggregate's PPDU. Default: 4096 (ath9k), or 802.11's 5484."
    )
    depth: Depth | None = Field(
        default=None, description="Aggregates queued in the hardware. Default: 2 (ath9k), else 1."
    )
    rts: Threshold = Field(default=0, description="PPDUs longer than this are preceded by RTS/CTS. 0: never.")
    rx_usecs: Mitigation | None = Field(
        default=None,
        description="Delay of the receive interrupt after the last frame. Default: 500 (ath9k), 250 (ath9k_htc), 0"
        " (generic).",
    )
    rx_usecs_first: Mitigation | None = Field(
        default=None,
        description="Maximum delay of the receive interrupt after the first frame. Default: 2000 (ath9k), 700"
        " (ath9k_htc), 0 (generic).",
    )
    beacon_interval: BeaconInterval = Field(default=100, description="Time between beacons, in 802.11 time units.")


_CARRIERS = {"n": {20: 52, 40: 108}, "ac": {20: 52, 40: 108, 80: 234}, "ax": {20: 234, 40: 468, 80: 980}}
"""Data subcarriers (802.11-2020, tables 19-6 and 21-5; 802.11ax-2021, table 27-16)."""

_SYMBOL_NS = {"n": 3200, "ac": 3200, "ax": 12800}
_BITS = tuple(Fraction(text) for text in ["1/2", "1", "3/2", "2", "3", "4", "9/2", "5", "6", "20/3", "15/2", "25/3"])
"""Data bits of a subcarrier and symbol, by MCS."""


def link_rate(cell: Wifi, station: Station | None = None) -> tuple[int | str, int]:
    """Return MCS per stream and streams of a station's link, or the cell's."""
    mcs = cell.mcs if station is None or station.mcs is None else station.mcs
    return mcs, cell.streams if station is None or station.streams is None else station.streams


def radio_bps(cell: Wifi, station: Station | None = None) -> int:
    """Return the PHY rate of the cell's MCS or of a station's, in bit/s, rounded down. Under rate control: of the
    highest MCS."""
    rate_index, streams = link_rate(cell, station)
    mcs = rate_index if isinstance(rate_index, int) else STANDARDS[cell.standard].mcs
    bits = _CARRIERS[cell.standard][cell.width] * _BITS[mcs] * streams
    return int(bits * 10**9 / (_SYMBOL_NS[cell.standard] + cell.guard))
