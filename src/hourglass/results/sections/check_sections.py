# SPDX-License-Identifier: Apache-2.0
"""The bounds of a scenario and their verdicts."""

from collections.abc import Sequence

from hourglass.contract.summary import CheckVerdict, Summary
from hourglass.results.sections.section import Column, Section, Value

OK, MISSED = "ok", "missed"


def checks(summary: Summary) -> Section:
    """Return a row for each figure with a bound."""
    return verdict_section(summary.checks)


def verdict_section(verdicts: Sequence[CheckVerdict]) -> Section:
    """Return the judged bounds as a section, with the reasons of misses."""
    last = ["reason"] if any(check.reason for check in verdicts) else []
    columns = tuple(Column(title, "text") for title in ("verdict", "figure", "bound", "value", *last))
    rows = tuple(_row(check)[: len(columns)] for check in verdicts)
    return Section("checks", "Checks", "verdict", columns, rows, key=1)


def _row(check: CheckVerdict) -> tuple[Value, ...]:
    return OK if check.ok else MISSED, check.figure, check.bound, value(check), check.reason


def value(check: CheckVerdict) -> str | None:
    """Return the figure in all its digits, so that a narrow miss does not look like a pass."""
    return None if check.value is None else f"{check.value:.6g} {check.unit}".strip()


def verdict(check: CheckVerdict) -> str:
    """Return a verdict in words."""
    return OK if check.ok else f"{MISSED}: {check.reason}" if check.reason else MISSED


SECTIONS = (checks,)
