# SPDX-License-Identifier: Apache-2.0
"""Describes the testbed as text: the links between devices, and the queueing at each device. `topology` draws it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hourglass.contract.plan import Hop, Path
from hourglass.plan.paths import BLOCKED, neighbours
from hourglass.qdisc_line import DEFAULT_QDISC, QdiscLine
from hourglass.results.flat import Key
from hourglass.results.lint.context import ms_text, rate_text
from hourglass.results.recording import Recording
from hourglass.results.stats import short

NO_QUEUE = "noqueue"
SWITCH = "switch"
"""The role of a switch."""
MOST_LINKS = 64
"""The most links of a testbed that is drawn completely; for larger ones, only the streams' paths are drawn."""
Settings = Mapping[Key, Any]


@dataclass(frozen=True)
class Edge:
    """A link between two devices: the hop away from the client and, if a stream takes it, the hop back."""

    away: Hop
    back: Hop | None

    @property
    def ends(self) -> tuple[str, str]:
        return self.away.node, self.away.to_node

    @property
    def air(self) -> bool:
        return self.away.medium == "air"

    @property
    def blocked(self) -> bool:
        return BLOCKED in self.away.impairments


def testbed_paths(run: Recording) -> list[Path]:
    """Return the paths of the run's streams, then all links and cells as paths of one hop. Without a stored scenario,
    or with more than `MOST_LINKS` links, return only the streams' paths."""
    if run.scenario is None:
        return [*run.paths]
    all_links = neighbours(run.scenario.testbed, run.scenario.stack)
    return [*run.paths, *(all_links if len(all_links) <= MOST_LINKS else [])]


def edges(paths: Sequence[Path]) -> list[Edge]:
    """Return each pair of devices on any path, once."""
    hops = {devices(hop): hop for path in paths for hop in (*path.there, *path.back)}
    edge_of_ends: dict[frozenset[str], Edge] = {}
    for (start, end), hop in hops.items():
        edge_of_ends.setdefault(frozenset((start, end)), Edge(hop, hops.get((end, start))))
    return list(edge_of_ends.values())


def devices(hop: Hop) -> tuple[str, str]:
    """Return both ends as "node:device"."""
    return f"{hop.node}:{hop.device}", f"{hop.to_node}:{hop.to_device}"


def roles(settings: Settings) -> dict[str, str]:
    """Return the role of each node."""
    table = {key[:-1]: role for key, role in settings.items() if key[:2] == ("testbed", "node") and key[-1] == "role"}
    return {settings[*node, "name"]: role for node, role in table.items() if (*node, "name") in settings}


def edge_texts(
    edge: Edge, settings: Settings, left: str, rates_mbps: Mapping[str, float] = MappingProxyType({})
) -> list[str]:
    """Return the lines that describe an edge: rate, VLANs and delay of a cable, or standard and rate of the air,
    impairments, then the rates that it carried. If directions differ, the one away from node `left` comes first."""
    away, back = edge.away, edge.back or edge.away
    if away.node != left:
        away, back = back, away
    rates = _both_directions(*(rate_text(hop.line_bps) for hop in (away, back)))
    lines = [*_radio(edge.away, settings, rates)] if edge.air else [rates]
    lines += _vlans(settings.get((*away.origin.split("."), "vlan")))
    if away.delay_ns or back.delay_ns:
        lines.append(f"delay {_both_directions(*(ms_text(hop.delay_ns) for hop in (away, back)))}")
    lines += list(dict.fromkeys((*away.impairments, *back.impairments)))
    near, far = sorted(devices(edge.away), key=lambda end: not end.startswith(f"{left}:"))
    if near in rates_mbps or far in rates_mbps:
        carried = [short(rates_mbps[end]) if end in rates_mbps else "?" for end in (near, far)]
        lines.append(f"carried {_both_directions(*carried)} Mbit/s")
    return lines


def _radio(hop: Hop, settings: Settings, rates: str) -> Iterator[str]:
    """Yield the lines of a Wi-Fi link: "802.11n, 5 GHz, 20 MHz", "2 streams, MCS 7: 144 Mbit/s"."""
    cell = tuple(hop.origin.split("."))
    cell_settings = {key[len(cell) :]: value for key, value in settings.items() if key[: len(cell)] == cell}
    if ("standard",) not in cell_settings:
        yield f"Wi-Fi {rates}"
        return
    band = str(cell_settings.get(("band",), "")).replace("GHz", " GHz")
    yield ", ".join(filter(None, [f"802.11{cell_settings['standard',]}", band, f"{cell_settings.get(('width',))} MHz"]))
    rows = [key[:-1] for key, station in cell_settings.items() if key[-1] == "at" and station in devices(hop)]
    streams, mcs = (
        next((cell_settings[*row, name] for row in rows if cell_settings.get((*row, name)) is not None),
             cell_settings.get((name,)))
        for name in ("streams", "mcs")
    )  # fmt: skip
    rate_choice = f"MCS {mcs}" if isinstance(mcs, int) else f"{mcs}, up to"
    yield f"{streams} stream{'s' if streams != 1 else ''}, {rate_choice}{':' if isinstance(mcs, int) else ''} {rates}"


def _vlans(vlan: int | list[int] | None) -> Iterator[str]:
    """Yield the VLANs of a link: "VLAN 10", "VLANs 10, 20"."""
    if isinstance(vlan, list | tuple):
        yield f"VLAN{'s' if len(vlan) > 1 else ''} {', '.join(map(str, vlan))}{'' if len(vlan) > 1 else ' with tags'}"
    elif vlan is not None:
        yield f"VLAN {vlan}"


def _both_directions(away: str, back: str) -> str:
    """Return a value, or the values of both directions if they differ."""
    return away if away == back else f"{away} \u2192 \u2190 {back}"


def queueing(node: str, paths: Sequence[Path], role: str = "") -> list[str]:
    """Return a line for each sending device of a node with its shaper and qdisc, and for each ingress qdisc. Device
    names are omitted if all devices have the same queueing, and the default qdisc of a switch's ports."""
    hops = [hop for path in paths for hop in (*path.there, *path.back)]
    hidden = (NO_QUEUE, DEFAULT_QDISC) if role == SWITCH else (NO_QUEUE,)
    queue_of_device = {hop.device: _queue(hop, hidden) for hop in hops if hop.node == node}
    ingress_of_device = {
        hop.to_device: QdiscLine(hop.ingress).kind for hop in hops if hop.to_node == node and hop.ingress
    }
    lines = [f"{device}: {text}" for device, text in queue_of_device.items() if text]
    if len(set(queue_of_device.values())) == 1:
        lines = [text for text in [next(iter(queue_of_device.values()))] if text]
    return lines + [f"into {device}: {kind}" for device, kind in ingress_of_device.items()]


def _queue(hop: Hop, hidden: Sequence[str]) -> str:
    shaper = f"HTB {rate_text(hop.shaper_bps)}" if hop.shaper_bps else ""
    kind = QdiscLine(hop.qdisc).kind
    return ", ".join(filter(None, [shaper, "" if kind in hidden else kind]))


def facts(paths: Sequence[Path], settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (ends, description) of every edge."""
    for edge in edges(paths):
        near, far = edge.ends
        yield f"{near} \u2013 {far}{' (Wi-Fi)' if edge.air else ''}", ", ".join(edge_texts(edge, settings, near))
