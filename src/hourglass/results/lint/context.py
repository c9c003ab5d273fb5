# SPDX-License-Identifier: Apache-2.0
"""The input of lints: the flows' paths through the testbed, hop by hop, and the recording's tables."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from hourglass.contract.plan import FlowStream, Hop
from hourglass.qdisc_line import QdiscLine
from hourglass.results.anatomy import window_sums
from hourglass.results.frames import belongs_to
from hourglass.results.hop_states import HopState, HopStates
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, Window, loaded_window, ping_ms
from hourglass.scenario import check_lan

AIR_PERCENT = 50
"""A share of a radio's PHY rate. Aggregates carry more (802.11n), so a finding at a fixed rate is never a false
alarm."""
NS_PER_S = 10**9


@dataclass(frozen=True)
class FlowPath:
    """The hops from one sender to its receiver, and the flows on them."""

    sender: str
    receiver: str
    hops: list[HopState]
    flows: tuple[FlowStream, ...]

    @property
    def bottleneck(self) -> HopState:
        """Return the first of the slowest hops."""
        return min(self.hops, key=carries_bps)

    @property
    def rate_bps(self) -> int:
        return carries_bps(self.bottleneck)


class LintContext:
    """A recording as lints see it. Missing parts are empty."""

    def __init__(self, run: Recording) -> None:
        self.run = run
        self.scenario = run.scenario
        self.paths = {(path.client, path.server): path for path in run.paths}
        self.switches = check_lan.switches(self.scenario.testbed.node if self.scenario else ())

    @cached_property
    def window(self) -> Window:
        return loaded_window(self.run)

    @cached_property
    def flow_paths(self) -> list[FlowPath]:
        """Yield every pair of sender and receiver of the flows whose path is known."""
        paths_by_ends: dict[tuple[str, str], FlowPath] = {}
        for flow in self.run.flows:
            if path := self.paths.get((flow.client, flow.server)):
                ends = (flow.client, flow.server) if flow.upload else (flow.server, flow.client)
                hops = [self.states(hop)[0] for hop in (path.there if flow.upload else path.back)]
                flow_path = paths_by_ends.get(ends, FlowPath(*ends, hops, ()))
                paths_by_ends[ends] = replace(flow_path, flows=(*flow_path.flows, flow))
        return list(paths_by_ends.values())

    @property
    def hops(self) -> list[HopState]:
        """Return every hop of every path, once, in all its states."""
        hops = {device_name(hop): hop for flow_path in self.flow_paths for hop in flow_path.hops}
        return [state for hop in hops.values() for state in self.states(hop)]

    def states(self, hop: Hop) -> list[HopState]:
        """Return a hop with each qdisc that was there in the window, that with most bytes first."""
        return self._states.of(hop)

    @cached_property
    def _states(self) -> HopStates:
        return HopStates(self.run, self.window)

    @cached_property
    def base_rtt_ns(self) -> int | None:
        """Return the shortest answered ping of the whole run; None without pings."""
        times = [ping_ms(self.run, ping).values for ping in self.run.pings]
        values = np.concatenate([*times, np.empty(0)])
        values = values[~np.isnan(values)]
        return round(float(values.min()) * 1e6) if values.size else None

    def bdp_bytes(self, flow_path: FlowPath) -> int | None:
        """Return the bandwidth-delay product of a path: the bottleneck's rate times the idle round trip."""
        rtt_ns = self.base_rtt_ns
        return None if rtt_ns is None else flow_path.rate_bps * rtt_ns // (8 * NS_PER_S)

    def ring_ms(self, flow_path: FlowPath) -> float | None:
        """Return the mean wait of the flows' data packets in the bottleneck's NIC, in ms; None without counters."""
        if self.run.layer_totals.is_empty():
            return None
        selection = pl.col("data") & (pl.col("node") == flow_path.bottleneck.node) & belongs_to(*flow_path.flows)
        rows = window_sums(self.run, self.window).filter(selection)
        packets = int(rows["packets"].sum())
        return float(rows["ring_ns"].sum()) / packets / NS_PER_MS if packets else None

    def drops(self, hop: HopState) -> int | None:
        """Return the drops of a device's qdiscs during the run, or of that with the hop's handle; None without
        counters."""
        table = self.run.qdisc
        if table.is_empty():
            return None
        rows = table.filter((pl.col("node") == hop.node) & (pl.col("device") == hop.device))
        count = pl.col("drops").cast(pl.Int64)
        if hop.handle:  # its counters began within the run
            return max(rows.filter(pl.col("handle") == hop.handle)["drops"].to_list(), default=None)
        grown = rows.sort("t_ns").group_by("handle", "kind").agg(count.last() - count.first())
        return max(grown["drops"].to_list(), default=None)


def device_name(hop: Hop) -> str:
    """Return node and device, "client:eth0"."""
    return f"{hop.node}:{hop.device}"


def queue_name(hop: HopState) -> str:
    """Return node and device, and the handle of a qdisc that the set-up did not make: "client:eth0 (10:)"."""
    return f"{device_name(hop)} ({hop.handle})" if hop.handle else device_name(hop)


def line_of(hop: Hop) -> QdiscLine:
    """Return the qdisc of a hop."""
    return QdiscLine(hop.qdisc, hop.line_bps)


def carries_bps(hop: Hop) -> int:
    """Return the rate that a hop certainly carries: its rate, or `AIR_PERCENT` of it in the air."""
    return hop.rate_bps if hop.medium == "cable" else min(hop.rate_bps, hop.line_bps * AIR_PERCENT // 100)


def size_text(count: float) -> str:
    """Return bytes as text: "151 KB"."""
    for factor, unit in ((10**6, "MB"), (10**3, "KB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def rate_text(rate: float) -> str:
    """Return bit/s as text: "100 Mbit/s"."""
    for factor, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if rate >= factor:
            return f"{rate / factor:.3g} {unit}"
    return f"{rate:.0f} bit/s"


def ms_text(ns: float) -> str:
    """Return ns as ms with three digits."""
    return f"{ns / 1e6:.3g} ms"
