# SPDX-License-Identifier: Apache-2.0
"""Merge the records of several hosts into one file, by the local clock.

Times of occurrences are converted from each host's clock. Instants at which samples were due keep their nominal time:
every host took them by its own clock, which started with the local one. Only the plan's devices remain, under the
plan's names. Facts about a host belong to its node."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hourglass.contract.arrow_types import ARROW
from hourglass.contract.plan import Plan
from hourglass.contract.record_tables import TABLES
from hourglass.engine.ssh import one_way_delay
from hourglass.engine.ssh.one_way_delay import HostRecords
from hourglass.errors import GuestError

OCCURRENCES = ("ping", "datagram", "fetch", "transaction", "flow")
"""Tables whose rows have the time of an occurrence."""
IFB = "ifb4"
"""The prefix of devices that a plan creates."""


def merge(plan: Plan, host_records: Sequence[HostRecords], out: Path) -> list[str]:
    """Write the merged records; return warnings. Raises GuestError for invalid records: a host may send anything."""
    try:
        return _merged(plan, host_records, out)
    except (
        pa.ArrowException,
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        problem = f"the machines' records cannot be joined: {type(error).__name__}: {reason}"
        raise GuestError(problem, code="records-apart") from error


def _merged(plan: Plan, host_records: Sequence[HostRecords], out: Path) -> list[str]:
    tables_by_node = {records.node: dict(_read(records.records)) for records in host_records}
    warnings = [*one_way_delay.set_clocks(host_records)]
    with out.open("wb") as sink:
        for name in TABLES:
            pieces = {
                records.node: _convert(name, tables_by_node[records.node][name], records)
                for records in host_records
                if name in tables_by_node[records.node]
            }
            if name == "datagram":
                pieces = dict(one_way_delay.join_datagrams(plan, pieces, host_records, warnings))
            elif name == "ping":
                pieces = {
                    node: one_way_delay.ping_delays(plan, piece, host_records, warnings)
                    for node, piece in pieces.items()
                }
            elif name == "clock":
                pieces = {"": pa.Table.from_pylist([one_way_delay.row(records) for records in host_records])}
            if pieces:
                _write(sink, name, [*pieces.values()])
    return warnings


def _stream(source: pa.NativeFile) -> pa.RecordBatchStreamReader:
    try:
        return pa.ipc.open_stream(source)
    except OSError as error:  # Arrow's error for an invalid schema
        raise ValueError(str(error)) from None


def _read(path: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield every table of a file of consecutive streams."""
    batches: dict[str, list[pa.Table]] = {}
    with pa.memory_map(str(path)) as source:
        while source.tell() < source.size():
            with _stream(source) as stream:
                table = stream.read_all()
                table.validate(full=True)
                batches.setdefault(stream.schema.metadata[b"table"].decode(), []).append(table)
    for name, pieces in batches.items():
        yield name, pa.concat_tables(pieces, promote_options="default")  # a late column exists only in some


def _write(sink: Any, name: str, pieces: Sequence[pa.Table]) -> None:
    """Write one stream, sorted by time, then by the order of the pieces."""
    present = {column for piece in pieces for column in piece.column_names}
    fields = [
        pa.field(column.name, ARROW[column.type], nullable=column.optional or column.late)
        for column in TABLES[name].columns
        if not column.late or column.name in present
    ]
    schema = pa.schema(fields, metadata={"table": name})
    table = pa.concat_tables([_complete(piece, schema).cast(schema) for piece in pieces])
    order = np.argsort(table["t_ns"].to_numpy(), kind="stable")
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_table(table.take(order).combine_chunks())


def _complete(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the missing columns: a kernel that does not fill a late one omits it."""
    empty = {
        field.name: pa.nulls(piece.num_rows, field.type) for field in schema if field.name not in piece.column_names
    }
    return pa.table({field: empty[field] if field in empty else piece[field] for field in schema.names})


def _convert(name: str, table: pa.Table, records: HostRecords) -> pa.Table:
    """Convert a host's table to the plan's names and the local clock."""
    names = {interface: device for device, interface in records.devices.items()}
    if name == "fact":
        return _facts(table, records.node, names)
    if "device" in table.column_names:
        devices: list[Any] = table["device"].to_pylist()
        plan_devices = [names.get(interface, interface if interface.startswith(IFB) else None) for interface in devices]
        selected: Any = pa.array([interface is not None for interface in plan_devices], pa.bool_())
        return one_way_delay.with_column(table, "device", pa.array(plan_devices, pa.string())).filter(selected)
    if name in OCCURRENCES:
        return one_way_delay.with_column(
            table, "t_ns", pa.array(records.local_ns(table["t_ns"].to_numpy()), pa.int64())
        )
    return table


def _facts(table: pa.Table, node: str, names: Mapping[str, str]) -> pa.Table:
    """Convert the facts; drop those about interfaces that the plan does not name."""
    rows = []
    for row in table.to_pylist():
        kind, _, detail = row["key"].partition(".")
        if kind in ("driver", "offload", "bql"):
            interface, dot, property = detail.partition(".")
            if interface not in names:
                continue
            row["key"] = f"{kind}.{names[interface]}{dot}{property}"
        elif kind == "tc":
            fields = row["value"].split(" ")
            if not any(word in names or word.startswith(IFB) for word in fields):
                continue
            row["value"] = " ".join(names.get(word, word) for word in fields)
        rows.append({**row, "node": node})
    return pa.Table.from_pylist(rows, schema=table.schema)
