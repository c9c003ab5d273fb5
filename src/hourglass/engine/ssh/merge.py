# SPDX-License-Identifier: Apache-2.0
"""The records of several machines → one file, by one clock: ours.

Times at which something happened are turned from each machine's clock into ours. Instants at which samples were due
stay what they are called: every machine took them by its own clock, which began with ours. Of devices only those of the
plan remain, by its names; what a machine tells of itself is its node's.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hourglass.contract.plan import Plan
from hourglass.contract.records import TABLES
from hourglass.engine.ssh import ways
from hourglass.engine.ssh.ways import Part

HAPPENED = ("ping", "datagram", "fetch", "transaction", "flow")
"""Tables whose rows are of when something happened."""
ARROW = {
    "bool": pa.bool_(), "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "i64": pa.int64(), "text": pa.string(),
}  # fmt: skip
IFB = "ifb4"
"""Begins the names of devices that a plan itself makes."""


def merge(plan: Plan, parts: Sequence[Part], out: Path) -> list[str]:
    """Writes the records of all; gives what there is to warn of."""
    read = {part.node: dict(_read(part.records)) for part in parts}
    warnings = [*ways.set_clocks(parts)]
    with out.open("wb") as sink:
        for name in TABLES:
            pieces = {part.node: _of(name, read[part.node][name], part) for part in parts if name in read[part.node]}
            if name == "datagram":
                pieces = dict(ways.joined(plan, pieces, parts, warnings))
            elif name == "ping":
                pieces = {node: ways.two_ways(plan, piece, parts, warnings) for node, piece in pieces.items()}
            elif name == "clock":
                pieces = {"": pa.Table.from_pylist([ways.row(part) for part in parts])}
            if pieces:
                _write(sink, name, [*pieces.values()])
    return warnings


def _read(path: Path) -> Iterator[tuple[str, pa.Table]]:
    """Every table of a file whose streams follow one another."""
    found: dict[str, list[pa.Table]] = {}
    with pa.memory_map(str(path)) as source:
        while source.tell() < source.size():
            with pa.ipc.open_stream(source) as stream:
                found.setdefault(stream.schema.metadata[b"table"].decode(), []).append(stream.read_all())
    for name, pieces in found.items():
        yield name, pa.concat_tables(pieces, promote_options="default")  # a late column is in those that have it


def _write(sink: Any, name: str, pieces: Sequence[pa.Table]) -> None:
    """One stream, in the order of time; of one time, in that of the pieces."""
    there = {column for piece in pieces for column in piece.column_names}
    fields = [
        pa.field(one.name, ARROW[one.type], nullable=one.optional or one.late)
        for one in TABLES[name].columns
        if not one.late or one.name in there
    ]
    schema = pa.schema(fields, metadata={"table": name})
    table = pa.concat_tables([_complete(piece, schema).cast(schema) for piece in pieces])
    order = np.argsort(table["t_ns"].to_numpy(), kind="stable")
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_table(table.take(order).combine_chunks())


def _complete(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """With all columns: a late one is not in the file of a kernel that does not fill it."""
    empty = {one.name: pa.nulls(piece.num_rows, one.type) for one in schema if one.name not in piece.column_names}
    return pa.table({one: empty[one] if one in empty else piece[one] for one in schema.names})


def _of(name: str, table: pa.Table, part: Part) -> pa.Table:
    """A machine's table in the plan's names, its times in ours."""
    names = {interface: device for device, interface in part.devices.items()}
    if name == "fact":
        return _facts(table, part.node, names)
    if "device" in table.column_names:
        devices: list[Any] = table["device"].to_pylist()
        found = [names.get(one, one if one.startswith(IFB) else None) for one in devices]
        known: Any = pa.array([one is not None for one in found], pa.bool_())
        return ways.changed(table, "device", pa.array(found, pa.string())).filter(known)
    if name in HAPPENED:
        return ways.changed(table, "t_ns", pa.array(part.ours(table["t_ns"].to_numpy()), pa.int64()))
    return table


def _facts(table: pa.Table, node: str, names: Mapping[str, str]) -> pa.Table:
    """Of interfaces that the plan does not name nothing is told."""
    rows = []
    for row in table.to_pylist():
        kind, _, rest = row["key"].partition(".")
        if kind in ("driver", "offload", "bql"):
            interface, dot, what = rest.partition(".")
            if interface not in names:
                continue
            row["key"] = f"{kind}.{names[interface]}{dot}{what}"
        elif kind == "tc":
            words = row["value"].split(" ")
            if not any(word in names or word.startswith(IFB) for word in words):
                continue
            row["value"] = " ".join(names.get(word, word) for word in words)
        rows.append({**row, "node": node})
    return pa.Table.from_pylist(rows, schema=table.schema)
