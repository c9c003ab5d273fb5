# SPDX-License-Identifier: Apache-2.0
"""Addresses and routes: a subnet per link and per Wi-Fi cell, shortest paths through routers.

A host whose packets all leave by one router has a default route. Every other node has a route for each next router and
block of neighbouring subnets. If routers have only connected routes (`testbed.routes`), these belong to hosts alone.
Paths are the shortest ones in both cases.

Link N gets 10.0.N.0/24 (10.1.0.0/24 follows 10.0.255.0/24) or fd00:0:0:N::/64 (N in hexadecimal), its first end .1 and
its second .2, unless the scenario gives addresses. Cells follow the links: the access point has .1, the stations .2 and
on. Among equally short paths, the one over the earlier links is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    collapse_addresses,
    ip_interface,
)
from itertools import pairwise

from hourglass.scenario import Testbed
from hourglass.scenario.blame import refusal

Interface = IPv4Interface | IPv6Interface
Subnet = IPv4Network | IPv6Network


SEARCHES = 64
"""How many results of a search are cached: those of a testbed of a thousand nodes are large."""


@dataclass(frozen=True)
class Port:
    """One end of a link, `side` 0 or 1; or a radio of a cell: `link` counts on after the links, `side` 0 is the
    access point."""

    link: int
    side: int
    node: str
    device: str
    address: Interface
    radio: bool = False


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
        self.ports = [_ports(testbed, index) for index in range(len(testbed.link))]
        self.cells = [_radios(testbed, index) for index in range(len(testbed.wifi))]
        self.segments: list[tuple[Port, ...]] = [*self.ports, *self.cells]
        self.routers = {node.name for node in testbed.node if node.role == "router"}
        self.nodes = [node.name for node in testbed.node]
        self.static_nodes = {name for name in self.nodes if testbed.routes == "static" or name not in self.routers}
        self.search = lru_cache(SEARCHES)(self._search)
        _check_subnets(testbed, self.segments)

    @cached_property
    def _of_node(self) -> dict[str, list[Port]]:
        """Ports by node, in the order of the links, then of the cells."""
        table: dict[str, list[Port]] = {name: [] for name in self.nodes}
        for port in (port for segment in self.segments for port in segment):
            table[port.node].append(port)
        return table

    def of(self, node: str) -> list[Port]:
        """Return the node's ports, in the order of the links, then of the cells."""
        return self._of_node[node]

    def wires(self, node: str) -> list[Port]:
        """Return the node's ends of cables."""
        return [port for port in self._of_node[node] if not port.radio]

    def radios(self, node: str) -> list[Port]:
        """Return the node's radios."""
        return [port for port in self._of_node[node] if port.radio]

    def far_ports(self, port: Port) -> list[Port]:
        """Return the other ends of a cable, or of a cell."""
        return [other for other in self.segments[port.link] if other is not port]

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
            for far_port in (far_port for port in self.of(node) for far_port in self.far_ports(port)):
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
        connected = {port.link for port in self.of(node)}
        subnets: dict[Port, list[Subnet]] = {}
        for link, segment in enumerate(self.segments):
            if link not in connected and (gateway := self._gateway(node, segment)):
                subnets.setdefault(gateway, []).append(segment[0].address.network)
        for gateway, networks in subnets.items():
            yield from (Route(subnet, str(gateway.address.ip)) for subnet in collapse(networks))

    def _only_gateway(self, node: str) -> Port | None:
        """Return the router's port by which all packets of a host leave, if there is only one such port."""
        ports = [other for port in self.of(node) for other in self.far_ports(port) if other.node in self.routers]
        return ports[0] if len(ports) == 1 and len(self.of(ports[0].node)) > 1 else None

    def _gateway(self, node: str, segment: tuple[Port, ...]) -> Port | None:
        """Return the next router's port on the path from a node to the segment's nearest router."""
        reached = self.search(node)
        routers = [reached[port.node] for port in segment if port.node in self.routers and port.node in reached]
        return min(routers, key=lambda reach: reach.order).gateway if routers else None

    def arrival(self, client: str, server: str) -> Port:
        """Return the server's port towards the client. Raises InputError if no path of routers joins them."""
        reached = self.search(client)
        if server not in reached:
            hosts = [name for name in self.nodes if len(self.of(name)) > 1 and name not in self.routers]
            hint = f'; hosts do not forward: give {", ".join(hosts[:5])} role = "router"?' if hosts else ""
            raise refusal("test.server", server, f"is not reachable by links and routers from {client}{hint}")
        return reached[server].arrival

    def port_pairs(self, start: str, target: Port) -> list[tuple[Port, Port]]:
        """Yield the ports by which packets for the target's address leave each node and enter the next, by the
        routes."""
        ports, node = [], start
        while node != target.node:
            near = any(port.link == target.link for port in self.of(node))
            enters = target if near else self._gateway(node, self.segments[target.link])
            assert enters is not None, (start, target)
            ports.append((next(port for port in self.of(node) if port.link == enters.link), enters))
            node = enters.node
        return ports


def collapse(networks: list[Subnet]) -> Iterator[Subnet]:
    """Yield the fewest subnets that cover the same addresses."""
    yield from collapse_addresses([network for network in networks if network.version == 4])
    yield from collapse_addresses([network for network in networks if network.version == 6])


def _ports(testbed: Testbed, index: int) -> tuple[Port, Port]:
    link = testbed.link[index]
    texts = link.addresses or _default_addresses(testbed.ip, index)
    addresses = [ip_interface(text) for text in texts]
    if link.addresses:
        _check_addresses(f"testbed.link.{index}.addresses", addresses)
    first, second = (
        Port(index, side, end.node, end.device, address)
        for side, (end, address) in enumerate(zip(link.ends, addresses, strict=True))
    )
    return first, second


def _radios(testbed: Testbed, index: int) -> tuple[Port, ...]:
    """Return the radios of a cell, the access point first."""
    cell, link = testbed.wifi[index], len(testbed.link) + index
    devices = [cell.ap, *(station.at for station in cell.station)]
    return tuple(
        Port(link, side, end.node, end.device, ip_interface(_default_address(testbed.ip, link, side)), radio=True)
        for side, end in enumerate(devices)
    )


def _default_addresses(version: int, index: int) -> tuple[str, str]:
    return _default_address(version, index, 0), _default_address(version, index, 1)


def _default_address(version: int, index: int, side: int) -> str:
    if version == 6:
        return f"fd00:0:0:{index:x}::{side + 1:x}/64"
    return f"10.{index >> 8}.{index & 255}.{side + 1}/24"


def _check_addresses(key: str, addresses: list[Interface]) -> None:
    first, second = addresses
    if first.network != second.network:
        raise refusal(key, [str(first), str(second)], "both ends of a link must be in one subnet")
    if first.ip == second.ip:
        raise refusal(key, str(first), "both ends have this address; give two different ones")
    for address in addresses:
        network, ip = address.network, address.ip
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


def _check_subnets(testbed: Testbed, ports: list[tuple[Port, ...]]) -> None:
    """Refuse subnets that overlap: sorted by address, an overlap is between neighbours. Default subnets never
    overlap."""
    subnets = sorted((_span(pair[0].address.network), pair[0].link) for pair in ports)
    for (span, link), (next_span, next_link) in pairwise(subnets):
        if next_span[0] <= span[1]:
            with_addresses = {
                number for number in (link, next_link) if number < len(testbed.link) and testbed.link[number].addresses
            }
            blamed = max(with_addresses)
            other = link + next_link - blamed
            pair = ports[blamed]
            key = f"testbed.link.{blamed}.addresses"
            value = [str(port.address) for port in pair]
            subnet = ports[other][0].address.network
            raise refusal(key, value, f"overlaps the subnet {subnet} of {_name(testbed, other)}")


def _name(testbed: Testbed, segment: int) -> str:
    wires = len(testbed.link)
    return f"testbed.link.{segment}" if segment < wires else f"testbed.wifi.{segment - wires}"


def _span(network: Subnet) -> tuple[int, int]:
    return int(network.network_address), int(network.broadcast_address)
