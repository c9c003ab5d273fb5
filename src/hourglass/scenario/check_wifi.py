# SPDX-License-Identifier: Apache-2.0
"""What no single value of a Wi-Fi cell shows: that its chip can do what is asked, that its devices are its own. Writes
out `others`, as nodes, stations and competing flows, and what is the chip's own."""

import re

from hourglass.scenario.blame import refusal
from hourglass.scenario.model import Scenario
from hourglass.scenario.test import Competing, Test
from hourglass.scenario.testbed import Node, Testbed
from hourglass.scenario.units import TIME, show
from hourglass.scenario.values import Place
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
"""mac80211 queues above every driver since 6.2 (c850e31f79f0): ath9k_htc's way without a TXQ is gone."""

DEVICE = "wlan0"
"""Of the stations that `others` makes."""


def write_out(scenario: Scenario) -> Scenario:
    """The scenario with `others` of each cell as nodes, stations and competing flows, and its chip's own values."""
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


def _free_names(taken: list[str], count: int) -> list[str]:
    """other1, other2, … without those that are nodes already."""
    numbers = (f"other{number}" for number in range(1, len(taken) + count + 1))
    return [name for name in numbers if name not in taken][:count]


def _with(cell: Wifi, names: list[str]) -> Wifi:
    others = cell.others
    theirs = {"mcs": others.mcs, "snr": others.snr, "error": others.error}  # checked values, not what a file says
    made = [Station(at=Place(name, DEVICE)).model_copy(update=theirs) for name in names]
    return cell.model_copy(update={"station": (*cell.station, *made), "others": Others()})


def _complete(cell: Wifi) -> Wifi:
    """With the chip's own values where none are given."""
    own = CHIPS[cell.chip].defaults(cell.standard)
    return cell.model_copy(update={key: value for key, value in own.items() if getattr(cell, key) is None})


def _flows(name: str, traffic: str) -> list[Competing]:
    up, down = int(traffic in ("upload", "both")), int(traffic in ("download", "both"))
    return [Competing(client=name, upload_streams=up, download_streams=down)] if up or down else []


def check(testbed: Testbed, kernel: str) -> None:
    """Raises InputError where chip, standard, channel and link do not go together."""
    if len(testbed.wifi) > CELLS_MAX:
        raise refusal("testbed.wifi", f"{len(testbed.wifi)} cells", f"at most {CELLS_MAX} cells")
    for index, cell in enumerate(testbed.wifi):
        key = f"testbed.wifi.{index}"
        _check_count(key, cell)
        _check_chip(key, cell, kernel)
        _check_channel(key, cell)
        _check_link(key, cell, cell)
        for number, station in enumerate(cell.station):
            _check_link(f"{key}.station.{number}", station, cell)


def check_access_points(testbed: Testbed, test: Test) -> None:
    """A host forwards nothing: a cell's access point on one is of use where it is an end of the test itself."""
    hosts = {node.name for node in testbed.node if node.role == "host"}
    ends = {test.client, test.server, *(test.hosts or ())}
    for index, cell in enumerate(testbed.wifi):
        if cell.ap.node in hosts - ends:
            why = f'its node is a host, which forwards nothing: give {cell.ap.node} role = "router"'
            raise refusal(f"testbed.wifi.{index}.ap", str(cell.ap), f"{why}, or make it test.server")


def devices(testbed: Testbed) -> list[tuple[str, Place]]:
    """(key, device) of every radio."""
    return [
        (f"testbed.wifi.{index}.{key}", place)
        for index, cell in enumerate(testbed.wifi)
        for key, place in [("ap", cell.ap), *((f"station.{n}.at", one.at) for n, one in enumerate(cell.station))]
    ]


def _check_count(key: str, cell: Wifi) -> None:
    if not 1 <= len(cell.station) <= STATIONS_MAX:
        raise refusal(f"{key}.station", [str(one.at) for one in cell.station], f"1 to {STATIONS_MAX} stations")


def _check_chip(key: str, cell: Wifi, kernel: str) -> None:
    chip = CHIPS[cell.chip]
    version = re.match(r"(\d+)\.(\d+)", kernel)
    if not chip.txq and version and (int(version[1]), int(version[2])) > LAST_WITHOUT_TXQ:
        why = (
            f"not on kernel {kernel}: since 6.2 mac80211 queues above every driver, and what {cell.chip} shows is the"
            " qdisc above a driver without such queues; 5.10 and 6.1 have it"
        )
        raise refusal(f"{key}.chip", cell.chip, why)
    _check_one_of(f"{key}.standard", cell.standard, chip.standards, cell.chip)
    _check_one_of(f"{key}.width", cell.width, chip.widths, cell.chip)
    _check_one_of(f"{key}.streams", cell.streams, tuple(range(1, chip.streams + 1)), cell.chip)


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
    """A station's own values go with the cell's others."""
    standard, mcs = STANDARDS[cell.standard], link.mcs
    if link.snr is not None and link.error:
        raise refusal(f"{key}.error", link.error, "goes without snr, which gives an error probability itself")
    if mcs == "minstrel" and cell.chip == "ath9k_htc":
        raise refusal(f"{key}.mcs", mcs, "ath9k_htc chooses rates in its firmware, which is not modelled: a number")
    if mcs == "minstrel" and cell.standard == "ax":
        raise refusal(f"{key}.mcs", mcs, "minstrel_ht knows no rate of 802.11ax: a number")
    if isinstance(mcs, int) and mcs > standard.mcs:
        raise refusal(f"{key}.mcs", mcs, f"802.11{cell.standard} has 0 to {standard.mcs} per stream")
    if cell.standard == "ac" and isinstance(mcs, int) and cell.streams in NO_VHT.get((cell.width, mcs), ()):
        raise refusal(f"{key}.mcs", mcs, f"802.11ac has no such rate at {cell.width} MHz with {cell.streams} streams")


def _check_one_of(key: str, value: object, allowed: tuple[object, ...], who: str) -> None:
    if value not in allowed:
        raise refusal(key, value, f"{who} has {', '.join(map(str, allowed))}")
