# SPDX-License-Identifier: Apache-2.0
"""Reads `records.arrows`: Arrow IPC streams one after another, each schema naming its `table` in the metadata.

The schemas are declared by the writer (`agent/src/tables.rs`); this reader takes them from the file and adds nothing.
Streams of equal table are pieces of one table and are put together in the order of the file.
"""

from pathlib import Path

import polars as pl
import pyarrow as pa

from hourglass.errors import HourglassError

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The last bytes of every complete stream (Arrow IPC: continuation marker, then a metadata length of 0)."""


class RecordsError(HourglassError):
    """The records cannot be read: they are cut off, damaged or not records at all. Exit status 3."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; run the scenario again to make the records anew")


def read(path: Path) -> dict[str, pl.DataFrame]:
    """All tables of the file by name. Raises `RecordsError` when the file is missing, empty, cut off or damaged."""
    pieces: dict[str, list[pa.Table]] = {}
    try:
        with pa.memory_map(str(path)) as source:
            _check_ends(path, source)
            while source.tell() < source.size():
                name, table = _read_stream(path, source)
                pieces.setdefault(name, []).append(table)
    except FileNotFoundError:
        raise RecordsError(path, "there is no such file") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise RecordsError(path, f"the records are cut off or damaged ({error})") from error
    return {name: _join(path, name, tables) for name, tables in pieces.items()}


def _check_ends(path: Path, source: pa.NativeFile) -> None:
    """Refuses an empty file and one whose last stream was not finished (Arrow itself takes that for a normal end)."""
    size = source.size()
    if size == 0:
        raise RecordsError(path, "the records are empty")
    source.seek(max(0, size - len(END_OF_STREAM)))
    if source.read() != END_OF_STREAM:
        raise RecordsError(path, f"the records are cut off: the last stream has no end after {size} bytes")
    source.seek(0)


def _read_stream(path: Path, source: pa.NativeFile) -> tuple[str, pa.Table]:
    """The next stream's table name and rows; leaves `source` behind the end of the stream."""
    start = source.tell()
    reader = pa.ipc.open_stream(source)
    name = (reader.schema.metadata or {}).get(b"table")
    if name is None:
        raise RecordsError(path, f"the stream at byte {start} does not name its table")
    return name.decode(), reader.read_all()


def _join(path: Path, name: str, tables: list[pa.Table]) -> pl.DataFrame:
    if any(table.schema != tables[0].schema for table in tables):
        raise RecordsError(path, f"the streams of table {name!r} do not have one schema")
    frame = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(frame, pl.DataFrame)
    return frame
