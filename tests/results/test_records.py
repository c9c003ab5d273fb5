# SPDX-License-Identifier: Apache-2.0
"""Reading concatenated Arrow streams, complete and broken."""

import pyarrow as pa
import pytest

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
