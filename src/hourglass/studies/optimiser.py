# SPDX-License-Identifier: Apache-2.0
"""Propose conditions by Optuna's tree-structured Parzen estimator (Bergstra et al. 2011; Watanabe 2023).

It handles numbers and alternatives together, and uses only the order of the values, so these need no scale. The first
`RANDOM` points are random. Points are proposed in batches: those of a batch do not know of each other's values
(`constant_liar` keeps them apart).
"""

import warnings
from collections.abc import Sequence
from typing import Any

from hourglass.errors import MissingError, installing
from hourglass.studies.space import Place, Point

RANDOM = 24


class Optimiser:
    """Proposes points and learns their values; it searches the smallest. Equal seeds and values give equal
    points."""

    def __init__(self, places: Sequence[Place], seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise MissingError("hourglass search needs Optuna", installing("hourglass-net[search]")) from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # multivariate and constant_liar are marked as experimental
            sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=RANDOM, multivariate=True, constant_liar=True
            )
        self._study: Any = optuna.create_study(sampler=sampler)
        self._places = places
        self._asked: list[Any] = []

    def ask(self, number: int) -> list[Point]:
        """Return the next points."""
        self._asked = [self._study.ask() for _ in range(number)]
        return [{place.name: _suggested(trial, place) for place in self._places} for trial in self._asked]

    def tell(self, values: Sequence[float]) -> None:
        """Learn the values of the points."""
        for trial, value in zip(self._asked, values, strict=True):
            self._study.tell(trial, value)


def _suggested(trial: Any, place: Place) -> float:
    if place.choices:
        return float(trial.suggest_categorical(place.name, list(range(place.choices))))
    return float(trial.suggest_float(place.name, 0, 1))
