# SPDX-License-Identifier: Apache-2.0
"""Addresses and routes: a subnet per link and per Wi-Fi cell, shortest paths through routers.

Link N gets 10.0.N.0/24 (10.1.0.0/24 follows 10.0.255.0/24) or fd00:0:0:N::/64 (N in hexadecimal), its first end
.1 and its second .2, unless the scenario gives addresses. Cells follow the links: the access point has .1, the stations
.2 and on. Of several shortest paths the one over the earlier links is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network, ip_interface
from itertools import pairwise

from hourglass.scenario import Testbed
from hourglass.scenario.blame import refusal

Interface = IPv4Interface | IPv6Interface
Subnet = IPv4Network | IPv6Network


SEARCHES = 64
"""So many results of a search are kept: those of a testbed of a thousand nodes are large."""


@dataclass(frozen=True)
class Port:
    """One end of a link, `side` 0 or 1; or a radio of a cell, `link` counting on, `side` 0 the access point."""

    link: int
    side: int
    node: str
    device: str
    address: Interface
    radio: bool = False


@dataclass(frozen=True)
class Route:
    """To a subnet over the next router's address."""

    subnet: Subnet
    via: str


@dataclass(frozen=True)
class Found:
    """How a search reached a node: by which port it came in, at which port it entered the first node on the way, and
    as which one."""

    gateway: Port
    arrival: Port
    order: int


class Network:
    """The testbed with addresses."""

    def __init__(self, testbed: Testbed) -> None:
        """Raises InputError when the scenario's addresses cannot be."""
        self.ports = [_ports(testbed, index) for index in range(len(testbed.link))]
        self.cells = [_radios(testbed, index) for index in range(len(testbed.wifi))]
        self.segments: list[tuple[Port, ...]] = [*self.ports, *self.cells]
        self.routers = {node.name for node in testbed.node if node.role == "router"}
        self.nodes = [node.name for node in testbed.node]
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
        """The node's ports, in the order of the links, then of the cells."""
        return self._of_node[node]

    def wires(self, node: str) -> list[Port]:
        """The node's ends of cables."""
        return [port for port in self._of_node[node] if not port.radio]

    def radios(self, node: str) -> list[Port]:
        """The node's radios."""
        return [port for port in self._of_node[node] if port.radio]

    def others(self, port: Port) -> list[Port]:
        """The other ends of a cable, or of a cell."""
        return [other for other in self.segments[port.link] if other is not port]

    def cell(self, port: Port) -> int:
        """The number of a radio's cell."""
        return port.link - len(self.ports)

    def _search(self, start: str) -> dict[str, Found]:
        """How each node is reached from `start`, breadth first; only routers pass packets on."""
        reached: dict[str, Found] = {}
        queue = [start]
        for node in queue:
            if node != start and node not in self.routers:
                continue
            for other in (other for port in self.of(node) for other in self.others(port)):
                if other.node != start and other.node not in reached:
                    gateway = reached[node].gateway if node in reached else other
                    reached[other.node] = Found(gateway, other, len(reached))
                    queue.append(other.node)
        return reached

    def routes(self, node: str) -> Iterator[Route]:
        """The node's routes to the subnets it is not in."""
        mine = {port.link for port in self.of(node)}
        for link, segment in enumerate(self.segments):
            if link not in mine and (gateway := self._gateway(node, segment)):
                yield Route(segment[0].address.network, str(gateway.address.ip))

    def _gateway(self, node: str, segment: tuple[Port, ...]) -> Port | None:
        """The next router's port on the way from a node to the segment's nearest router."""
        reached = self.search(node)
        routers = [reached[port.node] for port in segment if port.node in self.routers and port.node in reached]
        return min(routers, key=lambda found: found.order).gateway if routers else None

    def arrival(self, client: str, server: str) -> Port:
        """The server's port towards the client. Raises InputError when no path of routers joins them."""
        reached = self.search(client)
        if server not in reached:
            hosts = [name for name in self.nodes if len(self.of(name)) > 1 and name not in self.routers]
            hint = f'; hosts do not forward: give {", ".join(hosts[:5])} role = "router"?' if hosts else ""
            raise refusal("test.server", server, f"no path of links and routers leads there from {client}{hint}")
        return reached[server].arrival

    def way(self, start: str, target: Port) -> list[tuple[Port, Port]]:
        """The ports by which packets for the target's address leave each node and enter the next, by the routes."""
        ports, node = [], start
        while node != target.node:
            near = any(port.link == target.link for port in self.of(node))
            enters = target if near else self._gateway(node, self.segments[target.link])
            assert enters is not None, (start, target)
            ports.append((next(port for port in self.of(node) if port.link == enters.link), enters))
            node = enters.node
        return ports


def _ports(testbed: Testbed, index: int) -> tuple[Port, Port]:
    link = testbed.link[index]
    texts = link.addresses or _default_addresses(testbed.ip, index)
    addresses = [ip_interface(text) for text in texts]
    if link.addresses:
        _check_addresses(f"testbed.link.{index}.addresses", addresses)
    one, two = (
        Port(index, side, end.node, end.device, address)
        for side, (end, address) in enumerate(zip(link.ends, addresses, strict=True))
    )
    return one, two


def _radios(testbed: Testbed, index: int) -> tuple[Port, ...]:
    """The radios of a cell, the access point first."""
    cell, link = testbed.wifi[index], len(testbed.link) + index
    places = [cell.ap, *(station.at for station in cell.station)]
    return tuple(
        Port(link, side, end.node, end.device, ip_interface(_default_address(testbed.ip, link, side)), radio=True)
        for side, end in enumerate(places)
    )


def _default_addresses(version: int, index: int) -> tuple[str, str]:
    return _default_address(version, index, 0), _default_address(version, index, 1)


def _default_address(version: int, index: int, side: int) -> str:
    if version == 6:
        return f"fd00:0:0:{index:x}::{side + 1:x}/64"
    return f"10.{index >> 8}.{index & 255}.{side + 1}/24"


def _check_addresses(key: str, addresses: list[Interface]) -> None:
    one, two = addresses
    if one.network != two.network:
        raise refusal(key, [str(one), str(two)], "the two ends of a link are in one subnet")
    if one.ip == two.ip:
        raise refusal(key, str(one), "is the address of both ends")
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
            raise refusal(key, str(address), "is no address of a host's NIC")
        if network.prefixlen < network.max_prefixlen - 1 and ip == network.network_address:
            raise refusal(key, str(address), "is the subnet's own address, not a host's")
        if network.version == 4 and network.prefixlen < 31 and ip == network.broadcast_address:
            raise refusal(key, str(address), "is the subnet's broadcast address, not a host's")


def _this_network(ip: IPv4Address | IPv6Address) -> bool:
    """0.0.0.0/8 is no place for hosts."""
    return ip.version == 4 and int(ip) >> 24 == 0


def _check_subnets(testbed: Testbed, ports: list[tuple[Port, ...]]) -> None:
    """Refuses subnets that overlap: sorted by address, an overlap is one of neighbours. Default subnets never do."""
    subnets = sorted((_span(pair[0].address.network), pair[0].link) for pair in ports)
    for (span, link), (next_span, next_link) in pairwise(subnets):
        if next_span[0] <= span[1]:
            given = {one for one in (link, next_link) if one < len(testbed.link) and testbed.link[one].addresses}
            guilty = max(given)
            other = link + next_link - guilty
            pair = ports[guilty]
            key = f"testbed.link.{guilty}.addresses"
            value = [str(port.address) for port in pair]
            subnet = ports[other][0].address.network
            raise refusal(key, value, f"overlaps the subnet {subnet} of {_name(testbed, other)}")


def _name(testbed: Testbed, segment: int) -> str:
    wires = len(testbed.link)
    return f"testbed.link.{segment}" if segment < wires else f"testbed.wifi.{segment - wires}"


def _span(network: Subnet) -> tuple[int, int]:
    return int(network.network_address), int(network.broadcast_address)
