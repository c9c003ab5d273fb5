# SPDX-License-Identifier: Apache-2.0
"""What lints look at: the ways of the flows through the testbed with the rate of every hop, and the run's tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from hourglass.results.recording import Recording
from hourglass.results.series import Window, loaded_window, ping_ms
from hourglass.scenario.tc_words import rate_bps, word_after

FRAME_BYTES = 1514
"""A full Ethernet frame as a qdisc counts it."""
NS_PER_S = 10**9


@dataclass(frozen=True)
class Finding:
    """One trap: what was found, with the numbers, and what to do about it."""

    id: str
    text: str
    remedy: str


@dataclass(frozen=True)
class Hop:
    """A device that a flow's data leave by. `rate_bps` is the shaper's, the qdisc's own or the cable's, the smallest.

    `qdisc` is the tc line below the shaper, `delay_ns` the cable's propagation."""

    node: str
    device: str
    link: int
    side: int
    line_bps: int
    rate_bps: int
    delay_ns: int
    qdisc: str
    shaped: bool

    @property
    def place(self) -> str:
        return f"{self.node}:{self.device}"

    @property
    def kind(self) -> str:
        return self.qdisc.split()[0]


@dataclass(frozen=True)
class Way:
    """The hops from one sender to its receiver, and how many flows take them."""

    sender: str
    receiver: str
    hops: list[Hop]
    flows: int

    @property
    def bottleneck(self) -> Hop:
        """The first of the slowest hops."""
        return min(self.hops, key=lambda hop: hop.rate_bps)


class Evidence:
    """A run as lints see it. What a run lacks is empty."""

    def __init__(self, run: Recording) -> None:
        self.run = run
        self.scenario = run.scenario

    @cached_property
    def window(self) -> Window:
        return loaded_window(self.run)

    @cached_property
    def ways(self) -> list[Way]:
        """Every pair of sender and receiver of the plan's flows."""
        pairs: dict[tuple[str, str], int] = {}
        for flow in self.run.flows:
            ends = (flow.client, flow.server) if flow.upload else (flow.server, flow.client)
            pairs[ends] = pairs.get(ends, 0) + 1
        found = [(*ends, self.path(*ends), flows) for ends, flows in pairs.items()]
        return [Way(*way) for way in found if way[2]]

    def hops(self) -> Iterator[Hop]:
        """Every hop of every way, once."""
        yield from dict.fromkeys(hop for way in self.ways for hop in way.hops)

    def path(self, sender: str, receiver: str) -> list[Hop]:
        """The shortest way through routers, as the plan takes it; empty when there is none or no scenario."""
        if self.scenario is None:
            return []
        routers = {node.name for node in self.scenario.testbed.node if node.role == "router"}
        came: dict[str, tuple[str, int, int]] = {}
        queue = [sender]
        for node in queue:
            if node != sender and node not in routers:
                continue
            for index, link in enumerate(self.scenario.testbed.link):
                for side in (0, 1):
                    other = link.ends[1 - side].node
                    if link.ends[side].node == node and other != sender and other not in came:
                        came[other] = (node, index, side)
                        queue.append(other)
        hops = []
        node = receiver
        while node in came:
            node, index, side = came[node]
            hops.append(self._hop(index, side))
        return hops[::-1]

    def _hop(self, index: int, side: int) -> Hop:
        assert self.scenario is not None
        link = self.scenario.testbed.link[index]
        end = link.ends[side]
        shapers = [shaper.rate for shaper in self.scenario.testbed.shaper if shaper.at == end]
        qdisc = self.scenario.stack.of(end.node).qdisc
        own = [rate for word in ("bandwidth", "rate", "maxrate") if (rate := rate_bps(word_after(qdisc, word)))]
        rate = min([link.rate[side], *shapers, *own])
        return Hop(end.node, end.device, index, side, link.rate[side], rate, link.delay[side], qdisc, bool(shapers))

    @cached_property
    def base_rtt_ns(self) -> int | None:
        """The shortest answered ping of the whole run; without pings, nothing is known."""
        times = [ping_ms(self.run, ping).values for ping in self.run.pings]
        values = np.concatenate([*times, np.empty(0)])
        values = values[~np.isnan(values)]
        return round(float(values.min()) * 1e6) if values.size else None

    def bdp_bytes(self, way: Way) -> int | None:
        """Bandwidth-delay product of a way: the bottleneck's rate times the idle round trip."""
        rtt_ns = self.base_rtt_ns
        return None if rtt_ns is None else way.bottleneck.rate_bps * rtt_ns // (8 * NS_PER_S)

    def drops(self, hop: Hop) -> int | None:
        """What the qdiscs at a device dropped during the run; None when nobody counted."""
        table = self.run.qdisc
        if table.is_empty():
            return None
        rows = table.filter((pl.col("node") == hop.node) & (pl.col("device") == hop.device))
        count = pl.col("drops").cast(pl.Int64)
        grown = rows.sort("t_ns").group_by("handle", "kind").agg(count.last() - count.first())
        return max(grown["drops"].to_list(), default=None)


def size_text(count: float) -> str:
    """Bytes for people: "151 KB"."""
    for factor, unit in ((10**6, "MB"), (10**3, "KB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def rate_text(rate: float) -> str:
    """bit/s for people: "100 Mbit/s"."""
    for factor, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if rate >= factor:
            return f"{rate / factor:.3g} {unit}"
    return f"{rate:.0f} bit/s"


def ms_text(ns: float) -> str:
    """ns as ms with three digits."""
    return f"{ns / 1e6:.3g} ms"
