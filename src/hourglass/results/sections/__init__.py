# SPDX-License-Identifier: Apache-2.0
"""Lay out a summary as titled tables, which the terminal and the report only draw.

`section` has the model; `traffic_sections`, `network_sections` and `check_sections` build one section per function. To
show a new figure everywhere, add it to a row here. To add a section, write a function and name it in `SECTIONS`.
"""

from collections.abc import Callable

from hourglass.contract.summary import Summary
from hourglass.results.sections import check_sections, network_sections, traffic_sections
from hourglass.results.sections.section import Column, Section, Value, value_text

SECTIONS: tuple[Callable[[Summary], Section], ...] = (
    *traffic_sections.SECTIONS,
    *network_sections.SECTIONS,
    *check_sections.SECTIONS,
)
"""The sections, in the order of display."""


def sections(summary: Summary) -> list[Section]:
    """Return the sections with rows, or with a text for no rows."""
    all_sections = [make(summary) for make in SECTIONS]
    return [section for section in all_sections if section.rows or section.nothing]


__all__ = ["SECTIONS", "Column", "Section", "Value", "sections", "value_text"]
