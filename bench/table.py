# SPDX-License-Identifier: Apache-2.0
"""Present the figures as tables and as plain data."""

import math
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import spread
from bench.base import TOLERANCE, Compare, git
from bench.figures import AT_ONCE, LOADED, WIDE
from bench.peers import NS3_SLOWER
from bench.rows import Row, Samples


def data(rows: list[Row], samples: Samples, rounds: int) -> dict[str, Any]:
    """Return the figures by group and name, None for missing ones, with their intervals."""
    result: dict[str, Any] = {"machine": machine(), "commit": commit(), "rounds": rounds}
    intervals: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        result.setdefault(row.group, {})[row.name] = row.value(samples)
        if (bounds := row.bounds(samples)) is not None:
            intervals.setdefault(row.group, {})[row.name] = list(bounds)
    return result | {"intervals": intervals, "absent": samples.absent}


def of_base(revision: str, comparisons: list[Compare]) -> dict[str, Any]:
    """Return the comparison as plain data."""
    ratios = {
        comparison.name: {"ratio": comparison.ratio, "interval": comparison.bounds, "pairs": len(comparison.ratios)}
        for comparison in comparisons
    }
    return {"revision": revision, "tolerance": TOLERANCE, "ratios": ratios}


def show(figures: dict[str, Any], rows: list[Row], console: Console) -> None:
    """Print the figures of these rows."""
    console.print(loaded(figures, rows))
    console.print()
    table, group = Table(box=None, pad_edge=False, show_header=False), None
    for column in range(4):
        table.add_column(justify="left" if column else "right", no_wrap=column < 3)
    for row in (row for row in rows if row.group not in WIDE):
        if group not in (None, row.group):
            table.add_row()
        group = row.group
        value = figures[row.group].get(row.name)
        about = row.about
        if value is None:
            about += f": {figures['absent'].get(row.by.name, 'not measured')}"
        elif (bounds := figures["intervals"].get(row.group, {}).get(row.name)) is not None:
            about += f" ({short(bounds[0])} to {short(bounds[1])})"
        table.add_row("-" if value is None else short(value), row.unit, aim(row), about)
    console.print(table)
    console.print()
    for line in notes(figures):
        console.print(line, highlight=False, soft_wrap=True)


def loaded(figures: dict[str, Any], rows: list[Row]) -> Table:
    """Return a table with a row for each case."""
    table = grid("wall ms per second under load", *WIDE.values(), "at most")
    for row in (row for row in rows if row.group == LOADED):
        cells = (figures.get(group, {}).get(row.name) for group in WIDE)
        target = short(row.at_most) if row.at_most < math.inf else ""
        table.add_row(row.name, *("" if cell is None else short(cell) for cell in cells), target)
    return table


def grid(title: str, *columns: str) -> Table:
    """Return an empty table of names and figures."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def aim(row: Row) -> str:
    """Return the figure's target."""
    if row.at_most < math.inf:
        return f"≤ {short(row.at_most)}"
    return f"≥ {short(row.at_least)}" if row.at_least > -math.inf else ""


def short(value: float) -> str:
    """Return three significant digits, and all digits of large numbers."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def notes(figures: dict[str, Any]) -> list[str]:
    """Return lines that explain the figures."""
    at_least, at_most = NS3_SLOWER
    rounds, level = figures["rounds"], spread.LEVEL * 100
    return [
        f"times: the least of {rounds * AT_ONCE} runs; CPU time: the median of {rounds} or more; in brackets: where the"
        f" median is at {level:g} %",
        f"ns-3: its wheel, run here; takes {at_least:g} to {at_most:g} times as long as an optimised build",
    ]


def show_base(revision: str, comparisons: list[Compare], console: Console) -> None:
    """Print the comparison."""
    level = f"{spread.LEVEL:.0%}"
    console.print(f"times as long as {revision} took, side by side: the median of pairs, and where it is at {level}")
    table = grid("", "ratio", "from", "to", "pairs")
    for case in comparisons:
        figures = (f"{value:.3f}" for value in (case.ratio, *case.bounds))
        table.add_row(case.name, *figures, str(len(case.ratios)))
    console.print(table)


def regressions(revision: str, comparisons: list[Compare]) -> list[str]:
    """Return a line for each case that takes longer than before, beyond noise and tolerance."""
    return [
        f"regression: {case.name} takes {case.ratio:.2f} times as long as {revision} ({case.bounds[0]:.2f} to"
        f" {case.bounds[1]:.2f} in {len(case.ratios)} pairs; allowed: {1 + TOLERANCE:g})"
        for case in comparisons
        if case.slower
    ]


def machine() -> dict[str, Any]:
    return {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release()}


def processor() -> str:
    """Return the model name of the first core."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str | None:
    """Return the sources' name by `git describe`, or None outside a repository."""
    return git("describe", "--always", "--dirty")
