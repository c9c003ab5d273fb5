# SPDX-License-Identifier: Apache-2.0
"""Time by node and layer of flows, pings and transactions.

A packet counts in the window in which it ended. `n`, `mean` and `share` are exact: differences of the probe's sums over
all packets. `p50` and `p99` are of the packets that have rows (`measure.packets`), including packets that spent no time
in the layer; null without rows. Layers without any time are left out.

* Flows: data packets of all flows. `mean` is of the `n` that passed the node, `share` of the time of all packets from
  write to read, all nodes together.
* Pings: a node's layer is the sum over both directions, request and answer. `mean` is the requests' mean plus the
  answers', `n` the answers. Percentiles are of the round trips with rows of both directions: request and answer
  have the same number.
* Transactions: the same of their data packets. An answer begins at the ns in which its request ended. If a message has
  several packets, a figure is of one of them.
* Connections of programs: the data packets, in the whole run, of the direction with more bytes; `share` is of the time
  of all of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import PingStream, Stream
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.contract.summary import Anatomy, LayerFigures
from hourglass.results.connections import largest
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, Window
from hourglass.results.stats import rounded


def window_sums(run: Recording, window: Window) -> pl.DataFrame:
    """Return `stream, way, data, node, packets` and the layer columns (ns): all packets that ended in (start, end]."""
    keys, sums = ["stream", "way", "data", "node"], ["packets", *LAYER_COLUMNS]

    def totals_at(t_ns: int) -> pl.DataFrame:
        rows = run.layer_totals.filter(pl.col("t_ns") <= t_ns).sort("t_ns", maintain_order=True)
        return rows.group_by(keys, maintain_order=True).agg(pl.col(sums).last().cast(pl.Int64))

    before = totals_at(window.start_ns).rename({name: f"{name}_before" for name in sums})
    joined = totals_at(window.end_ns).join(before, on=keys, how="left")
    return joined.select(*keys, *(pl.col(name) - pl.col(f"{name}_before").fill_null(0) for name in sums))


def layers_ms(run: Recording, window: Window) -> Anatomy:
    """Return the anatomy of the flows' data packets."""
    if run.layer_totals.is_empty():
        return {}
    data = pl.col("data") & belongs_to(*run.flows)
    nodes = window_sums(run, window).filter(data).group_by("node").agg(pl.col("packets", *LAYER_COLUMNS).sum())
    rows = run.packets.filter(data & _ended_in(window))
    means = {row["node"]: _means(row) for row in nodes.iter_rows(named=True)}
    counts = {row["node"]: row["packets"] for row in nodes.iter_rows(named=True)}
    return _anatomy(run.path_order, counts, means, rows, weights=counts)


def data_packets(run: Recording, window: Window) -> int:
    """Return the number of the flows' data packets that ended in the window."""
    ended = window_sums(run, window).filter(pl.col("data") & belongs_to(*run.flows))
    return int(ended.group_by("stream", "way").agg(pl.col("packets").max())["packets"].sum())


def trip_layers_ms(run: Recording, streams: Sequence[Stream], window: Window) -> dict[str, Anatomy]:
    """Return {stream: the anatomy of its packets in both directions}: of a ping all, of a connection those with
    data."""
    if run.layer_totals.is_empty():
        return {stream.name: {} for stream in streams}
    sums = window_sums(run, window)
    return {stream.name: _both_ways(run, stream, sums, window) for stream in streams}


def _both_ways(run: Recording, stream: Stream, sums: pl.DataFrame, window: Window) -> Anatomy:
    numbered = isinstance(stream, PingStream)
    selection = belongs_to(stream) if numbered else pl.col("data") & belongs_to(stream)
    means: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    for row in sums.filter(selection).iter_rows(named=True):
        node = means.setdefault(row["node"], dict.fromkeys(LAYERS, 0.0))
        for layer, mean in _means(row).items():
            node[layer] += mean
        if row["way"] == "down":
            counts[row["node"]] = row["packets"]
    return _anatomy(run.path_order, counts, means, _round_trips(run.packets.filter(selection), numbered, window))


def connection_layers_ms(run: Recording) -> dict[str, Anatomy]:
    """Return {connection: the anatomy of its data packets, in the direction with more of them}, of the programs'
    connections with the most bytes, those first."""
    if run.layer_totals.is_empty():
        return {}
    whole_run = Window(-1, 2**62)
    sums, anatomies = window_sums(run, whole_run), {}
    for connection in largest(run.connections):
        selection = pl.col("data") & belongs_to(connection) & (pl.col("way") == ("up" if connection.upload else "down"))
        node_rows = {row["node"]: row for row in sums.filter(selection).iter_rows(named=True)}
        counts = {node: row["packets"] for node, row in node_rows.items()}
        means = {node: _means(row) for node, row in node_rows.items()}
        if node_rows:
            anatomies[connection.name] = _anatomy(
                run.path_order, counts, means, run.packets.filter(selection), weights=counts
            )
    return anatomies


def _ended_in(window: Window) -> pl.Expr:
    return (pl.col("end_ns") > window.start_ns) & (pl.col("end_ns") <= window.end_ns)


def _means(row: dict[str, Any]) -> dict[str, float]:
    """Return the mean ms of a packet in each layer, of a row of sums."""
    if not row["packets"]:
        return dict.fromkeys(LAYERS, 0.0)
    return {layer: row[f"{layer}_ns"] / row["packets"] / NS_PER_MS for layer in LAYERS}


def _round_trips(rows: pl.DataFrame, numbered: bool, window: Window) -> pl.DataFrame:
    """Return a row per round trip and node: `node` and the layer columns, summed over both directions. `numbered`:
    request and answer have the same number; several may arrive, and be answered, in the same ns."""
    up, down = (rows.filter(pl.col("way") == direction) for direction in ("up", "down"))
    answers = down.filter(_ended_in(window)).select(trip="packet" if numbered else "t_ns", packet="packet").unique()
    requests = up.select(trip="packet" if numbered else "end_ns", packet="packet").unique()
    trips = requests.select("trip").join(answers.select("trip"), on="trip")
    parts = [
        side.join(ends.join(trips, on="trip"), on="packet").select("trip", "node", *LAYER_COLUMNS)
        for side, ends in ((up, requests), (down, answers))
    ]
    return pl.concat(parts).group_by("trip", "node").agg(pl.col(LAYER_COLUMNS).sum())


def _anatomy(
    order: list[str],
    counts: dict[str, int],
    means: dict[str, dict[str, float]],
    rows: pl.DataFrame,
    weights: dict[str, int] | None = None,
) -> Anatomy:
    """Return the anatomy. `weights`: the number of packets in a mean of a node; without, each is a part of one round
    trip."""
    weight = weights or dict.fromkeys(means, 1)
    total = sum(sum(layers.values()) * weight[node] for node, layers in means.items())
    anatomy: Anatomy = {}
    for node in order:
        samples = rows.filter(pl.col("node") == node)
        for layer, mean in means.get(node, {}).items():
            if mean > 0:
                p50, p99 = _percentiles(samples[f"{layer}_ns"])
                anatomy.setdefault(node, {})[layer] = LayerFigures(
                    n=counts.get(node, 0),
                    p50=p50,
                    p99=p99,
                    mean=rounded(mean),
                    share=rounded(mean * weight[node] / total),
                )
    return anatomy


def _percentiles(ns: pl.Series) -> tuple[float, float] | tuple[None, None]:
    """Return p50 and p99 in ms."""
    if ns.is_empty():
        return None, None
    middle, high = np.percentile(ns.to_numpy(), [50, 99]) / NS_PER_MS
    return rounded(float(middle)), rounded(float(high))
