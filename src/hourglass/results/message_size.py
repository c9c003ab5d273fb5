# SPDX-License-Identifier: Apache-2.0
"""Compute how much memory an Arrow IPC message needs, before it is decompressed.

A file of some megabytes can claim terabytes. Each buffer of a compressed batch begins with its decompressed length, or
-1 if it is not compressed. Arrow allocates this length. Sources: Arrow's format/Message.fbs; FlatBuffers' internals: a
table begins with the distance to the list of its fields' offsets. pyarrow has checked these tables before."""

import struct

import pyarrow as pa

DICTIONARY_BATCH, RECORD_BATCH = 2, 3
"""The kinds of messages with buffers."""
_VERSION, _KIND, _HEADER = 0, 1, 2
"""Fields of the table `Message`."""
VERSION = 4
"""The version of the format that the agent writes, V5. In V4, other fields said that a batch is compressed."""
_DATA = 1
"""The field of the table `DictionaryBatch` with its record batch."""
_BUFFERS, _COMPRESSION = 2, 3
"""Fields of the table `RecordBatch`."""
_FIELDS_START = 4
WORD = 8
"""Bytes of a length. Buffers begin at multiples of it."""


def decompressed_size(message: pa.Message) -> int:
    """Return the bytes of a message's buffers in memory. Raises ValueError, IndexError or struct.error for a damaged
    message, and for one of an older format."""
    tables = _Tables(memoryview(message.metadata))
    root = tables.target(0)
    kind, version = (tables.field(root, index) for index in (_KIND, _VERSION))
    if kind is None or tables.data[kind] not in (DICTIONARY_BATCH, RECORD_BATCH):
        return 0
    if version is None or tables.number("h", version) != VERSION:
        raise ValueError("its format is older than V5")
    batch = tables.child(root, _HEADER)
    if tables.data[kind] == DICTIONARY_BATCH:
        batch = tables.child(batch, _DATA)
    body = memoryview(message.body or b"")
    if tables.field(batch, _COMPRESSION) is None:
        return len(body)
    start = tables.child(batch, _BUFFERS)
    buffers = struct.unpack_from(f"<{2 * tables.number('I', start)}q", tables.data, start + 4)
    words, size = body[: len(body) // WORD * WORD].cast("q"), 0
    for position, length in zip(buffers[::2], buffers[1::2], strict=True):
        if position < 0 or length < 0:
            raise ValueError("a buffer is outside of its message")
        if length:
            decompressed = words[position // WORD]
            size += decompressed if decompressed >= 0 else length - WORD
    return size


class _Tables:
    """The tables of a message's metadata, by their positions."""

    def __init__(self, data: memoryview) -> None:
        self.data = data

    def number(self, code: str, position: int) -> int:
        """Return a number; `code` as in `struct`."""
        (value,) = struct.unpack_from(f"<{code}", self.data, position)
        return int(value)

    def target(self, position: int) -> int:
        """Return the position to which an offset points."""
        return position + self.number("I", position)

    def field(self, table: int, index: int) -> int | None:
        """Return the position of a table's field, None if the table lacks it."""
        fields = table - self.number("i", table)
        entry = _FIELDS_START + 2 * index
        offset = self.number("H", fields + entry) if entry < self.number("H", fields) else 0
        return table + offset if offset else None

    def child(self, table: int, index: int) -> int:
        """Return the position of the table or list in a field. Raises ValueError if there is none."""
        position = self.field(table, index)
        if position is None:
            raise ValueError(f"a table has no field {index}")
        return self.target(position)
