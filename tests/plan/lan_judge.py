# SPDX-License-Identifier: Apache-2.0
"""A judge of LANs that shares no code with the plan. Its bridges exchange BPDUs, its frames are flooded through the
ports that the plan's steps make, and its packets follow the plan's routes."""

from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface, ip_interface, ip_network
from itertools import combinations
from typing import NamedTuple

from hourglass.contract.plan import (
    AddressStep,
    CostStep,
    Hop,
    Plan,
    PortStep,
    RouteStep,
    SwitchStep,
    TagStep,
    VlanStep,
)
from hourglass.scenario import Testbed


class Vector(NamedTuple):
    """The priority vector of a BPDU (IEEE 802.1D-1998, 8.5.1); the lower one is better."""

    root: tuple[int, str]
    cost: int
    bridge: tuple[int, str]
    port: int


class Bridge(NamedTuple):
    """A bridge: its identifier and, by link, its ports with their costs, in order."""

    name: tuple[int, str]
    ports: dict[int, int]


def blocked(bridges: dict[str, Bridge]) -> set[int]:
    """Return the links with a blocked end, after the bridges have exchanged BPDUs until none has news. Each begins as
    the root."""
    best: dict[str, tuple[Vector, int | None]] = {
        name: (Vector(bridge.name, 0, bridge.name, 0), None) for name, bridge in bridges.items()
    }

    def bpdu(name: str, link: int) -> Vector:
        root = best[name][0]
        return Vector(root.root, root.cost, bridges[name].name, list(bridges[name].ports).index(link))

    def received_bpdu(name: str, link: int) -> Vector | None:
        return next((bpdu(other, link) for other in bridges if other != name and link in bridges[other].ports), None)

    for _ in range(len(bridges) + 1):
        offers = {
            name: [
                (Vector(vector.root, vector.cost + cost, vector.bridge, vector.port), number, link)
                for number, (link, cost) in enumerate(bridge.ports.items())
                if (vector := received_bpdu(name, link)) is not None
            ]
            for name, bridge in bridges.items()
        }
        for name, bridge in bridges.items():
            as_root = Vector(bridge.name, 0, bridge.name, 0)
            vector, _, link = min(offers[name], default=(as_root, 0, None))
            best[name] = (vector, link) if vector.root < bridge.name else (as_root, None)
    return {
        link
        for name, bridge in bridges.items()
        for link in bridge.ports
        if best[name][1] != link and (other := received_bpdu(name, link)) is not None and other < bpdu(name, link)
    }


@dataclass
class Switch:
    """A switch as steps make it. `filters`: it separates VLANs."""

    mac: str
    priority: int | None
    filters: bool
    ports: list[str] = field(default_factory=list)
    costs: dict[str, int] = field(default_factory=dict)
    vlans: dict[str, dict[int, bool]] = field(default_factory=dict)
    """Port → VLAN → whether frames have its tag."""


Tagged = tuple[str, str, int | None]
"""A frame at a device of a node: without a tag, or with that of a VLAN."""


class Judge:
    """The network that a plan makes."""

    def __init__(self, testbed: Testbed, plan: Plan) -> None:
        self.plan = plan
        self.connected = testbed.routes == "connected"
        self.switches: dict[str, Switch] = {}
        self.far: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.link: dict[tuple[str, str], int] = {}
        cables = [[(end.node, end.device) for end in link.ends] for link in testbed.link]
        self.cells = [
            [(end.node, end.device) for end in (cell.ap, *(station.at for station in cell.station))]
            for cell in testbed.wifi
        ]
        for number, ends in enumerate([*cables, *self.cells]):
            for end in ends:
                self.far[end] = [other for other in ends if other != end]
                self.link[end] = number
        self._read_steps()
        self.blocked = self._blocked()

    def _read_steps(self) -> None:
        tags: dict[tuple[str | None, str], tuple[str, int]] = {}
        self.at: dict[Tagged, IPv4Interface | IPv6Interface] = {}
        for step in self.plan.setup:
            node = str(getattr(step, "node", None))
            match step:
                case SwitchStep():
                    radios = [device for cell in self.cells for owner, device in cell[:1] if owner == node]
                    self.switches[node] = Switch(step.mac, step.stp_priority, step.pvid is not None, radios)
                case PortStep():
                    self.switches[node].ports.append(step.device)
                case CostStep():
                    self.switches[node].costs[step.device] = step.cost
                case VlanStep():
                    assert step.pvid == step.untagged
                    self.switches[node].vlans.setdefault(step.device, {})[step.vlan] = not step.untagged
                case TagStep():
                    tags[node, step.device] = step.parent, step.vlan
                case AddressStep():
                    device, vlan = tags.get((node, step.device), (step.device, None))
                    assert (node, device, vlan) not in self.at
                    self.at[node, device, vlan] = ip_interface(step.address)

    def _blocked(self) -> set[int]:
        """Return the links that bridges block. A bridge without the protocol sends no BPDU and forwards those of other
        bridges, like a hub. The judge does not model hubs, so no loop may contain one."""
        bridges: dict[str, Bridge] = {}
        for name, switch in self.switches.items():
            assert len({*switch.ports}) == len(switch.ports)
            if switch.priority is not None:
                ports = {
                    self.link[name, port]: switch.costs[port]
                    for port in switch.ports
                    if port in switch.costs and any(far in self.switches for far, _ in self.far[name, port])
                }
                bridges[name] = Bridge((switch.priority, switch.mac), ports)
        return blocked(bridges)

    def _in(self, node: str, port: str, tag: int | None) -> int | None:
        """Return the VLAN of a frame that arrives at a switch, or None if it is dropped."""
        switch = self.switches[node]
        if not switch.filters:
            return 0
        vlans = switch.vlans[port]
        vlan = tag if tag is not None else next((number for number, tagged in vlans.items() if not tagged), None)
        return vlan if vlan in vlans else None

    def flooded(self, start: Tagged) -> list[Tagged]:
        """Return where a broadcast arrives, with repetitions: a switch has no memory of frames."""
        arrived: list[Tagged] = []
        waiting, steps = [start], 0
        while waiting:
            node, device, tag = waiting.pop()
            steps += 1
            assert steps < 10_000, f"a broadcast of {start} runs in a circle"
            if self.link[node, device] in self.blocked:
                continue
            for far, port in self.far[node, device]:
                if far not in self.switches:
                    arrived.append((far, port, tag))
                    continue
                vlan = self._in(far, port, tag)
                waiting += [] if vlan is None else self._out(far, port, vlan, tag)
        return arrived

    def _out(self, node: str, entry: str, vlan: int, tag: int | None) -> list[Tagged]:
        switch = self.switches[node]
        if not switch.filters:
            return [(node, port, tag) for port in switch.ports if port != entry]
        members = [(port, switch.vlans[port]) for port in switch.ports if port != entry]
        return [(node, port, vlan if vlans[vlan] else None) for port, vlans in members if vlan in vlans]

    def check(self) -> None:
        """Check subnets and paths."""
        self.check_subnets()
        for path in self.plan.paths:
            self.check_path(path.client, path.server, path.there)
            self.check_path(path.server, path.client, path.back)

    def check_subnets(self) -> None:
        """Check that the devices that a broadcast reaches are exactly those of one subnet."""
        addresses = [interface.ip for interface in self.at.values()]
        assert len({*addresses}) == len(addresses), "an address occurs twice"
        subnets = {interface.network for interface in self.at.values()}
        assert not any(first.overlaps(second) for first, second in combinations(sorted(subnets, key=str), 2)), subnets
        for start, interface in self.at.items():
            reached = [end for end in self.flooded(start) if end in self.at]
            assert len({*reached}) == len(reached), f"a broadcast of {start} comes twice"
            subnet = {end for end, other in self.at.items() if other.network == interface.network}
            assert {*reached, start} == subnet, (start, reached, subnet)
            assert interface.ip in interface.network.hosts() or interface.network.prefixlen >= 31, interface

    def check_path(self, first: str, last: str, hops: list[Hop]) -> None:
        """Follow a path from port to port with the tag of its frames, and look the next address up at each node that
        has addresses."""
        if first == last:
            assert not hops
            return
        assert (hops[0].node, hops[-1].to_node) == (first, last)
        target = ip_interface(str(hops[-1].to_address)).ip
        tag: int | None = None
        gateway: object = None
        for number, hop in enumerate(hops):
            if hop.node in self.switches:
                assert hop.address is None
                vlan = self._in(hop.node, hops[number - 1].to_device, tag)
                assert vlan is not None
                leaving = self._out(hop.node, hops[number - 1].to_device, vlan, tag)
                (tag,) = [frame_tag for _, port, frame_tag in leaving if port == hop.device]
            else:
                source = ip_interface(str(hop.address))
                (tag,) = [
                    tag
                    for (node, device, tag), interface in self.at.items()
                    if (node, device, interface) == (hop.node, hop.device, source)
                ]
                gateway = self.next_address(hop.node, target)
                assert gateway in source.network if gateway else self.connected
            assert (hop.to_node, hop.to_device) in self.far[hop.node, hop.device]
            assert self.link[hop.node, hop.device] not in self.blocked
            assert "blocked by STP" not in hop.impairments
            assert number + 1 == len(hops) or hops[number + 1].node == hop.to_node
            if hop.to_node in self.switches:
                assert hop.to_address is None
            else:
                assert self.at[hop.to_node, hop.to_device, tag] == ip_interface(str(hop.to_address))
                assert gateway is None or self.at[hop.to_node, hop.to_device, tag].ip == gateway
        assert hops[-1].to_address is not None

    def next_address(self, node: str, target: object) -> object:
        """Return the next address on the way to another, by the longest prefix of the node's subnets and routes."""
        subnets = [interface.network for (owner, _, _), interface in self.at.items() if owner == node]
        entries = [(subnet, str(target)) for subnet in subnets]
        length = "0.0.0.0/0" if subnets[0].version == 4 else "::/0"
        entries += [
            (ip_network(step.subnet or length), step.via)
            for step in self.plan.setup
            if isinstance(step, RouteStep) and step.node == node
        ]
        matching = [(subnet.prefixlen, via) for subnet, via in entries if target in subnet]
        return ip_interface(max(matching, key=lambda route: route[0])[1]).ip if matching else None
