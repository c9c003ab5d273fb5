# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi: the steps that make radios, start an access point with hostapd and join its stations with `iw`.

    phy line → wiphy with a device → iw: both into the node → hostapd → ip: up, addresses → iw connect → ping

An open network: keys would need a cipher, and what is measured here does not. Everything is done before test time 0;
block-ack sessions come up with the first data.
"""

from collections.abc import Iterator

from hourglass.contract.plan import BatchStep, DaemonStep, IwStep, Radio, Step, TellStep, WriteStep
from hourglass.plan.links import mac
from hourglass.plan.network import Network, Port
from hourglass.plan.seeds import radio_seed
from hourglass.scenario import Scenario, Station, Testbed, Wifi
from hourglass.scenario.wifi import CHANNELS, PPB_PER_PPM, STANDARDS

DRIVER = "/proc/hourglass/radio"
FRESH = "wlan0"
"""The device mac80211 makes with a radio, in the first namespace, where there is no other at that moment."""

READY = "AP-ENABLED"
"""What hostapd says when it sends beacons."""

CONNECTED = "connected to"
"""What `iw connect -w` says of a success."""

AP_NS = 10 * 10**9
"""Patience with hostapd: it listens for neighbours on a 40 MHz channel first, 0.2 s."""

JOIN_NS = 10 * 10**9
"""Patience with a station: a scan of one channel, authentication, association; 50 ms without losses."""

IW_NS = 10**9
"""Patience with an `iw` that waits for nothing."""

SWITCHED = "AP-CSA-FINISHED"
"""What hostapd says when it sends on another channel."""

SWITCH_BEACONS = 5
"""Intervals of beacons that another channel is announced before, the running one counted."""

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


def radios(network: Network) -> list[Radio]:
    """Every radio, in the order in which they are made."""
    ports = [port for node in network.nodes for port in network.radios(node)]
    return [Radio(phy=phy(network, port), node=port.node, device=port.device, address=mac(port)) for port in ports]


def phy(network: Network, port: Port) -> str:
    """The driver's name for a radio: cell 0's access point is c0ap, its first station c0s1."""
    cell = network.cell(port)
    return f"c{cell}s{port.side}" if port.side else f"c{cell}ap"


def ssid(cell: int) -> str:
    """The cell's network."""
    return f"hourglass-{cell}"


def switching(scenario: Scenario) -> bool:
    """Whether some access point changes its channel."""
    return any(event.channel is not None for event in scenario.event)


def make(testbed: Testbed, seed: int, network: Network, node: str, switching: bool) -> Iterator[Step]:
    """The node's radios as devices of its own, and an access point at work. `switching`: some change their channel."""
    for port in network.radios(node):
        name, index = phy(network, port), network.cell(port)
        cell, key = testbed.wifi[index], f"testbed.wifi.{index}"
        line = f"phy {name} {_settings(cell, seed, port, index)}{' csa=1' * switching}"
        yield WriteStep(do="write", node=None, path=DRIVER, value=line, origin=key)
        if port.device != FRESH:
            rename = f"link set dev {FRESH} name {port.device}"
            yield BatchStep(do="ip", node=None, lines=[rename], origin=key)
        # In the first namespace: sysfs, where iw looks for the names of radios, is that one's.
        args = ["phy", name, "set", "netns", "name", node]
        yield IwStep(do="iw", node=None, args=args, says=None, timeout_ns=IW_NS, origin=key)
        if port.side == 0:
            yield access_point(cell, port, index, f"{key}.ap", switching)


def access_point(cell: Wifi, port: Port, index: int, origin: str, switching: bool) -> DaemonStep:
    """hostapd, anew where it runs already. `switching`: it has to listen to `switch`."""
    return DaemonStep(
        do="daemon",
        node=port.node,
        tool="hostapd",
        config=hostapd(cell, port.device, index, switching),
        ready=READY,
        timeout_ns=AP_NS,
        origin=origin,
    )


def join(testbed: Testbed, network: Network) -> Iterator[Step]:
    """Each station finds its access point and associates."""
    for index, members in enumerate(network.cells):
        for port in members[1:]:
            yield connect(testbed, index, port, f"testbed.wifi.{index}.station.{port.side - 1}")


def connect(testbed: Testbed, index: int, port: Port, origin: str, channel: int | None = None) -> IwStep:
    """A station of cell `index` finds its access point, on `channel` or where it began, and associates."""
    band = testbed.wifi[index].band
    frequency = str(_mhz(band, channel or CHANNELS[band][0]))
    args = ["dev", port.device, "connect", "-w", ssid(index), frequency]
    return IwStep(do="iw", node=port.node, args=args, says=CONNECTED, timeout_ns=JOIN_NS, origin=origin)


def disconnect(port: Port, origin: str) -> IwStep:
    """A station leaves its access point; one that has none does nothing."""
    args = ["dev", port.device, "disconnect"]
    return IwStep(do="iw", node=port.node, args=args, says=None, timeout_ns=IW_NS, origin=origin)


def switch(cell: Wifi, port: Port, index: int, channel: int, origin: str) -> TellStep:
    """The access point goes to another channel, and says so in its beacons before. hostapd is told all that follows
    from the channel and the cell's width: where the second half is, and the centre, in MHz."""
    first = _mhz(cell.band, channel)
    words = [f"CHAN_SWITCH {SWITCH_BEACONS} {first}"]
    above = channel <= 7 if cell.band == "2.4GHz" else channel % 8 == 4
    if cell.width > 20:
        centre = first + (10 if above else -10)
        if cell.width == 80:
            centre = _mhz(cell.band, 42 if channel < 52 else 58)
        words.append(f"sec_channel_offset={1 if above else -1} center_freq1={centre}")
    words.append(f"bandwidth={cell.width} ht")
    if cell.band == "5GHz":
        words += {"n": [], "ac": ["vht"], "ax": ["vht", "he"]}[cell.standard]
    return TellStep(
        do="tell",
        node=port.node,
        tool="hostapd",
        socket=f"{_control(index)}/{port.device}",
        line=" ".join(words),
        says=SWITCHED,
        timeout_ns=AP_NS,
        origin=origin,
    )


def _mhz(band: str, channel: int) -> int:
    return (2407 if band == "2.4GHz" else 5000) + 5 * channel


def _control(index: int) -> str:
    """The folder of a cell's control socket: nodes share their files."""
    return f"/run/hostapd-control-{index}"


def _settings(cell: Wifi, seed: int, port: Port, index: int) -> str:
    """The driver's words for a radio: the cell's, and its link's. An access point has the cell's."""
    words: dict[str, object] = {
        "medium": index,
        "chip": cell.chip,
        "addr": mac(port),
        "standard": cell.standard,
        "band": int(float(cell.band[:-3])),
        "width": cell.width,
        "streams": cell.streams,
        "sgi": int(cell.guard == min(STANDARDS[cell.standard].guards)),
        **_link(cell, cell.station[port.side - 1] if port.side else None),
        "seed": radio_seed(seed, port.link, port.side),
        "collide": int(cell.collisions),
        "fair": int(cell.fairness),
    }
    if cell.pacing_shift != "kernel":
        words["pacing_shift"] = cell.pacing_shift
    words |= {theirs: getattr(cell, ours) for ours, theirs in _HARDWARE.items()}
    return " ".join(f"{key}={value}" for key, value in words.items())


def _link(cell: Wifi, station: Station | None) -> dict[str, object]:
    """Rate and errors of a radio's link. A station's own SNR or error stands in the place of either of the cell's."""
    mcs = cell.mcs if station is None or station.mcs is None else station.mcs
    quality: Wifi | Station = cell
    if station is not None and (station.snr is not None or station.error is not None):
        quality = station
    if cell.standard == "n" and isinstance(mcs, int):
        mcs += 8 * (cell.streams - 1)
    words: dict[str, object] = {"mcs": mcs}
    if quality.snr is not None:
        words["snr_cdb"] = 100 * quality.snr
    elif quality.error:
        words["per_ppm"] = quality.error // PPB_PER_PPM
    return words


def hostapd(cell: Wifi, device: str, index: int, switching: bool) -> str:
    """hostapd's configuration: an open network with WMM, hostapd's own defaults for whatever is not said."""
    lines = [
        f"interface={device}",
        "driver=nl80211",
        *[f"ctrl_interface={_control(index)}"] * switching,  # with it hostapd draws a random number
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
        # Without a length hostapd announces aggregates of 8 KB at most, whatever the chip can (802.11ax's own
        # exponent it takes from the driver).
        yield f"vht_capab=[MAX-A-MPDU-LEN-EXP7]{'[SHORT-GI-80]' * bool(short and centre)}"
    if cell.standard == "ax":
        yield "ieee80211ax=1"
        yield from _wide("he", centre, width)


def _wide(prefix: str, centre: int, width: int) -> Iterator[str]:
    if centre:
        yield f"{prefix}_oper_chwidth={width}"
        yield f"{prefix}_oper_centr_freq_seg0_idx={centre}"
