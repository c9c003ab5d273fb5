# SPDX-License-Identifier: Apache-2.0
"""The declarations: properties that their readers rely on."""

import pytest

from hourglass.contract.probe import LAYER_COLUMNS, PROBE, Struct
from hourglass.contract.record_tables import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_unique_and_time_comes_first(name: str) -> None:
    columns = [column.name for column in TABLES[name].columns]
    assert columns[0] == "t_ns"
    assert len(set(columns)) == len(columns)


def test_texts_are_of_enumerations_that_exist() -> None:
    named = {c.values: c.type for table in TABLES.values() for c in table.columns if c.values}
    assert set(named) <= {enum.name for enum in PROBE.enums}
    assert set(named.values()) == {"text"}


@pytest.mark.parametrize("name", ["packet", "layer"])
def test_layers_end_a_row_in_the_order_in_which_packets_pass_them(name: str) -> None:
    """Columns that were added later are exempt."""
    early = tuple(column.name for column in TABLES[name].columns if not column.late)
    assert early[-len(LAYER_COLUMNS) :] == LAYER_COLUMNS


def test_every_type_of_record_has_its_structure() -> None:
    structs = {struct.name for struct in PROBE.structs}
    assert set(PROBE.enum("record").names) == structs - {"head", "stream", "visit", "stat"}


@pytest.mark.parametrize("struct", PROBE.structs, ids=lambda struct: str(struct.name))
def test_structures_have_no_gaps(struct: Struct) -> None:
    offsets = [offset for _, offset in PROBE.layout(struct)]
    assert offsets == sorted(set(offsets))
    assert PROBE.size(struct) % 4 == 0


def test_a_gap_is_refused() -> None:
    stream = PROBE.struct("stream")
    gap = stream.model_copy(update={"field": [stream.field[1], stream.field[0]]})
    with pytest.raises(ValueError, match="a gap before id"):
        list(PROBE.layout(gap))
