# SPDX-License-Identifier: Apache-2.0
"""Record tables as frames: every declared column, streams by their names, packets by layers."""

from collections.abc import Sequence
from typing import Protocol

import polars as pl

from hourglass.contract import probe, record_tables
from hourglass.contract.plan import Path, Stream
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS

WAYS = pl.Enum(probe.DIRECTIONS)
KEYS = ("t_ns", "end_ns", "stream", "way", "packet", "data", "visit", "node")


def complete(frame: pl.DataFrame | None, table: str) -> pl.DataFrame:
    """Return the table with all its declared columns; missing ones are null. None becomes an empty table."""
    if frame is None:
        return record_tables.empty(table)
    missing = {name: dtype for name, dtype in record_tables.SCHEMAS[table].items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())


class NamedStream(Protocol):
    """A stream, of the plan or of programs."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def with_stream_names(frame: pl.DataFrame, streams: Sequence[NamedStream]) -> pl.DataFrame:
    """Replace the streams' ids by their names. An unknown id becomes null."""
    if "stream" not in frame.columns:
        return frame
    names = {stream.id: stream.name for stream in streams}
    dtype = pl.Enum(list(names.values()))
    return frame.with_columns(pl.col("stream").replace_strict(names, default=None, return_dtype=dtype))


def with_enums(frame: pl.DataFrame, nodes: Sequence[str]) -> pl.DataFrame:
    """Return the columns `node` and `way` as enumerations: a million rows stay small and quick."""
    return frame.with_columns(pl.col("node").cast(pl.Enum(nodes)), pl.col("way").cast(WAYS))


def belongs_to(*streams: NamedStream) -> pl.Expr:
    """The polars condition "this row is of one of these streams"."""
    return pl.col("stream").is_in([stream.name for stream in streams])


def long_form(packets: pl.DataFrame) -> pl.DataFrame:
    """Return a row per packet, node and layer that took time: the `KEYS` of `Recording.packets`, then `layer` and `ns`.

    The order is that of `packets`, and within a packet that of the layers that it passed.
    """
    rows = packets.lazy().select(*KEYS, *LAYER_COLUMNS).with_row_index("row")
    kind = pl.Enum(LAYERS)
    parts = [
        rows.filter(pl.col(column) != 0).select(
            "row", *KEYS, pl.lit(layer, dtype=kind).alias("layer"), pl.col(column).alias("ns")
        )
        for layer, column in zip(LAYERS, LAYER_COLUMNS, strict=True)
    ]
    return pl.concat(parts).sort("row", "layer").drop("row").collect()


def visits(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of table `packet` with `visit_id`, the `packet_id` of the packet's visits, and the times at which
    it came to the node and left it."""
    spent = pl.sum_horizontal(LAYER_COLUMNS)
    packet_id = (pl.col("visit") == 0).cum_sum().alias("packet_id")
    rows = packets.with_row_index("visit_id", 1).with_columns(packet_id)
    leave = pl.col("t_ns") + spent.cum_sum().over("packet_id")
    return rows.with_columns(leave.alias("leave_ns"), (leave - spent).alias("start_ns"))


def path_order(nodes: Sequence[str], streams: Sequence[Stream], paths: Sequence[Path]) -> list[str]:
    """Return the nodes in the order in which packets to the server first pass them, then all others."""
    if not streams:
        return list(nodes)
    client, server = streams[0].client, streams[0].server
    passed = {(path.client, path.server): [path.client, *(hop.to_node for hop in path.there)] for path in paths}
    positions: dict[str, list[int]] = {}
    for stream in streams:
        for position, node in enumerate(dict.fromkeys(passed.get((stream.client, stream.server), ()))):
            positions.setdefault(node, []).append(position)
    ordered = sorted(
        (sum(indices) / len(indices), node) for node, indices in positions.items() if node not in (client, server)
    )
    return list(dict.fromkeys([client, *(node for _, node in ordered), server, *nodes]))
