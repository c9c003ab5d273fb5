# SPDX-License-Identifier: Apache-2.0
"""Read `records.arrows`: Arrow IPC streams one after another, each schema naming its `table` in the metadata.

The schemas are declared in `contract/records.toml`; this reader takes them from the file and adds nothing. Streams of
the same table are pieces of one table and are joined in the order of the file. A column that a piece lacks is null
there.
"""

import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa

from hourglass.contract.arrow_types import ARROW
from hourglass.contract.record_tables import TABLES
from hourglass.errors import HourglassError
from hourglass.results.message_size import decompressed_size

DAMAGES = (pa.ArrowException, OSError, MemoryError, StopIteration, ValueError, IndexError, struct.error)
"""Errors of reading a damaged file. `UnicodeDecodeError` is a ValueError."""

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of every complete stream (Arrow IPC: continuation marker, then a metadata length of 0)."""


class RecordsError(HourglassError):
    """The records are cut off, damaged or not records at all. Exit status 3."""

    code = "records"

    def __init__(self, path: Path, reason: str, remedy: str = "rerun the scenario to make new records") -> None:
        super().__init__(f"{path}: {reason}; {remedy}")


class Tables(MutableMapping[str, pl.DataFrame]):
    """All tables of a file by name, each read on first use and then cached."""

    def __init__(self, path: Path) -> None:
        """Find the tables. Raises `RecordsError` if the file is missing, empty, cut off or damaged."""
        self.path = path
        self._loaded: dict[str, pl.DataFrame | None] = {}
        self._positions: dict[str, list[tuple[int, list[str]]]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        needed = 0
        with self._opened() as source:
            _check_ends(path, source)
            while source.tell() < source.size():
                start = source.tell()
                name, schema, size = _skip_stream(path, source)
                needed += size
                _check_memory(path, needed)
                _check_types(path, name, schema)
                earlier = self._schemas.setdefault(name, schema)
                if earlier != schema:
                    if _permanent_columns(name, earlier) != _permanent_columns(name, schema):
                        raise RecordsError(path, f"the streams of table {name!r} have different schemas")
                    self._schemas[name] = pa.unify_schemas([earlier, schema])
                self._positions.setdefault(name, []).append((start, schema.names))
                self._loaded[name] = None

    @classmethod
    def of(cls, frames: Mapping[str, pl.DataFrame]) -> "Tables":
        """Tables without a file."""
        tables = cls.__new__(cls)
        tables._loaded = dict(frames)
        return tables

    def __getitem__(self, name: str) -> pl.DataFrame:
        frame = self._loaded[name]
        if frame is None:
            frame = self._loaded[name] = self._read(name, self._schemas[name].names)
        return frame

    def __setitem__(self, name: str, table: pl.DataFrame) -> None:
        self._loaded[name] = table

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)

    def is_loaded(self, name: str) -> bool:
        """Return true if the table has been read."""
        return self._loaded[name] is not None

    def columns(self, name: str, names: Iterable[str]) -> pl.DataFrame:
        """Return the `wanted` columns that the table has, without caching: of 90 columns only these are read."""
        loaded = self._loaded[name]
        if loaded is not None:
            return loaded.select(column for column in names if column in loaded.columns)
        return self._read(name, [column for column in names if column in self._schemas[name].names])

    def _read(self, name: str, columns: list[str]) -> pl.DataFrame:
        schema = pa.schema([self._schemas[name].field(column) for column in columns])
        pieces = [pa.Table.from_batches([], schema=schema)]  # empty_table() would import pandas if it is installed
        with self._opened() as source:
            for start, piece_columns in self._positions[name]:
                fields = sorted(piece_columns.index(column) for column in columns if column in piece_columns)
                source.seek(start)
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                piece = pa.ipc.open_stream(source, options=options).read_all()
                piece.validate(full=True)  # a stranger's file may point outside of its memory
                pieces.append(piece)
        frame = pl.from_arrow(pa.concat_tables(pieces, promote_options="default"))
        assert isinstance(frame, pl.DataFrame)
        return frame.select(columns)

    @contextmanager
    def _opened(self) -> Iterator[pa.MemoryMappedFile]:
        try:
            if not stat.S_ISREG(self.path.lstat().st_mode):
                raise RecordsError(self.path, "is not a regular file")
            with pa.memory_map(str(self.path)) as source:
                yield source
        except FileNotFoundError:
            raise RecordsError(self.path, "no such file") from None
        except DAMAGES as error:
            raise RecordsError(self.path, f"the records are cut off or damaged ({error})") from error


def _check_memory(path: Path, needed: int) -> None:
    """Refuse records that need more bytes than this machine's memory has."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        need, have = (f"{number / (1 << 30):.3g} GiB" for number in (needed, memory))
        remedy = f"read them where there is more; here are {have}"
        raise RecordsError(path, f"the records need more than {need} of memory", remedy)


TEXTS = (pa.large_string(), pa.string_view())
"""Other forms of text, which writers other than the agent choose."""


def _check_types(path: Path, name: str, schema: pa.Schema) -> None:
    """Refuse a column whose type is not one of `ARROW` or differs from its declaration, and one that occurs twice. A
    column of the type null needs no bytes in the file, and any number of them in memory."""
    declared = {column.name: ARROW[column.type] for column in TABLES[name].columns} if name in TABLES else {}
    for column in schema:
        dtype = pa.string() if column.type in TEXTS else column.type
        if (
            dtype != declared.get(column.name, dtype)
            or dtype not in ARROW.values()
            or schema.names.count(column.name) > 1
        ):
            raise RecordsError(
                path, f"the column {column.name!r} of table {name!r} has an undeclared type, or occurs twice"
            )


def _permanent_columns(table: str, schema: pa.Schema) -> pa.Schema:
    """Return the columns that every piece of a table has."""
    late = [column.name for column in TABLES[table].columns if column.late] if table in TABLES else []
    return pa.schema([field for field in schema if field.name not in late])


def _check_ends(path: Path, source: pa.NativeFile) -> None:
    """Refuse an empty file and one whose last stream was not finished, which Arrow reads as a normal end."""
    size = source.size()
    if size == 0:
        raise RecordsError(path, "the records are empty")
    source.seek(max(0, size - len(END_OF_STREAM)))
    if source.read() != END_OF_STREAM:
        raise RecordsError(path, f"the records are cut off: the last stream has no end after {size} bytes")
    source.seek(0)


def _skip_stream(path: Path, source: pa.NativeFile) -> tuple[str, pa.Schema, int]:
    """Return the next stream's table name, its schema and its decompressed bytes; leave `source` after the end of the
    stream, with no row decoded."""
    start = source.tell()
    messages = pa.ipc.MessageReader.open_stream(source)
    schema = pa.ipc.read_schema(next(messages))
    name = (schema.metadata or {}).get(b"table")
    if name is None:
        raise RecordsError(path, f"the stream at byte {start} has no table name")
    size = sum(decompressed_size(message) for message in messages)
    return name.decode(), schema, size
