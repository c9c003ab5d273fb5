# SPDX-License-Identifier: Apache-2.0
"""Builds packets' journeys for the page: the time of a packet in each layer, and the packets ahead of it in each queue.

The probe follows one packet in N. Of the followed packets, a page has the slowest and the median one of each stream,
direction and stretch of the run. A packet ahead of another one was already in the layer at the same node when the other
came, and left before it. Only followed packets count. The size of a device's queues is that of the sample before.
"""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.results import frames
from hourglass.results.recording import Recording

MOST_JOURNEYS = 480
MOST_STRETCHES = 60
QUEUES = {
    "qdisc": ("qdisc_packets", "qdisc_bytes"),
    "txq": ("txq_packets", "txq_bytes"),
    "ring": ("ring_skbs", "ring_bytes"),
}
"""The layers that are queues of a device: their columns in the table `queue`."""


def journeys(run: Recording) -> dict[str, Any] | None:
    """Return the journeys, with the names that they index; None without followed packets."""
    packets = run.packets.drop_nulls("stream")
    if packets.is_empty():
        return None
    visits = frames.visits(packets)
    streams = visits["stream"].unique(maintain_order=True).to_list()
    nodes = visits["node"].unique(maintain_order=True).to_list()
    queues = _Queues(run, visits, streams)
    numbered = {ping.name for ping in run.pings}
    choice = _choice(visits.filter(~_is_answer(numbered)), run.end_ns)
    chosen = visits.join(choice, on="packet_id", how="semi")
    answers = _answers(visits, numbered)
    journey_list = []
    by_packet = chosen.partition_by("packet_id", as_dict=True, maintain_order=True)
    for (packet_id,), rows in by_packet.items():
        first = rows.row(0, named=True)
        parts = _parts(rows, nodes, queues)
        key = (first["stream"], first["packet"])
        if first["way"] == "up" and key in answers:
            parts += _parts(answers[key], nodes, queues)
        values = [first[name] for name in ("packet", "t_ns", "data", "bytes")]
        journey_list.append([streams.index(first["stream"]), int(first["way"] == "down"), *values, parts, packet_id])
    journey_list.sort(key=lambda journey: (journey[3], journey[-1]))
    followed = visits["packet_id"].n_unique()
    return {"streams": streams, "nodes": nodes, "layers": list(LAYERS), "one_in": _one_in(run, followed),
            "packets": [journey[:-1] for journey in journey_list]}  # fmt: skip


def _one_in(run: Recording, followed: int) -> int:
    """Return N, if one packet in N is followed."""
    keys = ["stream", "way", "data", "node"]
    last = run.layer_totals.sort("t_ns").group_by(keys).agg(pl.col("packets").last())
    total = last.group_by("stream", "way", "data").agg(pl.col("packets").max())["packets"].sum()
    return max(1, round(total / followed))


def _choice(visits: pl.DataFrame, end_ns: int) -> pl.DataFrame:
    """Return the `packet_id` of the slowest and the median packet of each stream, direction and stretch."""
    ends = visits.filter(pl.col("data") | (pl.col("bytes") > 0)).unique("packet_id", keep="first", maintain_order=True)
    kinds = ends.select("stream", "way").n_unique()
    stretches = max(4, min(MOST_STRETCHES, MOST_JOURNEYS // max(2 * kinds, 1)))
    ends = ends.with_columns(
        (pl.col("t_ns") * stretches // max(end_ns, 1)).alias("stretch"), (pl.col("end_ns") - pl.col("t_ns")).alias("ns")
    )
    ordered = pl.col("packet_id").sort_by("ns", "packet_id")
    groups = ends.group_by("stream", "way", "stretch").agg(
        ordered.last().alias("slow"), ordered.get(pl.len() // 2).alias("middle")
    )
    return pl.DataFrame({"packet_id": pl.concat([groups["slow"], groups["middle"]]).unique()})


def _is_answer(numbered: set[str]) -> pl.Expr:
    """The polars condition "this packet answers a ping": it belongs to the journey of the request."""
    return pl.col("stream").is_in(sorted(numbered)) & (pl.col("way") == "down")


def _answers(visits: pl.DataFrame, numbered: set[str]) -> dict[tuple[str, int], pl.DataFrame]:
    """Return the visits of the answers to pings by stream and number."""
    rows = visits.filter(_is_answer(numbered))
    return {(key[0], key[1]): part for key, part in rows.partition_by("stream", "packet", as_dict=True).items()}


def _parts(rows: pl.DataFrame, nodes: list[str], queues: "_Queues") -> list[list[Any]]:
    """Return the layers that took time: [node, layer, start (ns), ns, and for a queue what was ahead]."""
    parts = []
    for row in rows.iter_rows(named=True):
        start = row["start_ns"]
        for index, (layer, column) in enumerate(zip(LAYERS, LAYER_COLUMNS, strict=True)):
            if row[column]:
                part = [nodes.index(row["node"]), index, start, row[column]]
                parts.append(part + queues.ahead(row, layer, start, start + row[column]))
            start += row[column]
    return parts


class _Queues:
    """The stays of all followed packets in the queues, and the samples of the devices."""

    def __init__(self, run: Recording, visits: pl.DataFrame, streams: list[str]) -> None:
        self.devices = _devices(run)
        self.samples = run.queues.sort("t_ns").partition_by("node", "device", as_dict=True)
        self.stays: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {}
        before = pl.col("start_ns")
        number = {name: index for index, name in enumerate(streams)}
        for layer, column in zip(LAYERS, LAYER_COLUMNS, strict=True):
            if layer in QUEUES:
                stays = visits.filter(pl.col(column) > 0).select(
                    "node", "way", "stream", enter=before, leave=before + pl.col(column)
                )
                for (node, way), part in stays.sort("enter").partition_by("node", "way", as_dict=True).items():
                    stream_numbers = part["stream"].cast(pl.String).replace_strict(number).to_numpy()
                    self.stays[node, way, layer] = (part["enter"].to_numpy(), part["leave"].to_numpy(), stream_numbers)
            before = before + pl.col(column)

    def ahead(self, row: dict[str, Any], layer: str, enter: int, leave: int) -> list[Any]:
        """Return [[stream, number of packets] …, packets that overtook it, [time, packets, bytes] of the queue]."""
        if layer not in QUEUES:
            return []
        enters, leaves, streams = self.stays[row["node"], row["way"], layer]
        earlier = np.searchsorted(enters, enter, side="right")
        before = (leaves[:earlier] > enter) & (leaves[:earlier] < leave)
        counts = sorted(Counter(streams[:earlier][before].tolist()).items())
        overtakers = int(((enters[earlier:] < leave) & (leaves[earlier:] < leave)).sum())
        return [[list(pair) for pair in counts], overtakers, self._sample(row, layer, enter)]

    def _sample(self, row: dict[str, Any], layer: str, enter: int) -> list[int]:
        """Return the sample of the device's queue at or before a time; empty without."""
        device = self.devices.get((row["stream"], row["way"], row["node"]))
        samples = self.samples.get((row["node"], device))
        if samples is None:
            return []
        index = int(np.searchsorted(samples["t_ns"].to_numpy(), enter, side="right")) - 1
        return [samples[name][index] or 0 for name in ("t_ns", *QUEUES[layer])] if index >= 0 else []


def _devices(run: Recording) -> dict[tuple[str, str, str], str]:
    """Return the sending device by stream, direction and node of the path."""
    paths = {(path.client, path.server): path for path in run.paths}
    devices: dict[tuple[str, str, str], str] = {}
    for stream in run.streams:
        path = paths.get((stream.client, stream.server))
        if path is None:
            continue
        back = [(hop.node, hop.device) for hop in path.back] or [(hop.to_node, hop.to_device) for hop in path.there]
        for way, hops in (("up", [(hop.node, hop.device) for hop in path.there]), ("down", back)):
            devices |= {(stream.name, way, node): device for node, device in hops}
    return devices
