# SPDX-License-Identifier: Apache-2.0
"""The latency of a run: the streams that feel it, and the layers in which it arises.

Pings, calls and requests feel the queues that others fill. Without them, the flows' own data is taken, from the time
when it left the socket: its wait in the socket delays nobody else.
"""

from dataclasses import dataclass

import polars as pl

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Statistics
from hourglass.results.explain.loads import QUEUES, Loads
from hourglass.results.series import NS_PER_MS

TRANSMISSION = ("propagation", "wire", "air")
"""Layers that are no queue: distance, and the time on the medium."""
AT_DEVICE = (*QUEUES, *TRANSMISSION)
"""Layers of the device by which a packet leaves a node."""
SOCKET = ("cwnd", "rwnd", "pacing", "tsq", "push", "read", "reorder", "recovery")
"""Layers of the two sockets."""


@dataclass(frozen=True)
class Victim:
    """A stream that feels the latency. Times in ms. `figure`: the name of its percentiles in `--json`. `idle`: its
    shortest time in the whole run."""

    name: str
    figure: str
    kind: str
    p50: float
    p99: float
    idle: float
    n: int

    @property
    def added(self) -> float:
        """Return the median less the idle time."""
        return self.p50 - self.idle


@dataclass(frozen=True)
class LatencyPart:
    """The mean time of the victims in a layer of a node. `device`: the one from which they leave it, if any."""

    node: str
    device: str
    layer: str
    ms: float
    share: float

    @property
    def is_queue(self) -> bool:
        """Tell if it is a wait for a hop."""
        return self.layer in QUEUES

    @property
    def place(self) -> str:
        """Return node, device and layer as text."""
        return f"{self.node}:{self.device}" if self.device else self.node


def victims(loads: Loads) -> list[Victim]:
    """Return pings, one-way streams, transactions and fetches with their percentiles, the most delayed first."""
    run, summary = loads.run, loads.run.summary
    listed: list[tuple[str, str, str, Statistics, str]] = []
    listed += [(name, f"ping.{name}", "ping", ping, "rtt_ns") for name, ping in summary.ping_ms.items()]
    listed += [(each.id, f"datagrams.{each.id}.owd", "one way", each.owd_ms, "owd_ns") for each in summary.datagrams]
    listed += [
        (each.id, f"transactions.{each.id}.done", "transaction", each.done_ms, "done_ns")
        for each in summary.transactions
    ]
    listed += [(each.id, f"fetches.{each.id}.done", "fetch", each.done_ms, "done_ns") for each in summary.fetches]
    streams = {stream.name: stream for stream in run.streams}
    felt = []
    for name, figure, kind, figures, column in listed:
        if figures.p50 is None or figures.p99 is None or figures.min is None:
            continue
        shortest = run.rows(streams[name])[column].min() if name in streams else None
        idle = float(shortest) / NS_PER_MS if isinstance(shortest, int) else figures.min
        felt.append(Victim(name, figure, kind, figures.p50, figures.p99, min(idle, figures.min), figures.n))
    return sorted(felt, key=lambda victim: -victim.added)


def latency_parts(loads: Loads, names: list[str]) -> list[LatencyPart]:
    """Return the mean time of streams by node, device and layer, the longest first; of the flows below their sockets
    if `names` is empty. Without the packet probe the list is empty."""
    if not loads.sums.height:
        return []
    socket = () if names else SOCKET
    streams = names or [name for load in loads.listed for name in load.streams]
    rows = loads.sums.filter(pl.col("stream").cast(pl.String).is_in(streams) & (pl.col("packets") > 0))
    data = rows.filter(pl.col("data"))
    rows = data if data.height else rows
    number = rows["stream"].n_unique()
    totals: dict[tuple[str, str, str], float] = {}
    for row in rows.iter_rows(named=True):
        hop = loads.hop_at(row["stream"], row["way"], row["node"])
        fixed_ms = loads.netem_ms(hop) if hop else 0.0
        for layer in LAYERS:
            mean = row[f"{layer}_ns"] / row["packets"] / NS_PER_MS
            if not mean or layer in socket:
                continue
            place = (row["node"], hop.device if hop and layer in AT_DEVICE else "")
            if layer == "qdisc" and fixed_ms:  # netem's delay is distance, not a queue
                distance = (*place, "propagation")
                totals[distance] = totals.get(distance, 0) + min(mean, fixed_ms)
                mean -= min(mean, fixed_ms)
            totals[*place, layer] = totals.get((*place, layer), 0) + mean
    total_ms = sum(totals.values())
    parts = [
        LatencyPart(node, device, layer, ms / number, ms / total_ms)
        for (node, device, layer), ms in totals.items()
        if ms
    ]
    return sorted(parts, key=lambda part: -part.ms)
