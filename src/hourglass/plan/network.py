# SPDX-License-Identifier: Apache-2.0
"""Addresses and routes: a subnet per link, Wi-Fi cell and LAN, shortest paths through routers.

A host whose packets all leave by one router has a default route. Every other node has a route for each next router and
block of neighbouring subnets. If routers have only connected routes (`testbed.routes`), these belong to hosts alone.
Paths are the shortest ones in both cases.

Link N gets 10.0.N.0/24 (10.1.0.0/24 follows 10.0.255.0/24) or fd00:0:0:N::/64 (N in hexadecimal), its first end .1 and
its second .2, unless the scenario gives addresses. Cells follow the links: the access point has .1, the stations .2 and
on. The subnet of a LAN or VLAN is that of its first link without tags. Its nodes have the lowest free addresses in the
order of the links. A VLAN whose links all have tags has a subnet after those of the cells. Among equally short paths,
the one over the earlier links is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv6Address, collapse_addresses, ip_interface, ip_network
from itertools import count, pairwise

from hourglass.plan.lans import Lans
from hourglass.plan.port import Interface, Port, Subnet
from hourglass.scenario import Testbed
from hourglass.scenario.blame import refusal, several

SUBNETS = 1 << 16
"""How many default subnets there are."""
SEARCHES = 64
"""How many results of a search are cached: those of a testbed of a thousand nodes are large."""


@dataclass(frozen=True)
class Route:
    """A route over the next router's address to a subnet; None: the default route."""

    subnet: Subnet | None
    via: str


@dataclass(frozen=True)
class Reached:
    """The result of a search for one node: the port by which the search arrived, the port at which it entered the
    first node on the path, and its rank."""

    gateway: Port
    arrival: Port
    order: int


class Network:
    """The testbed with addresses."""

    def __init__(self, testbed: Testbed, default_routes: bool = True) -> None:
        """`default_routes`: hosts get one. Raises InputError if the scenario's addresses are invalid."""
        self.default_routes = default_routes
        ends = [*_cables(testbed), *_cells(testbed)]
        self.lans = Lans(testbed, ends)
        spare = count(len(ends))
        self.segments: list[tuple[Port, ...]] = []
        """The ports of each subnet, with their addresses."""
        self.vlans: list[int] = []
        """The VLAN of each segment."""
        for vlan, ports in self.lans.segments():
            self.vlans.append(vlan)
            self.segments.append(_with_addresses(testbed, self.lans, ports, len(self.segments), spare))
        addressed = {(port.link, port.side): port for ports in self.segments for port in ports if port.vlan is None}
        ends_with_addresses = [tuple(addressed.get((port.link, port.side), port) for port in ports) for ports in ends]
        self.ports = [(ports[0], ports[1]) for ports in ends_with_addresses[: len(testbed.link)]]
        self.cells = ends_with_addresses[len(testbed.link) :]
        self.routers = {node.name for node in testbed.node if node.role == "router"}
        self.nodes = [node.name for node in testbed.node]
        self.static_nodes = {name for name in self.nodes if testbed.routes == "static" or name not in self.routers}
        self.search = lru_cache(SEARCHES)(self._search)
        _check_subnets(testbed, self.segments)

    @cached_property
    def _of_node(self) -> dict[str, list[Port]]:
        """Ports by node, in the order of the links, then of the cells."""
        table: dict[str, list[Port]] = {name: [] for name in self.nodes}
        for port in (port for ends in (*self.ports, *self.cells) for port in ends):
            table[port.node].append(port)
        return table

    @cached_property
    def _interfaces(self) -> dict[str, list[Port]]:
        """Interfaces by node, in the same order."""
        table: dict[str, list[Port]] = {name: [] for name in self.nodes}
        ports = (port for segment in self.segments for port in segment)
        for port in sorted(ports, key=lambda port: (port.link, port.side)):
            table[port.node].append(port)
        return table

    @cached_property
    def _vlan_devices(self) -> dict[tuple[int, int], list[Port]]:
        """The devices of VLANs at each end of a link."""
        table: dict[tuple[int, int], list[Port]] = {}
        for port in (port for segment in self.segments for port in segment if port.vlan is not None):
            table.setdefault((port.link, port.side), []).append(port)
        return table

    def of(self, node: str) -> list[Port]:
        """Return the node's ports, in the order of the links, then of the cells."""
        return self._of_node[node]

    def interfaces(self, node: str) -> list[Port]:
        """Return the interfaces of a node, which have addresses: its ports, and the devices of VLANs. A switch has
        none."""
        return self._interfaces[node]

    def meets_itself(self, node: str) -> bool:
        """Return whether a node has several addresses in one subnet."""
        numbers = [port.segment for port in self._interfaces[node]]
        return len({*numbers}) < len(numbers)

    def vlan_devices(self, port: Port) -> list[Port]:
        """Return the devices of the VLANs at a port."""
        return self._vlan_devices.get((port.link, port.side), [])

    def wires(self, node: str) -> list[Port]:
        """Return the node's ends of cables."""
        return [port for port in self._of_node[node] if not port.radio]

    def radios(self, node: str) -> list[Port]:
        """Return the node's radios."""
        return [port for port in self._of_node[node] if port.radio]

    def far_ports(self, port: Port) -> list[Port]:
        """Return the other interfaces of a segment: the other end of a cable, the others of a cell or LAN."""
        return [other for other in self.segments[port.segment] if other is not port]

    def cell(self, port: Port) -> int:
        """Return the number of a radio's cell."""
        return port.link - len(self.ports)

    def _search(self, start: str) -> dict[str, Reached]:
        """Return the route to each node from `start`, breadth first; only routers pass packets on."""
        reached: dict[str, Reached] = {}
        queue = [start]
        for node in queue:
            if node != start and node not in self.routers:
                continue
            for far_port in (far_port for port in self.interfaces(node) for far_port in self.far_ports(port)):
                if far_port.node != start and far_port.node not in reached:
                    gateway = reached[node].gateway if node in reached else far_port
                    reached[far_port.node] = Reached(gateway, far_port, len(reached))
                    queue.append(far_port.node)
        return reached

    def routes(self, node: str) -> Iterator[Route]:
        """Yield the static routes to the subnets that the node is not in."""
        if node not in self.static_nodes:
            return
        if self.default_routes and node not in self.routers and (gateway := self._only_gateway(node)):
            yield Route(None, str(gateway.address.ip))
            return
        connected = {port.segment for port in self.interfaces(node)}
        subnets: dict[Port, list[Subnet]] = {}
        for number, segment in enumerate(self.segments):
            if number not in connected and (gateway := self._gateway(node, segment)):
                subnets.setdefault(gateway, []).append(segment[0].address.network)
        for gateway, networks in subnets.items():
            yield from (Route(subnet, str(gateway.address.ip)) for subnet in collapse(networks))

    def _only_gateway(self, node: str) -> Port | None:
        """Return the router's port by which all packets of a host leave, if there is only one such port."""
        ports = [
            other for port in self.interfaces(node) for other in self.far_ports(port) if other.node in self.routers
        ]
        return ports[0] if len(ports) == 1 and len(self.interfaces(ports[0].node)) > 1 else None

    def _gateway(self, node: str, segment: tuple[Port, ...]) -> Port | None:
        """Return the next router's port on the path from a node to the segment's nearest router."""
        reached = self.search(node)
        routers = [reached[port.node] for port in segment if port.node in self.routers and port.node in reached]
        return min(routers, key=lambda reach: reach.order).gateway if routers else None

    def arrival(self, client: str, server: str) -> Port:
        """Return the server's port towards the client. Raises InputError if no path of routers joins them."""
        reached = self.search(client)
        if server not in reached:
            hosts = [name for name in self.nodes if len(self.interfaces(name)) > 1 and name not in self.routers]
            hint = f'; hosts do not forward: give {", ".join(hosts[:5])} role = "router"?' if hosts else ""
            vlans = [
                several(dict.fromkeys(str(self.vlans[port.segment]) for port in self.interfaces(name)))
                for name in (client, server)
            ]
            if self.lans.switches and not hosts and vlans[0] != vlans[1]:
                hint = f"; {client} is in VLAN {vlans[0]}, {server} in VLAN {vlans[1]}: join them by a router"
            raise refusal("test.server", server, f"is not reachable by links and routers from {client}{hint}")
        return reached[server].arrival

    def port_pairs(self, start: str, target: Port) -> list[tuple[Port, Port]]:
        """Return the ports by which packets for the target's address leave each node and enter the next, by the
        routes, also those of switches."""
        ports: list[tuple[Port, Port]] = []
        node = start
        while node != target.node:
            near = any(port.segment == target.segment for port in self.interfaces(node))
            enters = target if near else self._gateway(node, self.segments[target.segment])
            assert enters is not None, (start, target)
            leaves = next(port for port in self.interfaces(node) if port.segment == enters.segment)
            ports += self.lans.way(leaves, enters, self.vlans[enters.segment])
            node = enters.node
        return ports


def collapse(networks: list[Subnet]) -> Iterator[Subnet]:
    """Yield the fewest subnets that cover the same addresses."""
    yield from collapse_addresses([network for network in networks if network.version == 4])
    yield from collapse_addresses([network for network in networks if network.version == 6])


def _cables(testbed: Testbed) -> Iterator[tuple[Port, ...]]:
    """Yield the two ends of each cable."""
    for index, link in enumerate(testbed.link):
        yield tuple(Port(index, side, end.node, end.device) for side, end in enumerate(link.ends))


def _cells(testbed: Testbed) -> Iterator[tuple[Port, ...]]:
    """Yield the radios of each cell, the access point first."""
    for index, cell in enumerate(testbed.wifi, len(testbed.link)):
        devices = [cell.ap, *(station.at for station in cell.station)]
        yield tuple(Port(index, side, end.node, end.device, radio=True) for side, end in enumerate(devices))


def _with_addresses(
    testbed: Testbed, lans: Lans, ports: Sequence[Port], number: int, spare: Iterator[int]
) -> tuple[Port, ...]:
    """Return the interfaces of segment `number` with their addresses: those of the scenario, and the lowest free ones
    of the subnet for the others. `spare`: numbers for subnets that no link has."""
    written = {port: ip_interface(text) for port in ports if (text := _written(testbed, lans, port))}
    _check_addresses(testbed, written)
    network = next(iter(written.values())).network if written else _default_network(testbed, ports, spare)
    used = {address.ip for address in written.values()}
    free = (address for address in network.hosts() if address not in used)
    interfaces = []
    for port in ports:
        if port not in written and (address := next(free, None)) is None:
            reason = f"{port.node} finds no free address in {network}; give a link of this LAN one of a larger subnet"
            example = "fd01::1/64" if testbed.ip == 6 else "172.16.0.1/16"
            raise refusal(f"{_key(testbed, port.link)}.addresses", None, f"{reason}, like {example}")
        own_address = written.get(port) or ip_interface(f"{address}/{network.prefixlen}")
        interfaces.append(replace(port, own_address=own_address, segment=number))
    return tuple(interfaces)


def _written(testbed: Testbed, lans: Lans, port: Port) -> str | None:
    """Return the address that the scenario gives to a port."""
    addresses = testbed.link[port.link].addresses if port.link < len(testbed.link) else None
    if addresses is None or len(addresses) == 1:
        return addresses[0] if addresses else None
    if port.vlan is None:
        return addresses[port.side]
    return addresses[[vlan for vlan, _ in lans.memberships(port.link)].index(port.vlan)]


def _default_network(testbed: Testbed, ports: Sequence[Port], spare: Iterator[int]) -> Subnet:
    """Return the subnet of the first link without tags, or a spare one: a link with tags is in several."""
    number = next((port.link for port in ports if port.vlan is None), None)
    number = next(spare) if number is None else number
    if number >= SUBNETS:
        reason = f"the LANs have more VLANs than there are default subnets, {SUBNETS}; name fewer VLANs"
        raise refusal(f"{_key(testbed, ports[0].link)}.vlan", ports[0].vlan, reason)
    return ip_network(f"fd00:0:0:{number:x}::/64" if testbed.ip == 6 else f"10.{number >> 8}.{number & 255}.0/24")


def _check_addresses(testbed: Testbed, written: dict[Port, Interface]) -> None:
    """Refuse addresses of one segment that are in several subnets, equal, or not for hosts."""
    owners: dict[IPv4Address | IPv6Address, Port] = {}
    for port, address in written.items():
        key, network, ip = f"{_key(testbed, port.link)}.addresses", address.network, address.ip
        first, first_address = next(iter(written.items()))
        if network != first_address.network:
            sharers = "both ends of a link" if port.link == first.link else "all of a LAN"
            value = [str(first_address), str(address)]
            raise refusal(key, value, f"{sharers} must be in one subnet")
        if owners.setdefault(ip, port) != port:
            other = owners[ip].node
            raise refusal(key, str(address), f"{other} and {port.node} have this address; give two different ones")
        if (
            ip.is_multicast
            or ip.is_unspecified
            or ip.is_loopback
            or ip.is_link_local
            or ip.is_reserved
            or _this_network(ip)
        ):
            raise refusal(key, str(address), "is not an address for a host's NIC")
        if network.prefixlen < network.max_prefixlen - 1 and ip == network.network_address:
            raise refusal(key, str(address), "is the subnet's network address; give a host's")
        if network.version == 4 and network.prefixlen < 31 and ip == network.broadcast_address:
            raise refusal(key, str(address), "is the subnet's broadcast address; give a host's")


def _this_network(ip: IPv4Address | IPv6Address) -> bool:
    """Addresses in 0.0.0.0/8 are not for hosts."""
    return ip.version == 4 and int(ip) >> 24 == 0


def _check_subnets(testbed: Testbed, segments: Sequence[tuple[Port, ...]]) -> None:
    """Refuse subnets that overlap: sorted by address, an overlap is between neighbours. Default subnets never
    overlap."""
    subnets = sorted((_span(ports[0].address.network), number) for number, ports in enumerate(segments))
    for (span, number), (next_span, next_number) in pairwise(subnets):
        if next_span[0] <= span[1]:
            pair = sorted((number, next_number), key=lambda each: (_writer(testbed, segments[each]) is not None, each))
            other, blamed = (segments[each] for each in pair)
            link = _writer(testbed, blamed)
            assert link is not None, "default subnets do not overlap"
            value = [*(testbed.link[link].addresses or ())]
            subnet, key = other[0].address.network, f"testbed.link.{link}.addresses"
            reason = f"overlaps the subnet {subnet} of {_key(testbed, other[0].link)}"
            raise refusal(key, value, f'{reason}; links share a subnet at a node with role = "switch"')


def _writer(testbed: Testbed, ports: Sequence[Port]) -> int | None:
    """Return the first link of a segment to which the scenario gives addresses."""
    return next((p.link for p in ports if p.link < len(testbed.link) and testbed.link[p.link].addresses), None)


def _key(testbed: Testbed, link: int) -> str:
    """Return the scenario's key of a link or cell."""
    wires = len(testbed.link)
    return f"testbed.link.{link}" if link < wires else f"testbed.wifi.{link - wires}"


def _span(network: Subnet) -> tuple[int, int]:
    return int(network.network_address), int(network.broadcast_address)
