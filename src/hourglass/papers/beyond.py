# SPDX-License-Identifier: Apache-2.0
"""What the papers left out: all congestion controls, more qdiscs.

No paper says what to expect, so there are no claims: the values of one axis stand side by side, and the settings in
which they differ most are named.
"""

from dataclasses import dataclass
from math import log

from hourglass.papers.model import PING, TCP, UP, Evidence, Figure, Layout

QUANTITIES = {UP: "Mbit/s", TCP: "TCP RTT, ms", PING: "ping, ms"}
COMPARED = TCP
NAMED = 6
"""So many of the largest differences are told."""

FIGURES = (
    Figure(
        "beyond-ccs",
        "All congestion controls of Linux",
        "candles",
        layout=Layout(groups="cc", series=("tsq",), panel="scenario"),
    ),
    Figure(
        "beyond-qdiscs",
        "Qdiscs the papers left out",
        "candles",
        layout=Layout(groups="qdisc", series=("cc",), panel="scenario"),
    ),
)


@dataclass(frozen=True)
class SideBySide:
    """A row per setting; per value of the first series' axis the quantities, medians over the seeds."""

    head: list[str]
    rows: list[list[str]]
    largest: list[str]
    """Where the TCP RTT differs most between the values, the largest first."""


def side_by_side(figure: Figure, e: Evidence) -> SideBySide:
    """The figure's runs in a table. A run that failed is a dash."""
    axis = figure.layout.series[0]
    values = e.values(axis)
    names = [e.label(**{axis: value}) for value in values]
    head = ["", *(f"{name}: {unit}" for name in names for unit in QUANTITIES.values())]
    rows, differences = [], []
    for where in e.settings(axis):
        found = [{column: _value(e, column, where | {axis: value}) for column in QUANTITIES} for value in values]
        rows.append(
            [e.label(**where), *("-" if one is None else f"{one:.3g}" for row in found for one in row.values())]
        )
        times = [(row[COMPARED], name) for row, name in zip(found, names, strict=True)]
        known = [(time, name) for time, name in times if time]
        if len(known) > 1:
            (low, least), (high, most) = min(known), max(known)
            words = f"{e.label(**where)}: {low:.3g} ms with {least}, {high:.3g} ms with {most}"
            differences.append((log(high / low), words))
    differences.sort(reverse=True)
    return SideBySide(head, rows, [words for _, words in differences[:NAMED]])


def _value(e: Evidence, column: str, where: dict[str, object]) -> float | None:
    try:
        return e.value(column, **where)
    except LookupError:
        return None
