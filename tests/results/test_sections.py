# SPDX-License-Identifier: Apache-2.0
"""Properties of a section."""

from hourglass.results.sections import Column, Section


def test_empty_columns_are_omitted() -> None:
    columns = (
        Column("said", "text"),
        Column("event", "text"),
        Column("lost"),
        Column("sent"),
    )
    section = Section("events", "Events", "event", columns, ((None, "pull", None, 0), (None, "plug", 3, None)), key=1)
    reduced = section.without_empty_columns()
    assert [column.title for column in reduced.columns] == ["event", "lost", "sent"]
    assert reduced.rows == (("pull", None, 0), ("plug", 3, None))
    assert reduced.columns[reduced.key].title == "event"
