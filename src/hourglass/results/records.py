# SPDX-License-Identifier: Apache-2.0
"""Reads `records.arrows`: Arrow IPC streams one after another, each schema naming its `table` in the metadata.

The schemas are declared in `contract/records.toml`; this reader takes them from the file and adds nothing.
Streams of equal table are pieces of one table and are put together in the order of the file. A column that came late
is null where a piece lacks it.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa

from hourglass.contract.records import TABLES
from hourglass.errors import HourglassError

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of every complete stream (Arrow IPC: continuation marker, then a metadata length of 0)."""


class RecordsError(HourglassError):
    """The records cannot be read: they are cut off, damaged or not records at all. Exit status 3."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; run the scenario again to make the records anew")


class Tables(MutableMapping[str, pl.DataFrame]):
    """All tables of a file by name, each read when it is first asked for and then kept."""

    def __init__(self, path: Path) -> None:
        """Looks where the tables are. Raises `RecordsError` when the file is missing, empty, cut off or damaged."""
        self.path = path
        self._known: dict[str, pl.DataFrame | None] = {}
        self._places: dict[str, list[tuple[int, list[str]]]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        with self._opened() as source:
            _check_ends(path, source)
            while source.tell() < source.size():
                start = source.tell()
                name, schema = _pass_stream(path, source)
                known = self._schemas.setdefault(name, schema)
                if known != schema:
                    if _lasting(name, known) != _lasting(name, schema):
                        raise RecordsError(path, f"the streams of table {name!r} do not have one schema")
                    self._schemas[name] = pa.unify_schemas([known, schema])
                self._places.setdefault(name, []).append((start, schema.names))
                self._known[name] = None

    @classmethod
    def of(cls, frames: Mapping[str, pl.DataFrame]) -> "Tables":
        """Tables that are no file's."""
        made = cls.__new__(cls)
        made._known = dict(frames)
        return made

    def __getitem__(self, name: str) -> pl.DataFrame:
        found = self._known[name]
        if found is None:
            found = self._known[name] = self._read(name, self._schemas[name].names)
        return found

    def __setitem__(self, name: str, table: pl.DataFrame) -> None:
        self._known[name] = table

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def kept(self, name: str) -> bool:
        """Whether the table has been read."""
        return self._known[name] is not None

    def columns(self, name: str, wanted: Iterable[str]) -> pl.DataFrame:
        """Those of the `wanted` columns that the table has, not kept: of 90 columns only these are read."""
        known = self._known[name]
        if known is not None:
            return known.select(column for column in wanted if column in known.columns)
        return self._read(name, [column for column in wanted if column in self._schemas[name].names])

    def _read(self, name: str, columns: list[str]) -> pl.DataFrame:
        whole = pa.schema([self._schemas[name].field(column) for column in columns])
        pieces = [pa.Table.from_batches([], schema=whole)]  # empty_table() would import pandas, where there is one
        with self._opened() as source:
            for start, held in self._places[name]:
                fields = sorted(held.index(column) for column in columns if column in held)
                source.seek(start)
                options = pa.ipc.IpcReadOptions(included_fields=fields)
                pieces.append(pa.ipc.open_stream(source, options=options).read_all())
        frame = pl.from_arrow(pa.concat_tables(pieces, promote_options="default"))
        assert isinstance(frame, pl.DataFrame)
        return frame.select(columns)

    @contextmanager
    def _opened(self) -> Iterator[pa.MemoryMappedFile]:
        try:
            with pa.memory_map(str(self.path)) as source:
                yield source
        except FileNotFoundError:
            raise RecordsError(self.path, "there is no such file") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise RecordsError(self.path, f"the records are cut off or damaged ({error})") from error


def _lasting(table: str, schema: pa.Schema) -> pa.Schema:
    """The columns that every piece of a table has."""
    late = [one.name for one in TABLES[table].columns if one.late] if table in TABLES else []
    return pa.schema([field for field in schema if field.name not in late])


def _check_ends(path: Path, source: pa.NativeFile) -> None:
    """Refuses an empty file and one whose last stream was not finished (Arrow itself takes that for a normal end)."""
    size = source.size()
    if size == 0:
        raise RecordsError(path, "the records are empty")
    source.seek(max(0, size - len(END_OF_STREAM)))
    if source.read() != END_OF_STREAM:
        raise RecordsError(path, f"the records are cut off: the last stream has no end after {size} bytes")
    source.seek(0)


def _pass_stream(path: Path, source: pa.NativeFile) -> tuple[str, pa.Schema]:
    """The next stream's table name and schema; leaves `source` behind the end of the stream, with no row decoded."""
    start = source.tell()
    messages = pa.ipc.MessageReader.open_stream(source)
    schema = pa.ipc.read_schema(next(messages))
    name = (schema.metadata or {}).get(b"table")
    if name is None:
        raise RecordsError(path, f"the stream at byte {start} does not name its table")
    for _ in messages:
        pass
    return name.decode(), schema
