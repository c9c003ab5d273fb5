# SPDX-License-Identifier: Apache-2.0
"""A summary as a list of titled tables, which the terminal and the report only draw.

`model` says what a section is; `traffic`, `network` and `checks` make them, one function each. A new figure is shown
everywhere once it is in a row here; a new section is a function and its name in their `SECTIONS`.
"""

from collections.abc import Callable

from hourglass.contract.summary import Summary
from hourglass.results.sections import checks, network, traffic
from hourglass.results.sections.model import Column, Section, Value, shown

SECTIONS: tuple[Callable[[Summary], Section], ...] = (
    *traffic.SECTIONS,
    *network.SECTIONS,
    *checks.SECTIONS,
)
"""In the order in which they are shown."""


def sections(summary: Summary) -> list[Section]:
    """Those that have rows, or something to say without."""
    made = [make(summary) for make in SECTIONS]
    return [section for section in made if section.rows or section.nothing]


__all__ = ["SECTIONS", "Column", "Section", "Value", "sections", "shown"]
