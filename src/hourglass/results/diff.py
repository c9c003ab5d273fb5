# SPDX-License-Identifier: Apache-2.0
"""Find the first difference of two runs: the first packet with other times or another end, its layer, and the state of
its socket.

Runs are deterministic: the same scenario, seed, kernel and root give the same records. So every difference between two
runs comes from a change between them, and the first one shows where it took effect. Rows are matched by their keys (a
packet by stream, direction, number and visit, a sample by its instant), not by their position in the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import polars as pl

from hourglass.contract import record_tables
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.errors import InputError
from hourglass.results.labels import SHOWN_ELSEWHERE
from hourglass.results.recording import Recording

PACKET_KEYS: Final = ("stream", "way", "packet", "visit")
"""The columns that identify a packet's passing of a node; for copies, their order."""
ROW_KEYS: Final = (
    "t_ns", "stream", "sender", "seq", "way", "data", "node", "device", "station", "handle", "kind", "event", "name",
    "app", "place", "reason",
)  # fmt: skip
"""The columns that identify a row of any other table, if the table has them."""
SPECIAL_TABLES: Final = ("fact", "packet")
"""Tables with a separate comparison."""

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Change:
    """One difference: its name, and the values in the first run and in the second."""

    what: str
    first: Value
    second: Value


@dataclass(frozen=True)
class PacketDifference:
    """The first followed packet that differs. `t_ns`: the start of the difference, with its time in the sender's
    layers in their order; `layer`: its layer, "" if only one run has the packet or it began at another time."""

    t_ns: int
    stream: str
    way: str
    number: int
    node: str
    layer: str
    data: bool
    changes: tuple[Change, ...]
    """Durations in ns."""

    @property
    def text(self) -> str:
        """The packet, its layer and its time in one line."""
        position = f"in {self.layer} at {self.node}" if self.layer else f"at {self.node}"
        subject = f"{'packet' if self.data else 'bare packet'} {self.number} of {self.stream}, {self.way}"
        return f"at {exact_seconds(self.t_ns)}, {position}: {subject}"


def exact_seconds(ns: int) -> str:
    """Return a time as text in which a difference of 1 ns shows."""
    return f"{ns // 10**9}.{ns % 10**9:09d} s"


@dataclass(frozen=True)
class TableDifference:
    """The differences of one table. `t_ns`: of the first row that differs; `about`: the subject of that row."""

    name: str
    rows: tuple[int, int]
    differ: int
    """Rows that differ, or that only one run has."""
    t_ns: int
    about: dict[str, Value]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Diff:
    """`same`: their records are the same bytes; then the rest is empty except `asked`."""

    same: bool
    asked: tuple[Change, ...]
    """The differences of scenario and kernel."""
    packet: PacketDifference | None = None
    socket: tuple[Change, ...] = ()
    """The sender's socket of that packet's flow, at the first sample from then on that differs."""
    socket_ns: int | None = None
    """The time of that sample."""
    tables: tuple[TableDifference, ...] = field(default=())
    """The tables that differ, by the time of their first row that does."""


def diff(first: Recording, second: Recording) -> Diff:
    """Compare two runs. Raises `InputError` for runs of other tools: they have no records."""
    for run in (first, second):
        if run.info.elsewhere:
            raise InputError("RUN", str(run.path), "was made by another tool; only runs of Hourglass have records")
    changed = _changed_settings(first, second)
    if first.info.digest == second.info.digest:
        return Diff(True, changed)
    packet = _packet(first, second)
    tables = (_table(name, first, second) for name in record_tables.SCHEMAS if name not in SPECIAL_TABLES)
    differing = sorted((table for table in tables if table), key=lambda table: table.t_ns)
    socket_ns, socket = _socket(first, second, packet) if packet else (None, ())
    return Diff(False, changed, packet, socket, socket_ns, tuple(differing))


def _changed_settings(first: Recording, second: Recording) -> tuple[Change, ...]:
    first_settings, second_settings = (
        {key: value for key, value in run.experiment.settings.items() if key[0] not in SHOWN_ELSEWHERE}
        for run in (first, second)
    )
    keys = [key for key in {**first_settings, **second_settings} if first_settings.get(key) != second_settings.get(key)]
    settings = [Change(".".join(key), _text(first_settings.get(key)), _text(second_settings.get(key))) for key in keys]
    built = [
        Change("engine", first.info.engine, second.info.engine),
        Change("kernel", first.info.kernel.release, second.info.kernel.release),
        Change("kernel's build", first.info.kernel.key, second.info.kernel.key),
    ]
    return (*settings, *(change for change in built if change.first != change.second))


def _text(value: object) -> Value:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _matched(first: pl.DataFrame, second: pl.DataFrame, about: Sequence[str]) -> pl.DataFrame:
    """Return a row per row of either run, with matching rows side by side (`_a`, `_b`); `in_a`, `in_b`: present in
    that run."""

    def prepared(frame: pl.DataFrame, side: str) -> pl.DataFrame:
        copies = frame.with_columns(pl.int_range(pl.len()).over(about).alias("copy"), pl.lit(True).alias("in"))
        return copies.rename({name: name + side for name in copies.columns if name not in (*about, "copy")})

    keys = [*about, "copy"]
    joined = prepared(_plain(first), "_a").join(
        prepared(_plain(second), "_b"), on=keys, how="full", coalesce=True, nulls_equal=True
    )
    return joined.with_columns(pl.col("in_a", "in_b").fill_null(False))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return names as text: the two runs may have other streams and nodes."""
    kinds = {name: pl.String for name, kind in frame.schema.items() if isinstance(kind, pl.Enum | pl.Categorical)}
    return frame.cast(kinds)  # type: ignore[arg-type]


def _unlike(joined: pl.DataFrame, columns: list[str]) -> pl.Expr:
    """Return the condition "this row differs"."""
    differ = (pl.col(f"{name}_a").ne_missing(pl.col(f"{name}_b")) for name in columns)
    return reduce(pl.Expr.or_, differ, ~(pl.col("in_a") & pl.col("in_b")))


def _packet(first: Recording, second: Recording) -> PacketDifference | None:
    joined = _matched(_entered(first.packets), _entered(second.packets), PACKET_KEYS)
    figures = ["t_ns", "bytes", "data", "node", *LAYER_COLUMNS]
    unlike = joined.filter(_unlike(joined, figures))
    if unlike.is_empty():
        return None
    entered, spent = pl.min_horizontal("entered_ns_a", "entered_ns_b"), pl.lit(0, dtype=pl.Int64)
    elsewhere = pl.col("t_ns_a").ne_missing(pl.col("t_ns_b"))
    when, layer = [pl.when(elsewhere).then(entered)], [pl.when(elsewhere).then(pl.lit(""))]
    for name, column in zip(LAYERS, LAYER_COLUMNS, strict=True):
        a, b = pl.col(f"{column}_a"), pl.col(f"{column}_b")
        when.append(pl.when(a != b).then(entered + spent + pl.min_horizontal(a, b)))
        layer.append(pl.when(a != b).then(pl.lit(name)))
        spent = spent + a
    marked = unlike.with_columns(
        pl.coalesce(*when, entered).alias("when"), pl.coalesce(*layer, pl.lit("")).alias("layer")
    )
    row = marked.sort("when", *PACKET_KEYS, "copy").row(0, named=True)
    in_both = row["in_a"] and row["in_b"]
    changes = _changes(row, [*figures, "end_ns"]) if in_both else [Change("exists", row["in_a"], row["in_b"])]
    side = "_a" if row["in_a"] else "_b"
    return PacketDifference(row["when"], row["stream"], row["way"], row["packet"], row["node" + side], row["layer"],
                  row["data" + side], tuple(changes))  # fmt: skip


def _entered(packets: pl.DataFrame) -> pl.DataFrame:
    """Add `entered_ns`: when the packet came to this node. Its times are the whole packet's in all of its visits."""
    node_ns = pl.sum_horizontal(LAYER_COLUMNS)
    before = (node_ns.cum_sum() - node_ns).over("stream", "way", "packet", "t_ns", order_by="visit")
    return packets.with_columns((pl.col("t_ns") + before).alias("entered_ns"))


def _changes(row: dict[str, Value], columns: list[str]) -> list[Change]:
    return [
        Change(name, row[f"{name}_a"], row[f"{name}_b"]) for name in columns if row[f"{name}_a"] != row[f"{name}_b"]
    ]


def _table(name: str, first: Recording, second: Recording) -> TableDifference | None:
    first_table, second_table = first.table(name), second.table(name)
    about = [column for column in ROW_KEYS if column in first_table.columns]
    figures = [column for column in first_table.columns if column not in about]
    joined = _matched(first_table, second_table, about)
    unlike = joined.filter(_unlike(joined, figures))
    if unlike.is_empty():
        return None
    row = unlike.sort("t_ns", "copy", maintain_order=True).row(0, named=True)
    in_both = row["in_a"] and row["in_b"]
    changes = _changes(row, figures) if in_both else [Change("exists", row["in_a"], row["in_b"])]
    row_keys: dict[str, Value] = {
        column: row[column] for column in about if column != "t_ns" and row[column] is not None
    }
    return TableDifference(
        name, (first_table.height, second_table.height), unlike.height, row["t_ns"], row_keys, tuple(changes)
    )


def _socket(first: Recording, second: Recording, packet: PacketDifference) -> tuple[int | None, tuple[Change, ...]]:
    """Return the sender's socket at the first sample from the packet's instant on in which it differs."""
    figures = [name for name in record_tables.SCHEMAS["tcp"] if name not in ("t_ns", "stream", "sender")]
    selection = (pl.col("t_ns") >= packet.t_ns) & pl.col("sender") & (pl.col("stream") == packet.stream)
    sides = (run.table("tcp").cast({"stream": pl.String}).filter(selection) for run in (first, second))
    first_rows, second_rows = sides
    joined = _matched(first_rows, second_rows, ("t_ns", "stream", "sender"))
    unlike = joined.filter(pl.col("in_a") & pl.col("in_b") & _unlike(joined, figures)).sort("t_ns")
    if unlike.is_empty():
        return None, ()
    row = unlike.row(0, named=True)
    return row["t_ns"], tuple(_changes(row, figures))
