# SPDX-License-Identifier: Apache-2.0
"""Checks of Wi-Fi cells: that the chip supports the settings, that devices belong to one cell. Spells out `others`
as nodes, stations and competing flows, and fills in the chip's defaults."""

import re

from hourglass.scenario.blame import refusal
from hourglass.scenario.quantities import TIME, show
from hourglass.scenario.scenario_model import Scenario
from hourglass.scenario.test import Competing, Test
from hourglass.scenario.testbed import Node, Testbed
from hourglass.scenario.values import NodeDevice
from hourglass.scenario.wifi import (
    CELLS_MAX,
    CHIPS,
    NO_VHT,
    STANDARDS,
    STATIONS_MAX,
    Others,
    Station,
    Wifi,
)

LAST_WITHOUT_TXQ = (6, 1)
"""mac80211 queues above every driver since 6.2 (c850e31f79f0), so ath9k_htc no longer works without a TXQ."""

DEVICE = "wlan0"
"""The prefix of the stations that `others` makes."""


def write_out(scenario: Scenario) -> Scenario:
    """Return the scenario with `others` of each cell as nodes, stations and competing flows, and with its chip's
    defaults."""
    testbed, test = scenario.testbed, scenario.test
    nodes, competing, cells = list(testbed.node), list(test.competing), []
    for index, cell in enumerate(testbed.wifi):
        if len(cell.station) + cell.others.count > STATIONS_MAX:
            key = f"testbed.wifi.{index}.others.count"
            raise refusal(key, cell.others.count, f"a cell has at most {STATIONS_MAX} stations")
        names = _free_names([node.name for node in nodes], cell.others.count)
        nodes += [Node(name=name) for name in names]
        cells.append(_complete(_with(cell, names)))
        competing += [flow for name in names for flow in _flows(name, cell.others.traffic)]
    return scenario.model_copy(
        update={
            "testbed": testbed.model_copy(update={"node": tuple(nodes), "wifi": tuple(cells)}),
            "test": test.model_copy(update={"competing": tuple(competing)}),
        }
    )


def _free_names(used: list[str], count: int) -> list[str]:
    """Return other1, other2, …, without names of existing nodes."""
    numbers = (f"other{number}" for number in range(1, len(used) + count + 1))
    return [name for name in numbers if name not in used][:count]


def _with(cell: Wifi, names: list[str]) -> Wifi:
    settings = cell.others
    link_values = {
        "mcs": settings.mcs,
        "streams": settings.streams,
        "snr": settings.snr,
        "error": settings.error,
    }  # checked values, not what a file says
    stations = [Station(at=NodeDevice(name, DEVICE)).model_copy(update=link_values) for name in names]
    return cell.model_copy(update={"station": (*cell.station, *stations), "others": Others()})


def _complete(cell: Wifi) -> Wifi:
    """Return the cell with the chip's defaults filled in."""
    chip_values = CHIPS[cell.chip].defaults(cell.standard)
    return cell.model_copy(update={key: value for key, value in chip_values.items() if getattr(cell, key) is None})


def _flows(name: str, traffic: str) -> list[Competing]:
    uploads, downloads = int(traffic in ("upload", "both")), int(traffic in ("download", "both"))
    return [Competing(client=name, upload_streams=uploads, download_streams=downloads)] if uploads or downloads else []


def check(testbed: Testbed, kernel: str) -> None:
    """Check chip, standard, channel and link. Raises InputError."""
    if len(testbed.wifi) > CELLS_MAX:
        raise refusal("testbed.wifi", f"{len(testbed.wifi)} cells", f"at most {CELLS_MAX} cells")
    for index, cell in enumerate(testbed.wifi):
        key = f"testbed.wifi.{index}"
        _check_count(key, cell)
        _check_chip(key, cell, kernel)
        _check_aql(key, cell)
        _check_channel(key, cell)
        _check_link(key, cell, cell)
        for number, station in enumerate(cell.station):
            _check_link(f"{key}.station.{number}", station, cell)


def check_access_points(testbed: Testbed, test: Test) -> None:
    """Refuse an access point on a host, which forwards nothing, unless the host is an end of the test."""
    hosts = {node.name for node in testbed.node if node.role == "host"}
    ends = {test.client, test.server, *(test.hosts or ())}
    for index, cell in enumerate(testbed.wifi):
        if cell.ap.node in hosts - ends:
            reason = f'must be on a router, since a host forwards nothing; give {cell.ap.node} role = "router"'
            raise refusal(f"testbed.wifi.{index}.ap", str(cell.ap), f"{reason}, or make it test.server")


def devices(testbed: Testbed) -> list[tuple[str, NodeDevice]]:
    """Yield (key, device) of every radio."""
    return [
        (f"testbed.wifi.{index}.{key}", device)
        for index, cell in enumerate(testbed.wifi)
        for key, device in [
            ("ap", cell.ap),
            *((f"station.{n}.at", station.at) for n, station in enumerate(cell.station)),
        ]
    ]


def _check_count(key: str, cell: Wifi) -> None:
    if not 1 <= len(cell.station) <= STATIONS_MAX:
        raise refusal(
            f"{key}.station", [str(station.at) for station in cell.station], f"must be 1 to {STATIONS_MAX} stations"
        )


def _check_chip(key: str, cell: Wifi, kernel: str) -> None:
    chip = CHIPS[cell.chip]
    version = re.match(r"(\d+)\.(\d+)", kernel)
    if not chip.txq and version and (int(version[1]), int(version[2])) > LAST_WITHOUT_TXQ:
        reason = (
            f"does not exist on kernel {kernel}: since 6.2 mac80211 queues above every driver, and"
            f" {cell.chip} needs the qdisc above a driver without such queues; use 5.10 or 6.1"
        )
        raise refusal(f"{key}.chip", cell.chip, reason)
    _check_one_of(f"{key}.standard", cell.standard, chip.standards, cell.chip)
    _check_one_of(f"{key}.width", cell.width, chip.widths, cell.chip)
    _check_one_of(f"{key}.streams", cell.streams, tuple(range(1, chip.streams + 1)), cell.chip)


def _check_aql(key: str, cell: Wifi) -> None:
    """Refuse airtime queue limits above a chip that mac80211 does not queue for."""
    if cell.aql and not CHIPS[cell.chip].txq:
        raise refusal(f"{key}.aql", cell.aql, f"needs queues in mac80211, which {cell.chip} does not use")


def _check_channel(key: str, cell: Wifi) -> None:
    standard = STANDARDS[cell.standard]
    if cell.standard == "n":
        _check_one_of(f"{key}.width", cell.width, (20, 40), "802.11n")
    if cell.band == "2.4GHz":
        _check_one_of(f"{key}.standard", cell.standard, ("n", "ax"), "the 2.4 GHz band")
        _check_one_of(f"{key}.width", cell.width, (20, 40), "the 2.4 GHz band")
    if cell.guard not in standard.guards:
        allowed = ", ".join(show(ns, TIME) for ns in standard.guards)
        raise refusal(f"{key}.guard", show(cell.guard, TIME), f"802.11{cell.standard} has {allowed}")


def _check_link(key: str, link: Wifi | Station, cell: Wifi) -> None:
    """Check a station's link values together with those of the cell."""
    standard, mcs = STANDARDS[cell.standard], link.mcs
    if link.snr is not None and link.error:
        raise refusal(f"{key}.error", link.error, "cannot be combined with snr, which gives an error probability")
    if mcs == "minstrel" and cell.chip == "ath9k_htc":
        raise refusal(
            f"{key}.mcs", mcs, "must be a number: ath9k_htc chooses rates in its firmware, which is not modelled"
        )
    if mcs == "minstrel" and cell.standard == "ax":
        raise refusal(f"{key}.mcs", mcs, "must be a number: minstrel_ht knows no rates of 802.11ax")
    if isinstance(mcs, int) and mcs > standard.mcs:
        raise refusal(f"{key}.mcs", mcs, f"must be 0 to {standard.mcs} per stream in 802.11{cell.standard}")
    streams = link.streams or cell.streams
    if streams > cell.streams:
        raise refusal(f"{key}.streams", streams, f"must be at most the cell's streams, {cell.streams}")
    if cell.standard == "ac" and isinstance(mcs, int):
        for number in {streams, cell.streams} & NO_VHT.get((cell.width, mcs), set[int]()):
            raise refusal(f"{key}.mcs", mcs, f"is not a rate of 802.11ac at {cell.width} MHz with {number} streams")


def _check_one_of(key: str, value: object, allowed: tuple[object, ...], owner: str) -> None:
    if value not in allowed:
        raise refusal(key, value, f"{owner} has {', '.join(map(str, allowed))}")
