# SPDX-License-Identifier: Apache-2.0
"""The median of repeated measurements, and its interval by order statistics (`hourglass.results.intervals`)."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from hourglass.results.intervals import LEVEL, MIN_VALUES, order_interval

__all__ = ["LEAST", "LEVEL", "enough", "interval", "narrowed", "width"]

LEAST = MIN_VALUES
"""The fewest values that have an interval."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median with a probability of `LEVEL` at least; it is infinite for too few values."""
    return order_interval(values) or (-math.inf, math.inf)


def width(values: Sequence[float]) -> float:
    """Return the interval's width as a share of the median."""
    low, high = interval(values)
    return (high - low) / median(values)


def enough(values: Sequence[float], share: float, most: int) -> bool:
    """Return whether the interval is narrower than a share of the median, or there are `most` values."""
    return len(values) >= most or (len(values) >= LEAST and width(values) < share)


def narrowed(once: Callable[[int], float], share: float, most: int) -> list[float]:
    """Return values of `once`, repeated until they are enough. `once` receives the number of earlier calls."""
    values: list[float] = []
    while not enough(values, share, most):
        values.append(once(len(values)))
    return values
