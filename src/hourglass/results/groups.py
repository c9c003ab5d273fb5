# SPDX-License-Identifier: Apache-2.0
"""Runs that differ only in their seed form a group; groups are compared with the first by a bootstrap over seeds.

A group's figure is the mean of its runs' figures. Seeds are drawn with replacement (`bootstrap`, a seed is a block);
below `bootstrap.MIN_BLOCKS` seeds there is no interval and no mark.
"""

from dataclasses import dataclass

import numpy as np

from hourglass.results.bootstrap import draws, interval
from hourglass.results.compare import SEED, Cell, Row, change_percent
from hourglass.results.labels import labels
from hourglass.results.recording import Recording
from hourglass.results.stats import rounded


@dataclass(frozen=True)
class Group:
    """Runs of one scenario and kernel, and of one sweep; `members` are their places in the list of all runs."""

    label: str
    members: list[int]
    test: str


def groups(runs: list[Recording]) -> list[Group]:
    """The groups in the order of their first runs."""
    places: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        settings = sorted((key, str(value)) for key, value in run.experiment.settings.items() if key != ("seed",))
        places.setdefault(repr((settings, run.info.kernel, run.info.engine, run.sweep)), []).append(place)
    names = labels([runs[members[0]] for members in places.values()], seeds=False)
    return [
        Group(name, members, runs[members[0]].test.name) for name, members in zip(names, places.values(), strict=True)
    ]


def over_seeds(runs: list[Recording], found: list[Group]) -> bool:
    """Whether the groups are to be compared in place of the runs: several, each of runs with seeds of their own."""
    seeds = [[runs[member].info.seed for member in group.members] for group in found]
    return 1 < len(found) < len(runs) and all(len(set(own)) == len(own) for own in seeds)


def compare_groups(rows: list[Row], found: list[Group]) -> list[Row]:
    """`rows` are the figures of single runs (`compare`), in the order of the groups' members."""
    return [Row(row.figure, row.name, row.unit, _cells(row, found)) for row in rows]


def _mean(values: list[float]) -> float | None:
    """The mean; a count stays one when all seeds agree."""
    if not values:
        return None
    return values[0] if len(set(values)) == 1 else rounded(float(np.mean(values)))


def _cells(row: Row, found: list[Group]) -> list[Cell]:
    samples = [[value for i in group.members if (value := row.cells[i].value) is not None] for group in found]
    means = [_mean(values) for values in samples]
    drawn = [
        draws([np.array([value], dtype=np.float64) for value in values], "mean", SEED + place)
        for place, values in enumerate(samples)
    ]
    first = Cell(means[0])
    return [first] + [
        Cell(mean, change_percent(mean, means[0]), interval(drawn[0], other) if group.test == found[0].test else None)
        for mean, other, group in zip(means[1:], drawn[1:], found[1:], strict=True)
    ]
