# SPDX-License-Identifier: Apache-2.0
"""Where two runs part: the first packet that fared differently, in which layer, and the state of its socket there.

Runs are exact: the same scenario, seed, kernel and root give the same records. So what differs between two runs comes
of what was changed between them, and the first difference is where the change was first felt. Rows are matched by what
they are about (a packet by stream, way, number and visit, a sample by its instant), not by their place in the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import polars as pl

from hourglass.contract import records
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.errors import InputError
from hourglass.results.labels import SAID_OTHERWISE
from hourglass.results.recording import Recording

PACKET: Final = ("stream", "way", "packet", "visit")
"""What tells a packet's passing of a node from all others; of copies, their order."""
ABOUT: Final = (
    "t_ns", "stream", "sender", "seq", "way", "data", "node", "device", "station", "handle", "kind", "event", "name",
    "app", "place", "reason",
)  # fmt: skip
"""The columns that say what a row of any other table is about, as far as the table has them."""
APART: Final = ("fact", "packet")
"""Tables that are looked at in their own way."""

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Change:
    """One thing that is not the same: what, in the first run and in the second."""

    what: str
    first: Value
    second: Value


@dataclass(frozen=True)
class Packet:
    """The first packet that fared differently, of those that were followed. `t_ns`: from when on, its time in the
    sender's layers being taken in their order; `layer`: where, "" if only one run has it or it began at another
    time."""

    t_ns: int
    stream: str
    way: str
    number: int
    node: str
    layer: str
    data: bool
    changes: tuple[Change, ...]
    """Durations in ns."""


@dataclass(frozen=True)
class Table:
    """How one table differs. `t_ns`: of the first row that does; `about`: what that row is about."""

    name: str
    rows: tuple[int, int]
    differ: int
    """Rows that are not the same in both, or only in one."""
    t_ns: int
    about: dict[str, Value]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Diff:
    """`same`: their records are the same bytes; then the rest is empty but `asked`."""

    same: bool
    asked: tuple[Change, ...]
    """What of scenario and kernel differs."""
    packet: Packet | None = None
    socket: tuple[Change, ...] = ()
    """Of the sender's socket of that packet's flow, at the first sample from then on that differs."""
    socket_ns: int | None = None
    """When that sample was taken."""
    tables: tuple[Table, ...] = field(default=())
    """Those that differ, by the time of their first row that does."""


def diff(first: Recording, second: Recording) -> Diff:
    """Where two runs part. Raises `InputError` for what was measured elsewhere: it has no records."""
    for run in (first, second):
        if run.info.elsewhere:
            raise InputError("RUN", str(run.path), "was measured elsewhere; only runs of Hourglass have records")
    asked = _asked(first, second)
    if first.info.digest == second.info.digest:
        return Diff(True, asked)
    packet = _packet(first, second)
    tables = (_table(name, first, second) for name in records.SCHEMAS if name not in APART)
    found = sorted((table for table in tables if table), key=lambda table: table.t_ns)
    socket_ns, socket = _socket(first, second, packet) if packet else (None, ())
    return Diff(False, asked, packet, socket, socket_ns, tuple(found))


def _asked(first: Recording, second: Recording) -> tuple[Change, ...]:
    one, other = (
        {key: value for key, value in run.experiment.settings.items() if key[0] not in SAID_OTHERWISE}
        for run in (first, second)
    )
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    settings = [Change(".".join(key), _text(one.get(key)), _text(other.get(key))) for key in keys]
    built = [
        Change("engine", first.info.engine, second.info.engine),
        Change("kernel", first.info.kernel.release, second.info.kernel.release),
        Change("kernel's build", first.info.kernel.key, second.info.kernel.key),
    ]
    return (*settings, *(one for one in built if one.first != one.second))


def _text(value: object) -> Value:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _matched(one: pl.DataFrame, other: pl.DataFrame, about: Sequence[str]) -> pl.DataFrame:
    """A row per row of either, those that are about the same side by side (`_a`, `_b`); `in_a`, `in_b`: who has it."""

    def told(frame: pl.DataFrame, side: str) -> pl.DataFrame:
        copies = frame.with_columns(pl.int_range(pl.len()).over(about).alias("copy"), pl.lit(True).alias("in"))
        return copies.rename({name: name + side for name in copies.columns if name not in (*about, "copy")})

    keys = [*about, "copy"]
    both = told(_plain(one), "_a").join(told(_plain(other), "_b"), on=keys, how="full", coalesce=True, nulls_equal=True)
    return both.with_columns(pl.col("in_a", "in_b").fill_null(False))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Names as text: the two runs may have other streams and nodes."""
    kinds = {name: pl.String for name, kind in frame.schema.items() if isinstance(kind, pl.Enum | pl.Categorical)}
    return frame.cast(kinds)  # type: ignore[arg-type]


def _unlike(both: pl.DataFrame, columns: list[str]) -> pl.Expr:
    """The condition "this row is not the same in both"."""
    differ = (pl.col(f"{name}_a").ne_missing(pl.col(f"{name}_b")) for name in columns)
    return reduce(pl.Expr.or_, differ, ~(pl.col("in_a") & pl.col("in_b")))


def _packet(first: Recording, second: Recording) -> Packet | None:
    both = _matched(_entered(first.packets), _entered(second.packets), PACKET)
    figures = ["t_ns", "bytes", "data", "node", *LAYER_COLUMNS]
    unlike = both.filter(_unlike(both, figures))
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
    row = marked.sort("when", *PACKET, "copy").row(0, named=True)
    whole = row["in_a"] and row["in_b"]
    changes = _changes(row, [*figures, "end_ns"]) if whole else [Change("exists", row["in_a"], row["in_b"])]
    side = "_a" if row["in_a"] else "_b"
    return Packet(row["when"], row["stream"], row["way"], row["packet"], row["node" + side], row["layer"],
                  row["data" + side], tuple(changes))  # fmt: skip


def _entered(packets: pl.DataFrame) -> pl.DataFrame:
    """With `entered_ns`: when the packet came to this node. Its times are the whole packet's in all of its visits."""
    here = pl.sum_horizontal(LAYER_COLUMNS)
    before = (here.cum_sum() - here).over("stream", "way", "packet", "t_ns", order_by="visit")
    return packets.with_columns((pl.col("t_ns") + before).alias("entered_ns"))


def _changes(row: dict[str, Value], columns: list[str]) -> list[Change]:
    return [
        Change(name, row[f"{name}_a"], row[f"{name}_b"]) for name in columns if row[f"{name}_a"] != row[f"{name}_b"]
    ]


def _table(name: str, first: Recording, second: Recording) -> Table | None:
    one, other = first.table(name), second.table(name)
    about = [column for column in ABOUT if column in one.columns]
    figures = [column for column in one.columns if column not in about]
    both = _matched(one, other, about)
    unlike = both.filter(_unlike(both, figures))
    if unlike.is_empty():
        return None
    row = unlike.sort("t_ns", "copy", maintain_order=True).row(0, named=True)
    whole = row["in_a"] and row["in_b"]
    changes = _changes(row, figures) if whole else [Change("exists", row["in_a"], row["in_b"])]
    told: dict[str, Value] = {column: row[column] for column in about if column != "t_ns" and row[column] is not None}
    return Table(name, (one.height, other.height), unlike.height, row["t_ns"], told, tuple(changes))


def _socket(first: Recording, second: Recording, packet: Packet) -> tuple[int | None, tuple[Change, ...]]:
    """The sender's socket at the first sample from the packet's instant on in which it differs."""
    figures = [name for name in records.SCHEMAS["tcp"] if name not in ("t_ns", "stream", "sender")]
    of = (pl.col("t_ns") >= packet.t_ns) & pl.col("sender") & (pl.col("stream") == packet.stream)
    sides = (run.table("tcp").cast({"stream": pl.String}).filter(of) for run in (first, second))
    one, other = sides
    both = _matched(one, other, ("t_ns", "stream", "sender"))
    unlike = both.filter(pl.col("in_a") & pl.col("in_b") & _unlike(both, figures)).sort("t_ns")
    if unlike.is_empty():
        return None, ()
    row = unlike.row(0, named=True)
    return row["t_ns"], tuple(_changes(row, figures))
