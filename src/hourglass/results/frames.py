# SPDX-License-Identifier: Apache-2.0
"""Record tables as frames: every column that is declared, streams by their names, packets by layers."""

from collections.abc import Sequence
from typing import Protocol

import polars as pl

from hourglass.contract import probe, records
from hourglass.contract.plan import Path, Stream
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS

WAYS = pl.Enum(probe.WAYS)
KEYS = ("t_ns", "end_ns", "stream", "way", "packet", "data", "visit", "node")


def complete(frame: pl.DataFrame | None, table: str) -> pl.DataFrame:
    """With every column that is declared of the table; what was not written is null. None: without rows."""
    if frame is None:
        return records.empty(table)
    missing = {name: kind for name, kind in records.SCHEMAS[table].items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())


class Named(Protocol):
    """A stream, of the plan or of programs."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def named(frame: pl.DataFrame, streams: Sequence[Named]) -> pl.DataFrame:
    """With the streams' names in place of their ids; null: none."""
    if "stream" not in frame.columns:
        return frame
    names = {one.id: one.name for one in streams}
    kind = pl.Enum(list(names.values()))
    return frame.with_columns(pl.col("stream").replace_strict(names, default=None, return_dtype=kind))


def coded(frame: pl.DataFrame, nodes: Sequence[str]) -> pl.DataFrame:
    """The columns `node` and `way` as enumerations: a million rows stay small and quick."""
    return frame.with_columns(pl.col("node").cast(pl.Enum(nodes)), pl.col("way").cast(WAYS))


def of(*streams: Named) -> pl.Expr:
    """The polars condition "this row is of one of these streams"."""
    return pl.col("stream").is_in([one.name for one in streams])


def long(packets: pl.DataFrame) -> pl.DataFrame:
    """A row per packet, node and layer that took time: the `KEYS` of `Recording.packets`, then `layer` and `ns`.

    In the order of `packets`, a packet's layers in the order in which it passed them."""
    rows = packets.lazy().select(*KEYS, *LAYER_COLUMNS).with_row_index("row")
    kind = pl.Enum(LAYERS)
    parts = [
        rows.filter(pl.col(column) != 0).select(
            "row", *KEYS, pl.lit(layer, dtype=kind).alias("layer"), pl.col(column).alias("ns")
        )
        for layer, column in zip(LAYERS, LAYER_COLUMNS, strict=True)
    ]
    return pl.concat(parts).sort("row", "layer").drop("row").collect()


def path_order(nodes: Sequence[str], streams: Sequence[Stream], paths: Sequence[Path]) -> list[str]:
    """The nodes in the order in which packets to the server pass them, then those that none passes."""
    if not streams:
        return list(nodes)
    client, server = streams[0].client, streams[0].server
    passed = {(path.client, path.server): [path.client, *(hop.to_node for hop in path.there)] for path in paths}
    places: dict[str, list[int]] = {}
    for stream in streams:
        for place, node in enumerate(passed.get((stream.client, stream.server), ())):
            places.setdefault(node, []).append(place)
    between = sorted((sum(found) / len(found), node) for node, found in places.items() if node not in (client, server))
    return list(dict.fromkeys([client, *(node for _, node in between), server, *nodes]))
