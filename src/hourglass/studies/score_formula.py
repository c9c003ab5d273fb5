# SPDX-License-Identifier: Apache-2.0
"""Combine the figures of a candidate into one number.

    u = (v - worst) / (best - worst), limited to 0 and 1     the utility of a value: of one figure, setting and seed
    P = mean of u over the part's figures, settings, seeds   the value of a part
    score = 100 · exp(Σ w ln max(P, FLOOR) / Σ w)            the weighted geometric mean of the parts

`worst`, `best` and the weights w are those of the study's file. A geometric mean, because a part that is nearly 0 must
not be bought by the others. `FLOOR` keeps a candidate without a part above a candidate that failed (0), and lets a
search see the others. A value that a run does not show has the utility 0.

The 95 % intervals are those of a bootstrap over seeds, setting by setting. Each draws n - 1 of n seeds with replacement
(Rao and Wu 1988), because n draws of few seeds make intervals too narrow. They need two seeds. They describe other
seeds of the same settings, not other settings: those are held out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hourglass.results.intervals import DRAWS, LEVEL
from hourglass.results.stats import Floats, rounded
from hourglass.studies.study import StudyResult

FLOOR: Final = 0.01


@dataclass(frozen=True)
class PartScore:
    """A part of a score: its value from 0 to 1, its 95 % interval, its weight."""

    value: float
    interval: tuple[float, float] | None
    weight: float


@dataclass(frozen=True)
class ScoredFigure:
    """A figure of one setting: its part of the score, a value for each seed, the mean utility."""

    part: str
    setting: str
    figure: str
    unit: str
    values: tuple[float | None, ...]
    utility: float


@dataclass(frozen=True)
class ScoreTotal:
    """The combined number from 0 to 100, its 95 % interval, the parts."""

    value: float
    interval: tuple[float, float] | None
    parts: Mapping[str, PartScore]


def combine(result: StudyResult, candidate: str, weights: Mapping[str, float]) -> tuple[list[ScoredFigure], ScoreTotal]:
    """Return the figures of a candidate with their utilities, and the score."""
    figures: list[ScoredFigure] = []
    utilities: dict[str, list[tuple[str, Floats]]] = {name: [] for name in weights}
    for line in result.lines:
        if (scale := line.figure.score) is None:
            continue
        values, setting = line.cells[candidate].values, f"{line.part.id}/{line.label}"
        of_seeds = np.array([scale.utility(value) for value in values])
        utilities[scale.part].append((setting, of_seeds))
        figures.append(
            ScoredFigure(
                scale.part, setting, line.figure.name, line.figure.unit, values, rounded(float(of_seeds.mean()))
            )
        )
    return figures, total(utilities, weights)


def total(utilities: Mapping[str, Sequence[tuple[str, Floats]]], weights: Mapping[str, float]) -> ScoreTotal:
    """Return the score of utilities: by part, for each figure its setting and the utilities of its seeds."""
    values = {name: np.array([np.mean([each.mean() for _, each in rows])]) for name, rows in utilities.items()}
    drawn = _draws(utilities)
    parts = {
        name: PartScore(rounded(float(values[name][0])), _interval(drawn.get(name)), weight)
        for name, weight in weights.items()
    }
    spread = _combined(drawn, weights) if drawn else None
    return ScoreTotal(rounded(float(_combined(values, weights)[0])), _interval(spread), parts)


def _combined(parts: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    logs = sum(weight * np.log(np.maximum(parts[name], FLOOR)) for name, weight in weights.items())
    return np.asarray(100 * np.exp(logs / sum(weights.values())), dtype=np.float64)


def _draws(utilities: Mapping[str, Sequence[tuple[str, Floats]]]) -> dict[str, Floats]:
    """Return the draws of each part; empty if a setting has one seed. Figures of one setting share its draws, because
    they come from the same runs."""
    seeds = {setting: each.size for rows in utilities.values() for setting, each in rows}
    if min(seeds.values()) < 2:
        return {}
    random = np.random.default_rng(0)
    chosen = {setting: random.integers(size, size=(DRAWS, size - 1)) for setting, size in seeds.items()}
    return {
        name: np.mean([each[chosen[setting]].mean(axis=1) for setting, each in rows], axis=0)
        for name, rows in utilities.items()
    }


def _interval(drawn: Floats | None) -> tuple[float, float] | None:
    if drawn is None:
        return None
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return rounded(float(low)), rounded(float(high))
