# SPDX-License-Identifier: Apache-2.0
"""Compare what the papers left out: all congestion controls, more qdiscs.

No paper says what to expect, so there are no claims. A table has the values of one axis side by side and names the
settings in which they differ most.
"""

from dataclasses import dataclass
from math import log

from papers.model import PING, TCP, UP, Evidence, Layout, PaperFigure

QUANTITIES = {UP: "Mbit/s", TCP: "TCP RTT, ms", PING: "ping, ms"}
COMPARED = TCP
NAMED = 6
"""The number of the largest differences that are named."""

FIGURES = (
    PaperFigure(
        "beyond-ccs",
        "All congestion controls of Linux",
        "candles",
        layout=Layout(groups="cc", series=("tsq",), panel="scenario"),
    ),
    PaperFigure(
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


def side_by_side(figure: PaperFigure, e: Evidence) -> SideBySide:
    """Return the figure's runs in a table. A run that failed is a dash."""
    axis = figure.layout.series[0]
    values = e.values(axis)
    names = [e.label(**{axis: value}) for value in values]
    head = ["", *(f"{name}: {unit}" for name in names for unit in QUANTITIES.values())]
    rows, differences = [], []
    for where in e.settings(axis):
        cells = [{column: _value(e, column, where | {axis: value}) for column in QUANTITIES} for value in values]
        rows.append(
            [e.label(**where), *("-" if value is None else f"{value:.3g}" for row in cells for value in row.values())]
        )
        times = [(row[COMPARED], name) for row, name in zip(cells, names, strict=True)]
        finite = [(time, name) for time, name in times if time]
        if len(finite) > 1:
            (low, least), (high, most) = min(finite), max(finite)
            text = f"{e.label(**where)}: {low:.3g} ms with {least}, {high:.3g} ms with {most}"
            differences.append((log(high / low), text))
    differences.sort(reverse=True)
    return SideBySide(head, rows, [text for _, text in differences[:NAMED]])


def _value(e: Evidence, column: str, where: dict[str, object]) -> float | None:
    try:
        return e.value(column, **where)
    except LookupError:
        return None
