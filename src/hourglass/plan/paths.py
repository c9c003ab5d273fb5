# SPDX-License-Identifier: Apache-2.0
"""Paths: the devices that packets pass between two nodes along the routes, and the effect of each on them."""

from collections.abc import Iterator

from hourglass.contract.plan import Hop, Path
from hourglass.plan.network import Network
from hourglass.plan.port import Port
from hourglass.plan.qdiscs import qdisc_of
from hourglass.qdisc_line import QdiscLine
from hourglass.scenario import Link, Stack, Testbed
from hourglass.scenario.edge import away
from hourglass.scenario.values import NodeDevice
from hourglass.scenario.wifi import radio_bps

IMPAIRMENTS = ("jitter", "loss", "corrupt", "duplicate", "reorder")
"""Keys of a link, each with a value per direction, 0 for none."""
BLOCKED = "blocked by STP"
"""The state of a link that would close a loop, with the spanning tree protocol."""
TABLES_PER_DIRECTION = ("policer", "shaper")
"""Keys of a link, each a table per direction, or none."""


class Paths:
    """The paths of a plan, each computed on first use."""

    def __init__(self, testbed: Testbed, stack: Stack, network: Network) -> None:
        self._sources = testbed, stack, network
        self._paths: dict[tuple[str, str], Path] = {}

    def between(self, client: str, server: str) -> Path:
        """Return the path of two nodes; of a node to itself, one without hops. Raises InputError if no routers join
        them."""
        pair = (client, server)
        if client == server:
            return Path(client=client, server=server, there=[], back=[])
        if pair not in self._paths:
            network = self._sources[-1]
            forward = network.port_pairs(client, network.arrival(client, server))
            back = network.port_pairs(server, forward[0][0])
            hops = ([_hop(*self._sources, *ports) for ports in port_pairs] for port_pairs in (forward, back))
            self._paths[pair] = Path(client=client, server=server, there=next(hops), back=next(hops))
        return self._paths[pair]

    def all(self) -> list[Path]:
        """Return the computed paths, in order of their first use."""
        return list(self._paths.values())


def neighbours(testbed: Testbed, stack: Stack) -> list[Path]:
    """Return a path of one hop for each link, and for each station of a cell to its access point: the whole testbed."""
    network = Network(testbed)
    pairs = [*network.ports, *((station, cell[0]) for cell in network.cells for station in cell[1:])]
    return [
        Path(
            client=near.node,
            server=far.node,
            there=[_hop(testbed, stack, network, near, far)],
            back=[_hop(testbed, stack, network, far, near)],
        )
        for near, far in pairs
    ]


def _hop(testbed: Testbed, stack: Stack, network: Network, leaves: Port, enters: Port) -> Hop:
    device = f"{leaves.node}:{leaves.device}"
    shaper_bps = next((shaper.rate for shaper in testbed.shaper if str(shaper.at) == device), None)
    netem_ns = next((netem.delay for netem in testbed.netem if str(netem.at) == device), 0)
    qdisc = qdisc_of(testbed, stack, network, leaves)
    link_rates: list[int] = []
    if leaves.radio:
        cell = network.cell(leaves)
        wifi = testbed.wifi[cell]
        line_bps = min(radio_bps(wifi, wifi.station[port.side - 1]) for port in (leaves, enters) if port.side)
        delay_ns, impairments, origin = 0, [], f"testbed.wifi.{cell}"
    else:
        link = testbed.link[leaves.link]
        line_bps, delay_ns = link.rate[leaves.side], link.delay[leaves.side]
        impairments, origin = list(_impairments(link, leaves.side)), f"testbed.link.{leaves.link}"
        impairments += [BLOCKED] if leaves.link in network.lans.blocked else []
        link_rates = [
            limiter.rate for limiter in (away(link.policer, leaves.side), away(link.shaper, leaves.side)) if limiter
        ]
    ingress = stack.at(NodeDevice(enters.node, enters.device)).ingress
    qdisc_rates = (QdiscLine(line, line_bps).frame_bps for line in (qdisc, ingress or ""))
    return Hop(
        node=leaves.node,
        device=leaves.device,
        address=str(leaves.address) if leaves.own_address else None,
        to_node=enters.node,
        to_device=enters.device,
        to_address=str(enters.address) if enters.own_address else None,
        medium="air" if leaves.radio else "cable",
        line_bps=line_bps,
        shaper_bps=shaper_bps,
        rate_bps=min(rate for rate in (line_bps, shaper_bps, *link_rates, *qdisc_rates) if rate),
        delay_ns=delay_ns + netem_ns,
        qdisc=qdisc,
        ingress=ingress,
        impairments=impairments,
        origin=origin,
    )


def _impairments(link: Link, side: int) -> Iterator[str]:
    """Return impairments in the scenario's words, of the direction away from the side."""
    for name, value in link.model_dump(include=set(IMPAIRMENTS)).items():
        if getattr(link, name)[side] != Link.model_fields[name].default[side]:
            yield f"{name} {_value_text(value[side] if isinstance(value, list) else value)}"
    if link.trace and away(link.trace, side):
        yield "trace"
    if link.outage:
        yield "outage"
    if link.duplex == "half":
        yield "half duplex"
    if link.medium:
        yield f"medium {link.medium[side]}"
    for name in TABLES_PER_DIRECTION:
        if table := away(getattr(link, name), side):
            yield f"{name} {_value_text(table.model_dump(exclude_none=True))}"


def _value_text(setting: str | dict[str, object]) -> str:
    return setting if isinstance(setting, str) else ", ".join(f"{name} {value}" for name, value in setting.items())
