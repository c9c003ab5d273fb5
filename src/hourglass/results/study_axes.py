# SPDX-License-Identifier: Apache-2.0
"""Finds the axes of runs, and the run with which each of them is compared.

The axes are those of the study's file; without one, the settings that differ. An axis of testbed, test, event or
scenario is a condition; any other axis is a choice. A slow link does not compete with a fast link. A run is compared
with the run of the first choices under its conditions and with its seed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hourglass.results.groups import SeedGroup
from hourglass.results.labels import differences, short_names
from hourglass.results.recording import Recording
from hourglass.results.sweeps import CONDITIONS

SEED = "seed"
FACTORS = {"": 1.0, "%": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class StudyAxis:
    """An axis: `of_run` has the index of each run's value."""

    name: str
    values: list[str]
    numbers: list[float] | None
    is_condition: bool
    of_run: list[int]


def study_axes(runs: Sequence[Recording]) -> list[StudyAxis]:
    """Return the axes with several values. Numbers are in order."""
    keys = list(runs[0].axes)
    if keys and all(list(run.axes) == keys for run in runs):
        named = [(key, *_named([run.axes[key] for run in runs], key)) for key in keys]
    else:
        differing = differences(runs, ranked=True)
        names = short_names(list(differing))
        named = [(".".join(key), names[key], list(values)) for key, values in differing.items()]
    return [_axis(key, name, texts) for key, name, texts in named if len(set(texts)) > 1]


def _named(terms: list[str], key: str) -> tuple[str, list[str]]:
    """Return the name of an axis and the runs' values: "cc=bbr" has both, a label is only a value."""
    names = {term.partition("=")[0] for term in terms if "=" in term}
    if len(names) == 1 and all("=" in term for term in terms):
        return names.pop(), [term.partition("=")[2] for term in terms]
    return key.rpartition(".")[2], terms


def _axis(key: str, name: str, texts: list[str]) -> StudyAxis:
    values = list(dict.fromkeys(texts))
    numbers = [_number(value) for value in values]
    plain = [number for number in numbers if number is not None]
    if len(plain) == len(values):
        ordered = sorted(zip(plain, values, strict=True))
        plain, values = [number for number, _ in ordered], [value for _, value in ordered]
    is_condition = key.partition(".")[0] in CONDITIONS or name == SEED
    return StudyAxis(name, values, plain if len(plain) == len(values) else None, is_condition,
                     [values.index(text) for text in texts])  # fmt: skip


def _number(text: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z%]*)", text)
    return float(match[1]) * FACTORS[match[2]] if match and match[2] in FACTORS else None


def references(runs: Sequence[Recording], axes: Sequence[StudyAxis]) -> list[int]:
    """Return for each run the index of its reference. This is the run of the first choices under its conditions,
    otherwise the first of all."""
    choices = [axis for axis in axes if not axis.is_condition]
    conditions = [axis for axis in axes if axis.is_condition]
    if not choices:
        varied = next((axis for axis in conditions if axis.name != SEED), None)
        choices = [varied] if varied else []
        conditions = [axis for axis in conditions if axis is not varied]
    chosen = [tuple(axis.of_run[run] for axis in choices) for run in range(len(runs))]
    under = [tuple(axis.of_run[run] for axis in conditions) for run in range(len(runs))]
    first: dict[tuple[int, ...], int] = {}
    for run in reversed(range(len(runs))):
        if chosen[run] == chosen[0]:
            first[under[run]] = run
    indices = [first.get(condition, 0) for condition in under]
    return [0] * len(runs) if indices == list(range(len(runs))) else indices


def reference_text(axes: Sequence[StudyAxis]) -> str:
    """Return the choices of the reference, as a sentence; empty if there are no axes."""
    axes_of_settings = [axis for axis in axes if axis.name != SEED]
    choices = [axis for axis in axes_of_settings if not axis.is_condition] or axes_of_settings[:1]
    text = ", ".join(f"{axis.name}={axis.values[axis.of_run[0]]}" for axis in choices)
    return f"{text} at the same other settings" if len(axes) > len(choices) else text


def group_references(run_groups: Sequence[SeedGroup], of_runs: Sequence[int]) -> list[int]:
    """Return for each group the group of the run with which its first run is compared."""
    group_of = {member: index for index, group in enumerate(run_groups) for member in group.members}
    return [group_of[of_runs[group.members[0]]] for group in run_groups]
