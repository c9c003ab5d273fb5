# SPDX-License-Identifier: Apache-2.0
"""The testbed in words, as the streams' paths have it: what joins two devices, and what each device does to packets.
What no stream passes is not told. `topology` draws it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hourglass.contract.plan import Hop, Path
from hourglass.results.flat import Key
from hourglass.results.lint.subject import ms_text, rate_text

NO_QUEUE = "noqueue"
Settings = Mapping[Key, Any]


@dataclass(frozen=True)
class Edge:
    """What joins two devices: the hop away from the client and, where a stream takes it, the one back."""

    there: Hop
    back: Hop | None

    @property
    def ends(self) -> tuple[str, str]:
        return self.there.node, self.there.to_node

    @property
    def air(self) -> bool:
        return self.there.medium == "air"


def edges(paths: Sequence[Path]) -> list[Edge]:
    """Each pair of devices that some path passes, once."""
    hops = {devices(hop): hop for path in paths for hop in (*path.there, *path.back)}
    found: dict[frozenset[str], Edge] = {}
    for (start, end), hop in hops.items():
        found.setdefault(frozenset((start, end)), Edge(hop, hops.get((end, start))))
    return list(found.values())


def devices(hop: Hop) -> tuple[str, str]:
    """Both ends, as "node:device"."""
    return f"{hop.node}:{hop.device}", f"{hop.to_node}:{hop.to_device}"


def words(edge: Edge, settings: Settings, left: str) -> list[str]:
    """What an edge is, a line each: of a cable rate and delay, of the air standard and rate; then impairments. Where
    directions differ, the one away from node `left` comes first."""
    there, back = edge.there, edge.back or edge.there
    if there.node != left:
        there, back = back, there
    rates = _both(*(rate_text(hop.line_bps) for hop in (there, back)))
    lines = [*_radio(edge.there, settings, rates)] if edge.air else [rates]
    if there.delay_ns or back.delay_ns:
        lines.append(f"delay {_both(*(ms_text(hop.delay_ns) for hop in (there, back)))}")
    return lines + list(dict.fromkeys((*there.impairments, *back.impairments)))


def _radio(hop: Hop, settings: Settings, rates: str) -> Iterator[str]:
    """ "802.11n, 5 GHz, 20 MHz", "2 streams, MCS 7: 144 Mbit/s"."""
    cell = tuple(hop.origin.split("."))
    known = {key[len(cell) :]: value for key, value in settings.items() if key[: len(cell)] == cell}
    if ("standard",) not in known:
        yield f"Wi-Fi {rates}"
        return
    band = str(known.get(("band",), "")).replace("GHz", " GHz")
    yield ", ".join(filter(None, [f"802.11{known['standard',]}", band, f"{known.get(('width',))} MHz"]))
    streams = known.get(("streams",))
    mcs = next((known[*key[:-1], "mcs"] for key, at in known.items() if key[-1] == "at" and at in devices(hop)
                and known.get((*key[:-1], "mcs")) is not None), known.get(("mcs",)))  # fmt: skip
    how = f"MCS {mcs}" if isinstance(mcs, int) else f"{mcs}, up to"
    yield f"{streams} stream{'s' if streams != 1 else ''}, {how}{':' if isinstance(mcs, int) else ''} {rates}"


def _both(there: str, back: str) -> str:
    """A value, or those of the two directions."""
    return there if there == back else f"{there} \u2192 \u2190 {back}"


def queueing(node: str, paths: Sequence[Path]) -> list[str]:
    """Shaper and qdisc of each device of a node by which packets leave, and the qdisc of what arrives, a line each;
    without the devices' names where all have the same."""
    hops = [hop for path in paths for hop in (*path.there, *path.back)]
    found = {hop.device: _queue(hop) for hop in hops if hop.node == node}
    arriving = {hop.to_device: hop.ingress.split()[0] for hop in hops if hop.to_node == node and hop.ingress}
    lines = [f"{device}: {text}" for device, text in found.items() if text]
    if len(set(found.values())) == 1:
        lines = [text for text in [next(iter(found.values()))] if text]
    return lines + [f"into {device}: {kind}" for device, kind in arriving.items()]


def _queue(hop: Hop) -> str:
    shaper = f"HTB {rate_text(hop.shaper_bps)}" if hop.shaper_bps else ""
    qdisc = "" if hop.qdisc.split()[:1] in ([], [NO_QUEUE]) else hop.qdisc.split()[0]
    return ", ".join(filter(None, [shaper, qdisc]))


def facts(paths: Sequence[Path], settings: Settings) -> Iterator[tuple[str, str]]:
    """Every edge: its ends, and its words."""
    for edge in edges(paths):
        near, far = edge.ends
        yield f"{near} \u2013 {far}{' (Wi-Fi)' if edge.air else ''}", ", ".join(words(edge, settings, near))
