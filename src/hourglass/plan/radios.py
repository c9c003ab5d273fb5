# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi: the steps that make radios, start an access point with hostapd and join its stations with `iw`.

    phy line → wiphy with a device → iw: both into the node → hostapd → ip: up, addresses → iw connect → ping

The network is open: keys would need a cipher, and no measurement here needs one. Everything is done before test time 0.
Block-ack sessions start with the first data.
"""

from collections.abc import Iterator

from hourglass.contract.plan import DaemonStep, IwStep, PlanRadio, Step, TellStep, WriteStep
from hourglass.plan.links import change
from hourglass.plan.network import Network
from hourglass.plan.port import Port
from hourglass.plan.seeds import radio_seed
from hourglass.scenario import Scenario, Station, Testbed, Wifi
from hourglass.scenario.lan import BRIDGE
from hourglass.scenario.wifi import CHANNELS, CHIPS, PPB_PER_PPM, STANDARDS, link_rate

DRIVER = "/proc/hourglass/radio"
NEW_DEVICE = "wlan0"
"""The device that mac80211 makes with a radio, in the first namespace, where no other exists at that moment."""

READY = "AP-ENABLED"
"""hostapd's output when it sends beacons."""

CONNECTED = "connected to"
"""The output of `iw connect -w` on success."""

AP_NS = 10 * 10**9
"""Timeout of hostapd: it first listens for neighbours on a 40 MHz channel, 0.2 s."""

JOIN_NS = 10 * 10**9
"""Timeout of a station: a scan of one channel, authentication, association; 50 ms without losses."""

IW_NS = 10**9
"""Timeout of an `iw` that does not wait."""

SWITCHED = "AP-CSA-FINISHED"
"""hostapd's output when it sends on another channel."""

SWITCH_BEACONS = 5
"""Beacon intervals for which a new channel is announced, including the current one."""

_HALVES = {80: (42, 1)}
"""Width → hostapd's centre channel and its number for the width."""

_HARDWARE = {
    "max_subframes": "max_subframes",
    "max_airtime": "max_airtime_us",
    "depth": "depth",
    "rts": "rts_bytes",
    "rx_usecs": "rx_last_us",
    "rx_usecs_first": "rx_first_us",
}
"""Scenario's key → the driver's."""


def radios(network: Network) -> list[PlanRadio]:
    """Return every radio, in the order in which they are made."""
    ports = [port for node in network.nodes for port in network.radios(node)]
    return [PlanRadio(phy=phy(network, port), node=port.node, device=port.device, address=port.mac) for port in ports]


def phy(network: Network, port: Port) -> str:
    """Return the driver's name for a radio: cell 0's access point is c0ap, its first station c0s1."""
    cell = network.cell(port)
    return f"c{cell}s{port.side}" if port.side else f"c{cell}ap"


def ssid(cell: int) -> str:
    """Return the name of the cell's network."""
    return f"hourglass-{cell}"


def switching(scenario: Scenario) -> bool:
    """Return true if an access point changes its channel."""
    return any(event.channel is not None for event in scenario.event)


def make(testbed: Testbed, seed: int, network: Network, node: str, switching: bool) -> Iterator[Step]:
    """Yield the steps for the node's radios as its devices, and for a running access point. `switching`: some change
    their channel."""
    for port in network.radios(node):
        name, index = phy(network, port), network.cell(port)
        cell, key = testbed.wifi[index], f"testbed.wifi.{index}"
        line = f"phy {name} {_settings(cell, seed, port, index)}{' csa=1' * switching}"
        yield WriteStep(do="write", node=None, path=DRIVER, value=line, origin=key)
        if port.device != NEW_DEVICE:
            yield change(None, NEW_DEVICE, key, name=port.device)
        # In the first namespace: iw reads the names of radios from its sysfs.
        args = ["phy", name, "set", "netns", "name", node]
        yield IwStep(do="iw", node=None, args=args, says=None, timeout_ns=IW_NS, origin=key)
        if port.side == 0:
            yield access_point(testbed, network, port, f"{key}.ap", switching)


def access_point(testbed: Testbed, network: Network, port: Port, origin: str, switching: bool) -> DaemonStep:
    """Return the step of hostapd, which replaces a running one. `switching`: it listens to `switch`."""
    index, bridged = network.cell(port), port.node in network.lans.switches
    return DaemonStep(
        do="daemon",
        node=port.node,
        tool="hostapd",
        config=hostapd(testbed.wifi[index], port.device, index, switching, bridged),
        ready=READY,
        timeout_ns=AP_NS,
        origin=origin,
    )


def join(testbed: Testbed, network: Network) -> Iterator[Step]:
    """Yield the steps by which each station finds its access point and associates."""
    for index, members in enumerate(network.cells):
        for port in members[1:]:
            yield connect(testbed, index, port, f"testbed.wifi.{index}.station.{port.side - 1}")


def connect(testbed: Testbed, index: int, port: Port, origin: str, channel: int | None = None) -> IwStep:
    """Yield the steps by which a station of cell `index` finds its access point, on `channel` or the initial one,
    and associates."""
    band = testbed.wifi[index].band
    frequency = str(_mhz(band, channel or CHANNELS[band][0]))
    args = ["dev", port.device, "connect", "-w", ssid(index), frequency]
    return IwStep(do="iw", node=port.node, args=args, says=CONNECTED, timeout_ns=JOIN_NS, origin=origin)


def disconnect(port: Port, origin: str) -> IwStep:
    """Yield the step by which a station leaves its access point; a station without one does nothing."""
    args = ["dev", port.device, "disconnect"]
    return IwStep(do="iw", node=port.node, args=args, says=None, timeout_ns=IW_NS, origin=origin)


def switch(cell: Wifi, port: Port, index: int, channel: int, origin: str) -> TellStep:
    """Yield the steps by which the access point changes its channel, announced in its beacons before. From channel and
    width, hostapd needs the position of the second half, and the centre in MHz."""
    first = _mhz(cell.band, channel)
    arguments = [f"CHAN_SWITCH {SWITCH_BEACONS} {first}"]
    above = channel <= 7 if cell.band == "2.4GHz" else channel % 8 == 4
    if cell.width > 20:
        centre = first + (10 if above else -10)
        if cell.width == 80:
            centre = _mhz(cell.band, 42 if channel < 52 else 58)
        arguments.append(f"sec_channel_offset={1 if above else -1} center_freq1={centre}")
    arguments.append(f"bandwidth={cell.width} ht")
    if cell.band == "5GHz":
        arguments += {"n": [], "ac": ["vht"], "ax": ["vht", "he"]}[cell.standard]
    return TellStep(
        do="tell",
        node=port.node,
        tool="hostapd",
        socket=f"{_control(index)}/{port.device}",
        line=" ".join(arguments),
        says=SWITCHED,
        timeout_ns=AP_NS,
        origin=origin,
    )


def _mhz(band: str, channel: int) -> int:
    return (2407 if band == "2.4GHz" else 5000) + 5 * channel


def _control(index: int) -> str:
    """Return the folder of a cell's control socket: nodes share their files."""
    return f"/run/hostapd-control-{index}"


def _settings(cell: Wifi, seed: int, port: Port, index: int) -> str:
    """Return the driver's words for a radio: the cell's, and its link's. An access point has the highest MCS of its
    links: the driver sends at the lower MCS of two ends."""
    settings: dict[str, object] = {
        "medium": index,
        "chip": cell.chip,
        "addr": port.mac,
        "standard": cell.standard,
        "band": int(float(cell.band[:-3])),
        "width": cell.width,
        "streams": link_rate(cell, _station(cell, port))[1],
        "sgi": int(cell.guard == min(STANDARDS[cell.standard].guards)),
        **_link(cell, _station(cell, port)),
        "seed": radio_seed(seed, port.link, port.side),
        "collide": int(cell.collisions),
        "fair": int(cell.fairness),
    }
    if cell.pacing_shift != "kernel":
        settings["pacing_shift"] = cell.pacing_shift
    if cell.aql != CHIPS[cell.chip].aql:
        settings["aql"] = int(bool(cell.aql))
    settings |= {driver_key: getattr(cell, key) for key, driver_key in _HARDWARE.items()}
    return " ".join(f"{key}={value}" for key, value in settings.items())


def _station(cell: Wifi, port: Port) -> Station | None:
    """Return the station of a radio; None for the access point's."""
    return cell.station[port.side - 1] if port.side else None


def _link(cell: Wifi, station: Station | None) -> dict[str, object]:
    """Return rate and errors of a radio's link. A station's SNR or error replaces both of the cell's."""
    mcs, streams = link_rate(cell, station)
    if station is None:
        choices = [mcs, *(link_rate(cell, member)[0] for member in cell.station)]
        numbers = [choice for choice in choices if isinstance(choice, int)]
        mcs = max(numbers) if len(numbers) == len(choices) else "minstrel"
    quality: Wifi | Station = cell
    if station is not None and (station.snr is not None or station.error is not None):
        quality = station
    if cell.standard == "n" and isinstance(mcs, int):
        mcs += 8 * (streams - 1)
    settings: dict[str, object] = {"mcs": mcs}
    if quality.snr is not None:
        settings["snr_cdb"] = 100 * quality.snr
    elif quality.error:
        settings["per_ppm"] = quality.error // PPB_PER_PPM
    return settings


def hostapd(cell: Wifi, device: str, index: int, switching: bool, bridged: bool) -> str:
    """Return hostapd's configuration: an open network with WMM, otherwise hostapd's defaults. `bridged`: the node is a
    switch."""
    lines = [
        f"interface={device}",
        *[f"bridge={BRIDGE}"] * bridged,
        "driver=nl80211",
        *[f"ctrl_interface={_control(index)}"] * switching,  # otherwise hostapd draws a random number
        f"ssid={ssid(index)}",
        f"hw_mode={'a' if cell.band == '5GHz' else 'g'}",
        f"channel={CHANNELS[cell.band][0]}",
        f"beacon_int={cell.beacon_interval}",
        "wmm_enabled=1",
        "ieee80211n=1",
        *_capabilities(cell),
    ]
    return "\n".join(lines) + "\n"


def _capabilities(cell: Wifi) -> Iterator[str]:
    short, wide = cell.guard == 400, cell.width > 20
    flags = ["[HT40+]"] * wide + ["[SHORT-GI-20]"] * short + ["[SHORT-GI-40]"] * (short and wide)
    yield f"ht_capab={''.join(flags)}"
    centre, width = _HALVES.get(cell.width, (0, 0))
    if cell.standard != "n" and cell.band == "5GHz":
        yield "ieee80211ac=1"
        yield from _wide("vht", centre, width)
        # Without a length hostapd announces aggregates of at most 8 KB for any chip. It takes 802.11ax's
        # exponent from the driver.
        yield f"vht_capab=[MAX-A-MPDU-LEN-EXP7]{'[SHORT-GI-80]' * bool(short and centre)}"
    if cell.standard == "ax":
        yield "ieee80211ax=1"
        yield from _wide("he", centre, width)


def _wide(prefix: str, centre: int, width: int) -> Iterator[str]:
    if centre:
        yield f"{prefix}_oper_chwidth={width}"
        yield f"{prefix}_oper_centr_freq_seg0_idx={centre}"
