# SPDX-License-Identifier: Apache-2.0
"""Paths: the devices that packets pass between two nodes, as the routes have it, and what each does to them."""

from collections.abc import Iterator

from hourglass.contract.plan import Hop, Path
from hourglass.plan.network import Network, Port
from hourglass.plan.qdiscs import qdisc_of
from hourglass.scenario import Link, Stack, Testbed
from hourglass.scenario.edge import away
from hourglass.scenario.values import Place
from hourglass.scenario.wifi import radio_bps
from hourglass.tc_words import rate_bps, word_after

RATE_WORDS = ("bandwidth", "rate", "maxrate")
"""What qdiscs of their own rate call it: cake; tbf and netem; fq."""

IMPAIRMENTS = ("jitter", "loss", "corrupt", "duplicate", "reorder")
"""Keys of a link, each with a value per direction, 0 for none."""
OF_ONE_WAY = ("policer", "shaper")
"""Keys of a link, each a table per direction, or none."""


class Paths:
    """The paths of a plan, each worked out when it is first asked for."""

    def __init__(self, testbed: Testbed, stack: Stack, network: Network) -> None:
        self._from = testbed, stack, network
        self._made: dict[tuple[str, str], Path] = {}

    def between(self, client: str, server: str) -> Path:
        """The path of two nodes. Raises InputError when no routers join them."""
        pair = (client, server)
        if pair not in self._made:
            network = self._from[-1]
            there = network.way(client, network.arrival(client, server))
            back = network.way(server, there[0][0])
            hops = ([_hop(*self._from, *ports) for ports in way] for way in (there, back))
            self._made[pair] = Path(client=client, server=server, there=next(hops), back=next(hops))
        return self._made[pair]

    def all(self) -> list[Path]:
        """Those that were asked for, in that order."""
        return list(self._made.values())


def _hop(testbed: Testbed, stack: Stack, network: Network, leaves: Port, enters: Port) -> Hop:
    place = f"{leaves.node}:{leaves.device}"
    shaper_bps = next((one.rate for one in testbed.shaper if str(one.at) == place), None)
    netem_ns = next((one.delay for one in testbed.netem if str(one.at) == place), 0)
    qdisc = qdisc_of(testbed, stack, network, leaves)
    sold: list[int] = []
    if leaves.radio:
        cell = network.cell(leaves)
        wifi = testbed.wifi[cell]
        line_bps = min(radio_bps(wifi, wifi.station[port.side - 1]) for port in (leaves, enters) if port.side)
        delay_ns, impairments, origin = 0, [], f"testbed.wifi.{cell}"
    else:
        link = testbed.link[leaves.link]
        line_bps, delay_ns = link.rate[leaves.side], link.delay[leaves.side]
        impairments, origin = list(_impairments(link, leaves.side)), f"testbed.link.{leaves.link}"
        sold = [one.rate for one in (away(link.policer, leaves.side), away(link.shaper, leaves.side)) if one]
    ingress = stack.at(Place(enters.node, enters.device)).ingress
    own = (rate_bps(word_after(line, word)) for line in (qdisc, ingress or "") for word in RATE_WORDS)
    return Hop(
        node=leaves.node,
        device=leaves.device,
        address=str(leaves.address),
        to_node=enters.node,
        to_device=enters.device,
        to_address=str(enters.address),
        medium="air" if leaves.radio else "cable",
        line_bps=line_bps,
        shaper_bps=shaper_bps,
        rate_bps=min(rate for rate in (line_bps, shaper_bps, *sold, *own) if rate),
        delay_ns=delay_ns + netem_ns,
        qdisc=qdisc,
        ingress=ingress,
        impairments=impairments,
        origin=origin,
    )


def _impairments(link: Link, side: int) -> Iterator[str]:
    """In the scenario's words; the direction away from the side."""
    for name, shown in link.model_dump(include=set(IMPAIRMENTS)).items():
        if getattr(link, name)[side] != Link.model_fields[name].default[side]:
            yield f"{name} {_words(shown[side] if isinstance(shown, list) else shown)}"
    if link.trace and (link.trace.there, link.trace.back)[side]:
        yield "trace"
    if link.outage:
        yield "outage"
    if link.duplex == "half":
        yield "half duplex"
    if link.medium:
        yield f"medium {link.medium[side]}"
    for name in OF_ONE_WAY:
        if one := away(getattr(link, name), side):
            yield f"{name} {_words(one.model_dump(exclude_none=True))}"


def _words(shown: str | dict[str, object]) -> str:
    return shown if isinstance(shown, str) else ", ".join(f"{name} {value}" for name, value in shown.items())
