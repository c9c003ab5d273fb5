# SPDX-License-Identifier: Apache-2.0
"""What lints look at: the ways of the flows through the testbed, hop by hop, and the recording's tables."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from hourglass.contract.plan import Hop
from hourglass.results.recording import Recording
from hourglass.results.series import Window, loaded_window, ping_ms

FRAME_BYTES = 1514
"""A full Ethernet frame as a qdisc counts it."""
AIR_PERCENT = 50
"""Of a radio's PHY rate: aggregates carry more (802.11n), so a finding is no false alarm where the rate is fixed."""
NS_PER_S = 10**9


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
        return min(self.hops, key=carries_bps)

    @property
    def rate_bps(self) -> int:
        return carries_bps(self.bottleneck)


class Subject:
    """A recording as lints see it. What it lacks is empty."""

    def __init__(self, run: Recording) -> None:
        self.run = run
        self.scenario = run.scenario
        self.paths = {(path.client, path.server): path for path in run.paths}

    @cached_property
    def window(self) -> Window:
        return loaded_window(self.run)

    @cached_property
    def ways(self) -> list[Way]:
        """Every pair of sender and receiver of the flows whose path is known."""
        found: dict[tuple[str, str], Way] = {}
        for flow in self.run.flows:
            if path := self.paths.get((flow.client, flow.server)):
                ends = (flow.client, flow.server) if flow.upload else (flow.server, flow.client)
                way = found.get(ends, Way(*ends, path.there if flow.upload else path.back, 0))
                found[ends] = replace(way, flows=way.flows + 1)
        return list(found.values())

    @property
    def hops(self) -> list[Hop]:
        """Every hop of every way, once."""
        return list({place(hop): hop for way in self.ways for hop in way.hops}.values())

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
        return None if rtt_ns is None else way.rate_bps * rtt_ns // (8 * NS_PER_S)

    def drops(self, hop: Hop) -> int | None:
        """What the qdiscs at a device dropped during the run; None when nobody counted."""
        table = self.run.qdisc
        if table.is_empty():
            return None
        rows = table.filter((pl.col("node") == hop.node) & (pl.col("device") == hop.device))
        count = pl.col("drops").cast(pl.Int64)
        grown = rows.sort("t_ns").group_by("handle", "kind").agg(count.last() - count.first())
        return max(grown["drops"].to_list(), default=None)


def place(hop: Hop) -> str:
    """Node and device, "client:eth0"."""
    return f"{hop.node}:{hop.device}"


def kind(hop: Hop) -> str:
    """The kind of its qdisc."""
    return hop.qdisc.split()[0]


def carries_bps(hop: Hop) -> int:
    """What a hop carries for certain: its rate, but in the air `AIR_PERCENT` of it."""
    return hop.rate_bps if hop.medium == "cable" else min(hop.rate_bps, hop.line_bps * AIR_PERCENT // 100)


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
