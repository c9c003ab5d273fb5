# SPDX-License-Identifier: Apache-2.0
"""The spanning tree that switches agree on (IEEE 802.1D-1998, 8.5): which of their links carry frames.

The root is the bridge with the lowest identifier. The root port of each other bridge has the lowest cost to the root;
then the lowest neighbour, the lowest port of the neighbour, and the lowest port. A link that is the root port of
neither end is blocked at one end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

COSTS = ((10 * 10**9, 2), (5 * 10**9, 3), (2_500_000_000, 4), (10**9, 5), (10**8, 19), (0, 100))
"""Lowest rate in bit/s → the cost of a port, Linux 6.1, net/bridge/br_if.c, port_cost(). It is 1 above 10 Gbit/s."""


class BridgeId(NamedTuple):
    """The identifier by which bridges are compared."""

    priority: int
    mac: str


@dataclass(frozen=True)
class TreeLink:
    """A link between two bridges: for each end, the bridge's name and the number of its port."""

    link: int
    ends: tuple[tuple[str, int], tuple[str, int]]
    cost: int


def cost(rate_bps: int) -> int:
    """Return the cost of a port at a rate. A rate between two of the table has that of the lower."""
    return 1 if rate_bps > COSTS[0][0] else next(price for lowest_bps, price in COSTS if rate_bps >= lowest_bps)


def tree(bridges: dict[str, BridgeId], links: Sequence[TreeLink]) -> set[int]:
    """Return the links that carry frames."""
    root = min(bridges, key=bridges.__getitem__)
    distance = _distances(root, links)
    active = set()
    for name in bridges:
        offers = [
            (distance[other] + each.cost, bridges[other], other_port, port, each.link)
            for each in links
            for (end, port), (other, other_port) in (each.ends, each.ends[::-1])
            if end == name
        ]
        if name != root and offers:
            active.add(min(offers)[-1])
    return active


def _distances(root: str, links: Sequence[TreeLink]) -> dict[str, int]:
    """Return the cost of the cheapest way of each bridge to the root (Bellman and Ford)."""
    distance = {root: 0}
    changed = True
    while changed:
        changed = False
        for each in links:
            for (near, _), (far, _) in (each.ends, each.ends[::-1]):
                if near in distance and distance[near] + each.cost < distance.get(far, 1 << 60):
                    distance[far] = distance[near] + each.cost
                    changed = True
    return distance
