# SPDX-License-Identifier: Apache-2.0
"""LANs: what switches join to one subnet, the VLANs of their ports, and the ways of frames through them.

A *segment* is a subnet: a cable between two hosts or routers, a cell, or all that switches join in one VLAN. A LAN is
what switches join, with all its VLANs.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from hourglass.plan.port import Port
from hourglass.plan.spanning_tree import BridgeId, TreeLink, cost, tree
from hourglass.scenario import Testbed
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.lan import DEFAULT_VLAN


class Membership(NamedTuple):
    """A VLAN of a switch's port. Frames on the link have a tag or not."""

    vlan: int
    tagged: bool


class Lans:
    """The switches of a testbed, what they join, and the links that carry frames."""

    def __init__(self, testbed: Testbed, ends: list[tuple[Port, ...]]) -> None:
        """`ends`: of each cable, then the radios of each cell, the access point first. Raises InputError for a loop."""
        self._testbed = testbed
        self._ends = ends
        self.switches = {node.name: node for node in testbed.node if node.role == "switch"}
        self._join()
        self.blocked = self._blocked()
        """The links that the spanning tree protocol blocks."""
        self._first_of = self._connect()

    @cached_property
    def ports(self) -> dict[str, list[Port]]:
        """Return the ports of each switch, in the order in which they become ports of its bridge."""
        ends = [port for segment in self._ends for port in segment]
        return {name: [port for port in ends if port.node == name] for name in self.switches}

    def _join(self) -> None:
        """Set the LAN of each switch, link and cell, and the VLANs of each LAN. A switch stands for its LAN."""
        self.lan_of_switch, _ = joined(self.switches, self._between_switches.values())
        self.lan_of = {
            link: self.lan_of_switch[port.node]
            for link, ends in enumerate(self._ends)
            for port in ends
            if port.node in self.switches
        }
        self.vlans: dict[str, set[int]] = {}
        for link, lan in self.lan_of.items():
            self.vlans.setdefault(lan, {DEFAULT_VLAN}).update(self._written(link))
        self._filtering = {lan for link, lan in self.lan_of.items() if self._written(link)}

    @cached_property
    def _between_switches(self) -> dict[int, tuple[Port, ...]]:
        """Return the links between switches, with their ports."""
        return {link: ends for link, ends in enumerate(self._ends) if all(port.node in self.switches for port in ends)}

    def _written(self, link: int) -> tuple[int, ...]:
        """Return the VLANs that the scenario names at a link."""
        vlan = self._testbed.link[link].vlan if link < len(self._testbed.link) else None
        return vlan if isinstance(vlan, tuple) else () if vlan is None else (vlan,)

    def has_vlans(self, switch: str) -> bool:
        """Return whether a switch separates VLANs: a link of its LAN names one."""
        return self.lan_of_switch[switch] in self._filtering

    def memberships(self, link: int) -> list[Membership]:
        """Return the VLANs of a link or cell at a switch."""
        written = self._written(link)
        if link < len(self._testbed.link) and isinstance(self._testbed.link[link].vlan, tuple):
            return [Membership(vlan, tagged=True) for vlan in written]
        if written or link not in self._between_switches:
            return [Membership(vlan, tagged=False) for vlan in written or (DEFAULT_VLAN,)]
        return [Membership(vlan, tagged=vlan != DEFAULT_VLAN) for vlan in sorted(self.vlans[self.lan_of[link]])]

    def interfaces(self, port: Port) -> list[tuple[int, Port]]:
        """Return the interfaces at an end of a cable or cell, each with its VLAN. A switch has none, a trunk a device
        for each VLAN; otherwise it is the end itself."""
        if port.node in self.switches:
            return []
        if port.link not in self.lan_of:
            return [(DEFAULT_VLAN, port)]
        return [(vlan, replace(port, vlan=vlan) if tagged else port) for vlan, tagged in self.memberships(port.link)]

    def _blocked(self) -> set[int]:
        """Return the links that the protocol blocks, by the LANs that have it on all switches. A switch without it
        passes its messages on, so that others would block links of a loop, in any VLAN: raises InputError."""
        blocked: set[int] = set()
        for lan in dict.fromkeys(self.lan_of_switch.values()):
            names = [name for name, other in self.lan_of_switch.items() if other == lan]
            links = {link: ends for link, ends in self._between_switches.items() if self.lan_of[link] == lan}
            if all(self.switches[name].stp for name in names):
                blocked |= links.keys() - tree(
                    {name: self.bridge_id(name) for name in names},
                    [self._tree_link(link, ends) for link, ends in links.items()],
                )
            elif any(self.switches[name].stp for name in names):
                self._without_loops(links.values())
        return blocked

    def bridge_id(self, switch: str) -> BridgeId:
        """Return the identifier of a switch's bridge: its address is that of the first port."""
        stp = self.switches[switch].stp
        assert stp is not None
        return BridgeId(stp.priority, self.ports[switch][0].mac)

    def _tree_link(self, link: int, ends: tuple[Port, ...]) -> TreeLink:
        first, second = ((port.node, self.ports[port.node].index(port) + 1) for port in ends)
        return TreeLink(link, (first, second), self.cost(link))

    def cost(self, link: int) -> int:
        """Return the cost of a link's ports in the spanning tree protocol."""
        return cost(min(self._testbed.link[link].rate))

    @cached_property
    def _carrying(self) -> dict[int, list[tuple[Port, ...]]]:
        """Return the links between switches that carry frames of each VLAN."""
        carrying: dict[int, list[tuple[Port, ...]]] = {
            vlan: [] for vlan in sorted({vlan for vlans in self.vlans.values() for vlan in vlans})
        }
        for link, ends in self._between_switches.items():
            for member in self.memberships(link) if link not in self.blocked else ():
                carrying[member.vlan].append(ends)
        return carrying

    def _connect(self) -> dict[tuple[str, int], str]:
        """Return for each switch and VLAN a switch that stands for all that frames reach. Raises InputError for a
        loop."""
        return {
            (name, vlan): first
            for vlan, links in self._carrying.items()
            for name, first in self._without_loops(links).items()
        }

    def _without_loops(self, links: Iterable[tuple[Port, ...]]) -> dict[str, str]:
        """Return for each switch one that stands for all that the links join. Raises InputError for a loop."""
        first_of, closing = joined(self.switches, links)
        for near, far in closing:
            lan = self.lan_of_switch[near.node]
            names = [name for name, node in self.switches.items() if self.lan_of_switch[name] == lan and not node.stp]
            value = [f"{port.node}:{port.device}" for port in (near, far)]
            reason = "closes a loop, in which frames would circulate forever"
            remedy = f"give {several(names)} stp = {{}}, or remove the link"
            raise refusal(f"testbed.link.{near.link}.ends", value, f"{reason}; {remedy}")
        return first_of

    def segments(self) -> list[tuple[int, list[Port]]]:
        """Return the VLAN and the interfaces of each segment, in the order of the links, then of the cells."""
        segments: dict[tuple[int | str, int], list[Port]] = {}
        for link, ends in enumerate(self._ends):
            switch = next((end.node for end in ends if end.node in self.switches), None)
            for vlan, port in (each for end in ends for each in self.interfaces(end)):
                part = link if switch is None else self._first_of[switch, vlan]
                segments.setdefault((part, vlan), []).append(port)
        return [(vlan, ports) for (_, vlan), ports in segments.items()]

    def way(self, leaves: Port, enters: Port, vlan: int) -> list[tuple[Port, Port]]:
        """Return the ports by which frames leave each node and enter the next, from one port of a segment to
        another."""
        if leaves.link == enters.link:
            return [(leaves, enters)]
        entry, leaf = self._at_switch(leaves), self._at_switch(enters)
        exits: dict[str, list[tuple[Port, Port]]] = {name: [] for name in self.switches}
        for first, second in self._carrying[vlan]:
            exits[first.node].append((first, second))
            exits[second.node].append((second, first))
        previous: dict[str, tuple[Port, Port]] = {}
        names = [entry.node]
        for name in names:
            for near, far in exits[name]:
                if far.node != entry.node and far.node not in previous:
                    previous[far.node] = near, far
                    names.append(far.node)
        middle: list[tuple[Port, Port]] = []
        name = leaf.node
        while name != entry.node:
            middle.append(previous[name])
            name = previous[name][0].node
        return [(leaves, entry), *reversed(middle), (leaf, enters)]

    def _at_switch(self, port: Port) -> Port:
        """Return the switch's end of a cable or cell."""
        return next(end for end in self._ends[port.link] if end.node in self.switches)


def joined(switches: Iterable[str], links: Iterable[tuple[Port, ...]]) -> tuple[dict[str, str], list[tuple[Port, ...]]]:
    """Return for each switch one that stands for all that the links join, and the links that close a loop."""
    first_of = {name: name for name in switches}
    group = {name: [name] for name in first_of}
    closing: list[tuple[Port, ...]] = []
    for near, far in links:
        first, other = first_of[near.node], first_of[far.node]
        if first == other:
            closing.append((near, far))
            continue
        first_of |= dict.fromkeys(group[other], first)
        group[first] += group.pop(other)
    return first_of, closing
