# SPDX-License-Identifier: Apache-2.0
"""Traps of the air: who gets it, and who waits."""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import Radio, Warning
from hourglass.results.lint.subject import Subject
from hourglass.results.wifi import CATEGORIES, wifi

MARKED = ("VO", "VI")
MARKED_SHARE = 0.5
"""Of what is sent: where marked traffic takes less, who waits does so for others."""
WAITS_LONGER = 4
"""Times as long for the medium as the marked. With their own windows and equal load best effort waits about twice."""
WAITS_MS = 10
"""Below this the wait for the medium is a few exchanges of others."""


def best_effort_starved(subject: Subject) -> Iterator[Warning]:
    """EDCA serves voice and video first: what is marked so takes the air from best effort, of all on a channel."""
    found = wifi(subject.run, subject.window)
    for radios in _channels(subject, found):
        marked = [one for radio in radios.values() for name, one in radio.categories.items() if name in MARKED]
        air = sum(radio.air_percent for radio in radios.values())
        share = sum(one.air_percent for one in marked) / air if air else 0
        waits = [one.contention_ms for one in marked if one.contention_ms is not None and one.air_percent > 0]
        for place, radio in radios.items():
            own = radio.categories.get("BE")
            if own is None or own.contention_ms is None or own.waiting_ms is None or not waits:
                continue
            if share < MARKED_SHARE or own.contention_ms < max(WAITS_MS, WAITS_LONGER * min(waits)):
                continue
            yield Warning(
                id="best-effort-starved",
                text=f"{CATEGORIES['BE']} of {place} waits {own.waiting_ms:.3g} ms to be sent, of them"
                f" {own.contention_ms:.3g} ms for the medium; voice and video wait {min(waits):.3g} ms for it and have"
                f" {share:.0%} of the air time on its channel",
                remedy="packets with these marks (EF, CS5 and the like) have the air first: mark less, or shape the"
                " marked traffic before the radio",
            )


def _channels(subject: Subject, found: dict[str, dict[str, Radio]]) -> list[dict[str, Radio]]:
    """The radios by name, those of one medium together."""
    table = subject.run.radio_counters
    if table.is_empty():
        return []
    rows = table.filter(pl.col("name") == "medium").unique(["node", "device"], maintain_order=True)
    media: dict[int, dict[str, Radio]] = {}
    for node, device, medium in rows.select("node", "device", "value").iter_rows():
        if device in found.get(node, {}):
            media.setdefault(medium, {})[f"{node}:{device}"] = found[node][device]
    return list(media.values())
