# SPDX-License-Identifier: Apache-2.0
"""The two statistics of comparisons: the block bootstrap within runs, and order statistics over repeated runs.

*Block bootstrap* (Künsch 1989): the spread that a statistic would have in other stretches of the same process. Blocks
are drawn with replacement, as many as a run has, and the statistic is computed from all samples of the drawn ones. A
draw is a count per block, so nothing is copied: a mean is a quotient of two weighted sums. A quantile is a bisection
over the sorted samples, for which each block has a table of its ranks.

| parameter | value | why |
|---|---|---|
| `DRAWS` | 1000 | the interval's ends move less than the blocks' noise |
| `LEVEL` | 95 % | usual |
| `MIN_BLOCKS` | 5 | fewer blocks say nothing about the spread: no interval |

*Order statistics* (Conover 1971): the interval between the k-th least and the k-th greatest value encloses the median
with at least `LEVEL`, for any distribution.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hourglass.results.stats import Floats, rounded

DRAWS = 1000
LEVEL = 0.95
MIN_BLOCKS = 5
MIN_VALUES = 6
"""The number of values whose minimum and maximum enclose the median with 95 %: 1 - 2 · 2^-6."""

Statistic: TypeAlias = Literal["mean", "median", "p99"]
QUANTILES = {"median": 0.5, "p99": 0.99}
Counts: TypeAlias = npt.NDArray[np.int64]


def statistic_of(values: Floats, statistic: Statistic) -> float:
    """Return the statistic of plain samples."""
    if statistic == "mean":
        return float(np.mean(values))
    return float(np.median(values) if statistic == "median" else np.percentile(values, 99))


def draws(blocks: list[Floats], statistic: Statistic, seed: int) -> Floats:
    """Return the statistic of `DRAWS` draws of as many blocks as there are, with replacement; empty with too few
    blocks."""
    if len(blocks) < MIN_BLOCKS:
        return np.empty(0)
    counts = _counts(len(blocks), seed)
    return _means(blocks, counts) if statistic == "mean" else _quantiles(blocks, counts, QUANTILES[statistic])


@lru_cache(maxsize=64)
def _counts(blocks: int, seed: int) -> Counts:
    """Return how often each block is in each draw: [draw, block]."""
    drawn = np.random.default_rng(seed).integers(blocks, size=(DRAWS, blocks))
    cells = drawn + blocks * np.arange(DRAWS)[:, None]
    return np.bincount(cells.ravel(), minlength=DRAWS * blocks).reshape(DRAWS, blocks)


def interval(first: Floats, other: Floats) -> tuple[float, float] | None:
    """Return the 95 % interval of other - first, from the draws of both; None if either had too few blocks."""
    if first.size == 0 or other.size == 0:
        return None
    low, high = np.quantile(other - first, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return rounded(float(low)), rounded(float(high))


def excludes_zero(ends: tuple[float, float] | None) -> bool:
    """Tell if a difference is significant."""
    return ends is not None and not ends[0] <= 0 <= ends[1]


def order_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the narrowest interval between the k-th least and the k-th greatest value that encloses the median with
    `LEVEL`; None for fewer than `MIN_VALUES` values."""
    ordered, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < n // 2 and 2 * (outside + comb(n, k) / 2**n) <= 1 - LEVEL:
        outside += comb(n, k) / 2**n
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def _sizes(blocks: list[Floats]) -> Counts:
    return np.array([block.size for block in blocks], dtype=np.int64)


def _means(blocks: list[Floats], counts: Counts) -> Floats:
    sums = np.array([block.sum() for block in blocks])
    return np.asarray((counts @ sums) / (counts @ _sizes(blocks)), dtype=np.float64)


def _quantiles(blocks: list[Floats], counts: Counts, share: float) -> Floats:
    """Return a quantile of each draw, linear between the two nearest samples."""
    values = np.unique(np.concatenate(blocks))
    cumulative = np.stack([np.searchsorted(np.sort(block), values, side="right") for block in blocks])
    position = (counts @ _sizes(blocks) - 1) * share
    low, high = (
        _ranked(values, cumulative, counts, rank.astype(np.int64)) for rank in (np.floor(position), np.ceil(position))
    )
    return np.asarray(low + (high - low) * (position - np.floor(position)), dtype=np.float64)


def _ranked(values: Floats, cumulative: npt.NDArray[Any], counts: Counts, rank: Counts) -> Floats:
    """Return the sample of 0-based `rank` of each draw: the first value with more than `rank` drawn samples not
    above it."""
    low, high = np.zeros(rank.size, dtype=np.int64), np.full(rank.size, values.size - 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = np.einsum("db,bd->d", counts, cumulative[:, middle]) > rank
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return values[low]
