# SPDX-License-Identifier: Apache-2.0
"""The bounds of a scenario and what came of them."""

from collections.abc import Sequence

from hourglass.contract.summary import Check, Summary
from hourglass.results.sections.model import Column, Section, Value

OK, MISSED = "ok", "missed"


def checks(summary: Summary) -> Section:
    """A row for each figure that is bounded."""
    return judged(summary.checks)


def judged(found: Sequence[Check]) -> Section:
    """Bounds that somebody judged, as a section; with the reasons where there are some."""
    last = ["reason"] if any(one.reason for one in found) else []
    columns = tuple(Column(title, "text") for title in ("verdict", "figure", "bound", "value", *last))
    rows = tuple(_judged(one)[: len(columns)] for one in found)
    return Section("checks", "Checks", "verdict", columns, rows, key=1)


def _judged(one: Check) -> tuple[Value, ...]:
    return OK if one.ok else MISSED, one.figure, one.bound, value(one), one.reason


def value(one: Check) -> str | None:
    """The figure in all its digits, lest one that misses its bound by little looks as if it did not."""
    return None if one.value is None else f"{one.value:.6g} {one.unit}".strip()


def verdict(one: Check) -> str:
    """In words."""
    return OK if one.ok else f"{MISSED}: {one.reason}" if one.reason else MISSED


SECTIONS = (checks,)
