# SPDX-License-Identifier: Apache-2.0
"""Reading concatenated Arrow streams, complete and broken."""

import os
import struct

import pyarrow as pa
import pytest

from hourglass.results.message_size import decompressed_size
from hourglass.results.records import RecordsError, Tables
from results.synthetic import write_records

PINGS = [{"t_ns": t, "stream": 0, "seq": t, "rtt_ns": 5, "owd_up_ns": None, "owd_down_ns": None} for t in range(100)]
FACTS = [{"t_ns": 0, "node": None, "key": "kernel.release", "value": "6.1"}]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records.arrows"
    write_records(path, [("ping", PINGS[:60]), ("fact", FACTS), ("ping", PINGS[60:])])
    return path


def test_pieces_of_a_table_are_joined_in_order(path):
    tables = Tables(path)
    assert set(tables) == {"ping", "fact"}
    assert tables["ping"]["seq"].to_list() == list(range(100))
    assert tables["fact"].row(0) == (0, None, "kernel.release", "6.1")


def test_a_table_without_rows_keeps_its_columns(tmp_path):
    write_records(tmp_path / "r", [("ping", [])])
    assert "rtt_ns" in Tables(tmp_path / "r")["ping"].columns


def test_every_truncation_of_the_last_stream_is_detected(path):
    content = path.read_bytes()
    for cut in (1, 4, 7, 8, 9, 100, 500, 1000):
        path.write_bytes(content[:-cut])
        with pytest.raises(RecordsError, match="cut off") as caught:
            Tables(path)
        assert str(path) in str(caught.value)


def test_a_damaged_stream_is_detected(path):
    content = bytearray(path.read_bytes())
    content[4:8] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    with pytest.raises(RecordsError, match="damaged"):
        Tables(path)


@pytest.mark.parametrize(("content", "message"), [(b"", "empty"), (b"this is a text file, not records", "cut off")])
def test_a_file_that_is_no_records_is_refused(tmp_path, content, message):
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(RecordsError, match=message):
        Tables(tmp_path / "r")


def test_a_missing_file_is_one_clear_line(tmp_path):
    with pytest.raises(RecordsError, match="no such file"):
        Tables(tmp_path / "r")


def test_a_stream_without_a_table_name_is_refused(tmp_path):
    with (tmp_path / "r").open("wb") as file:
        table = pa.table({"t_ns": [1]})
        with pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    with pytest.raises(RecordsError, match="has no table name"):
        Tables(tmp_path / "r")


def test_a_column_that_a_piece_lacks_is_null(tmp_path):
    with (tmp_path / "r").open("wb") as file:
        for columns in ({"seq": [1]}, {"seq": [2], "ecn": ["ce"]}, {"seq": [3]}):
            types = {"seq": pa.uint32(), "ecn": pa.string()}
            table = pa.table(columns, schema=pa.schema({name: types[name] for name in columns}))
            table = table.replace_schema_metadata({"table": "datagram"})
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
    tables = Tables(tmp_path / "r")
    assert tables.columns("datagram", ["ecn"]).rows() == [(None,), ("ce",), (None,)]
    assert tables["datagram"].rows() == [(1, None), (2, "ce"), (3, None)]


def test_two_schemas_for_one_table_are_refused(tmp_path):
    with (tmp_path / "r").open("wb") as file:
        for column in ("a", "b"):
            table = pa.table({column: [1]}).replace_schema_metadata({"table": "ping"})
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
    with pytest.raises(RecordsError, match="different schemas"):
        Tables(tmp_path / "r")


def test_single_columns_are_read_and_not_cached(path):
    tables = Tables(path)
    part = tables.columns("ping", ("rtt_ns", "no such column", "t_ns"))
    assert part.columns == ["rtt_ns", "t_ns"]
    assert part.equals(Tables(path)["ping"].select("rtt_ns", "t_ns"))
    assert not tables.is_loaded("ping")
    assert "ping" in tables
    assert not tables.is_loaded("ping")
    tables["ping"] = tables["ping"].head(3)
    assert tables.columns("ping", ("seq",))["seq"].to_list() == [0, 1, 2]


def _stream(path, compression, columns):
    schema = pa.schema([(name, column.type) for name, column in columns.items()], metadata={"table": "extra"})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema, options=options) as writer:
        writer.write_table(pa.table(columns, schema=schema), max_chunksize=64)


def _sizes(path):
    with pa.memory_map(str(path)) as source:
        return [decompressed_size(message) for message in pa.ipc.MessageReader.open_stream(source)]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_the_size_of_a_compressed_message_is_that_of_the_plain_one(tmp_path, compression):
    """All buffers are multiples of 8 bytes: plain messages pad the others."""
    numbers, texts = list(range(192)), [f"{number:08}" if number % 3 else None for number in range(192)]
    columns = {
        "t_ns": pa.array(numbers, pa.int64()),
        "empty": pa.array([None] * 192, pa.int64()),
        "name": pa.array(texts, pa.large_string()),
        "kind": pa.array(["a" * 8, "b" * 8, "c" * 8] * 64).dictionary_encode(),
    }
    for kind in (None, compression):
        _stream(tmp_path / str(kind), kind, columns)
    sizes = _sizes(tmp_path / compression)
    assert sizes == _sizes(tmp_path / "None")
    assert sizes[0] == 0
    assert len(sizes) == 5


def test_a_table_larger_than_memory_is_refused_before_it_is_decompressed(tmp_path, monkeypatch):
    _stream(tmp_path / "r", "zstd", {"t_ns": pa.array([0] * 64 * 64, pa.int64())})
    assert Tables(tmp_path / "r")["extra"].height == 64 * 64
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 7}
    monkeypatch.setattr(os, "sysconf", memory.__getitem__)
    problem = "need more than 3.05e-05 GiB of memory; read them where there is more; here are 2.67e-05 GiB"
    with pytest.raises(RecordsError, match=problem):
        Tables(tmp_path / "r")


def test_a_claim_of_terabytes_is_refused(tmp_path):
    _stream(tmp_path / "r", "lz4", {"t_ns": pa.array([0] * 63, pa.int64())})
    content = (tmp_path / "r").read_bytes()
    size = struct.pack("<q", 63 * 8)
    assert content.count(size) == 1
    for claim in (2**50, 2**63 - 1):
        (tmp_path / "r").write_bytes(content.replace(size, struct.pack("<q", claim)))
        with pytest.raises(RecordsError, match="the records need more than"):
            Tables(tmp_path / "r")


def test_a_buffer_of_negative_length_is_refused(tmp_path):
    """Arrow does not read the validity of a column without nulls, so it does not check it."""
    _stream(tmp_path / "r", "lz4", {"t_ns": pa.array([0] * 63, pa.int64())})
    content = (tmp_path / "r").read_bytes()
    with pa.memory_map(str(tmp_path / "r")) as source:
        messages = pa.ipc.MessageReader.open_stream(source)
        next(messages)
        metadata = next(messages).metadata.to_pybytes()
    validity = metadata.index(struct.pack("<iqq", 2, 0, 0)) + 4  # the first of two buffers
    for pair in ((0, -(2**60)), (-8, 8)):
        changed = metadata[:validity] + struct.pack("<qq", *pair) + metadata[validity + 16 :]
        (tmp_path / "r").write_bytes(content.replace(metadata, changed))
        with pytest.raises(RecordsError, match="a buffer is outside of its message"):
            Tables(tmp_path / "r")


def test_a_message_of_an_older_format_is_refused(tmp_path):
    """In V4, other fields said that a batch is compressed."""
    schema = pa.schema([("t_ns", pa.int64())], metadata={"table": "extra"})
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.OSFile(str(tmp_path / "r"), "wb") as file, pa.ipc.new_stream(file, schema, options=options) as writer:
        writer.write_table(pa.table({"t_ns": [1]}, schema=schema))
    with pytest.raises(RecordsError, match="older than V5"):
        Tables(tmp_path / "r")


def test_a_column_without_bytes_is_refused(tmp_path):
    _stream(tmp_path / "r", None, {"t_ns": pa.array([1], pa.int64()), "more": pa.nulls(1)})
    with pytest.raises(RecordsError, match="'more' of table 'extra' has an undeclared type"):
        Tables(tmp_path / "r")
