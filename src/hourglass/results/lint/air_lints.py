# SPDX-License-Identifier: Apache-2.0
"""Pitfalls of the air: unfair shares and long waits."""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import CATEGORIES, RadioFigures, RunWarning
from hourglass.results.lint.context import LintContext
from hourglass.results.wifi import wifi

MARKED = ("VO", "VI")
MARKED_SHARE = 0.5
"""A share of the air time: if marked traffic takes less, waiting traffic waits for other reasons."""
WAITS_LONGER = 4
"""A factor between the waits for the medium. With default windows and equal load, best effort waits about twice as
long."""
WAITS_MS = 10
"""Below this the wait for the medium is only a few exchanges of others."""


def best_effort_starved(context: LintContext) -> Iterator[RunWarning]:
    """EDCA serves voice and video first: traffic with these marks takes the air from best effort on the same
    channel."""
    radios_by_node = wifi(context.run, context.window)
    for radios in _channels(context, radios_by_node):
        marked = [
            category for radio in radios.values() for name, category in radio.categories.items() if name in MARKED
        ]
        air = sum(radio.air_percent or 0 for radio in radios.values())
        share = sum(category.air_percent for category in marked) / air if air else 0
        waits = [
            category.contention_ms
            for category in marked
            if category.contention_ms is not None and category.air_percent > 0
        ]
        for radio_name, radio in radios.items():
            best_effort = radio.categories.get("BE")
            if best_effort is None or best_effort.contention_ms is None or best_effort.waiting_ms is None or not waits:
                continue
            if share < MARKED_SHARE or best_effort.contention_ms < max(WAITS_MS, WAITS_LONGER * min(waits)):
                continue
            yield RunWarning(
                id="best-effort-starved",
                text=f"{CATEGORIES['BE']} of {radio_name} waits {best_effort.waiting_ms:.3g} ms to be sent, of them"
                f" {best_effort.contention_ms:.3g} ms for the medium; voice and video wait {min(waits):.3g} ms for it"
                f" and have {share:.0%} of the air time on its channel",
                remedy="traffic with these marks (EF, CS5 and similar) has priority in the air; mark less of it, or"
                " shape it before the radio",
            )


def _channels(
    context: LintContext, radios_by_node: dict[str, dict[str, RadioFigures]]
) -> list[dict[str, RadioFigures]]:
    """Return the radios by name, grouped by medium."""
    table = context.run.radio_counters
    if table.is_empty():
        return []
    rows = table.filter(pl.col("name") == "medium").unique(["node", "device"], maintain_order=True)
    media: dict[int, dict[str, RadioFigures]] = {}
    for node, device, medium in rows.select("node", "device", "value").iter_rows():
        if device in radios_by_node.get(node, {}):
            media.setdefault(medium, {})[f"{node}:{device}"] = radios_by_node[node][device]
    return list(media.values())
