# SPDX-License-Identifier: Apache-2.0
"""Runs that differ only in their seed form a group; groups are compared with a reference by a bootstrap over seeds.
A file of Flent has no seed, so it is a group.

A group's figure is the mean of its runs' figures. Seeds are drawn with replacement (`intervals`, a seed is a block);
below `intervals.MIN_BLOCKS` seeds there is no interval and no mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hourglass.results.compare import SEED, ComparisonCell, ComparisonRow, change_percent
from hourglass.results.intervals import draws, interval
from hourglass.results.labels import labels
from hourglass.results.recording import Recording
from hourglass.results.stats import rounded


@dataclass(frozen=True)
class SeedGroup:
    """Runs of one scenario and kernel, and of one sweep; `members` are their indices in the list of all runs."""

    label: str
    members: list[int]
    test: str
    of_file: bool = False

    @property
    def seeds(self) -> str:
        """The number of its seeds, as text; empty for a file of Flent."""
        number = len(self.members)
        return "" if self.of_file else f"{number} seed{'s' if number > 1 else ''}"


def groups(runs: list[Recording]) -> list[SeedGroup]:
    """Return the groups in the order of their first runs."""
    members_by_setting: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        if run.info.elsewhere:
            members_by_setting[f"file {index}"] = [index]
            continue
        settings = sorted((key, str(value)) for key, value in run.experiment.settings.items() if key != ("seed",))
        members_by_setting.setdefault(repr((settings, run.info.kernel, run.info.engine, run.sweep)), []).append(index)
    names = labels([runs[members[0]] for members in members_by_setting.values()], seeds=False)
    return [
        SeedGroup(name, members, runs[members[0]].test.name, runs[members[0]].info.elsewhere)
        for name, members in zip(names, members_by_setting.values(), strict=True)
    ]


def over_seeds(runs: list[Recording], seed_groups: list[SeedGroup]) -> bool:
    """Return true if groups should be compared instead of runs: there are several, each with distinct seeds."""
    seeds = [[runs[member].info.seed for member in group.members] for group in seed_groups]
    return 1 < len(seed_groups) < len(runs) and all(len(set(group_seeds)) == len(group_seeds) for group_seeds in seeds)


def compare_groups(
    rows: list[ComparisonRow], seed_groups: list[SeedGroup], references: Sequence[int] | None = None
) -> list[ComparisonRow]:
    """Return the rows of groups. `rows` are the figures of single runs (`compare`), in the order of the groups'
    members. `references`: the index of the group with which each is compared; default: the first."""
    references = references or [0] * len(seed_groups)
    return [ComparisonRow(row.figure, row.name, row.unit, _cells(row, seed_groups, references)) for row in rows]


def _mean(values: list[float]) -> float | None:
    """Return the mean; a count stays an integer when all seeds agree."""
    if not values:
        return None
    return values[0] if len(set(values)) == 1 else rounded(float(np.mean(values)))


def _cells(row: ComparisonRow, seed_groups: list[SeedGroup], references: Sequence[int]) -> list[ComparisonCell]:
    samples = [[value for i in group.members if (value := row.cells[i].value) is not None] for group in seed_groups]
    means = [_mean(values) for values in samples]
    drawn = [
        draws([np.array([value], dtype=np.float64) for value in values], "mean", SEED + index)
        for index, values in enumerate(samples)
    ]
    return [
        ComparisonCell(mean)
        if index == reference
        else ComparisonCell(
            mean,
            change_percent(mean, means[reference]),
            interval(drawn[reference], drawn[index])
            if seed_groups[index].test == seed_groups[reference].test
            else None,
        )
        for index, (mean, reference) in enumerate(zip(means, references, strict=True))
    ]
