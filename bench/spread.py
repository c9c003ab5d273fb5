# SPDX-License-Identifier: Apache-2.0
"""What repeated measurements say: the median, and an interval that it is in whatever their distribution.

The interval is that of order statistics: between the k-th least and the k-th greatest of n values lies the median of
what they are drawn from, unless fewer than k of n coins show one side. k is the greatest with which that is so in at
least 95 % of all cases; below six values there is none.
"""

import math
from collections.abc import Callable, Sequence
from math import comb
from statistics import median

LEVEL = 0.95

LEAST = 6
"""The fewest values that have an interval."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median is, with a probability of `LEVEL` at least; anywhere, of too few values."""
    ordered, count = sorted(values), len(values)
    rank, outside = 0, 2 * 0.5**count
    while outside <= 1 - LEVEL:
        rank += 1
        outside += 2 * comb(count, rank) * 0.5**count
    return (ordered[rank - 1], ordered[-rank]) if rank else (-math.inf, math.inf)


def width(values: Sequence[float]) -> float:
    """The interval's width as a share of the median."""
    low, high = interval(values)
    return (high - low) / median(values)


def enough(values: Sequence[float], share: float, most: int) -> bool:
    """Whether their interval is narrower than a share of the median, or there are `most` of them."""
    return len(values) >= most or (len(values) >= LEAST and width(values) < share)


def narrowed(once: Callable[[int], float], share: float, most: int) -> list[float]:
    """What `once` gives, again and again, until there is enough of it. It is given how often it was called before."""
    values: list[float] = []
    while not enough(values, share, most):
        values.append(once(len(values)))
    return values
