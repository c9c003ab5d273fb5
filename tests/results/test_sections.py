# SPDX-License-Identifier: Apache-2.0
"""What a section knows of itself."""

from hourglass.results.sections import Column, Section


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    columns = (Column("said", "text"), Column("event", "text"), Column("lost"), Column("sent"))
    section = Section("events", "Events", "event", columns, ((None, "pull", None, 0), (None, "plug", 3, None)), key=1)
    known = section.known()
    assert [column.title for column in known.columns] == ["event", "lost", "sent"]
    assert known.rows == (("pull", None, 0), ("plug", 3, None))
    assert known.columns[known.key].title == "event"
