# SPDX-License-Identifier: Apache-2.0
"""Block bootstrap (Künsch 1989): what a statistic could have been, had other stretches of the same process been seen.

Blocks are drawn with replacement, as many as there are, and the statistic is taken of all samples of the drawn ones.
A draw is a count per block, so nothing is copied: a mean is a quotient of two weighted sums; a median is found by
bisection over the sorted samples, in which a block's table says how many of its samples are not above each.

| parameter | value | why |
|---|---|---|
| `DRAWS` | 1000 | the interval's ends move less than the blocks' own noise |
| `LEVEL` | 95 % | usual |
| `MIN_BLOCKS` | 5 | fewer blocks say nothing about the spread: no interval |
"""

from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hourglass.results.stats import Floats, rounded

DRAWS = 1000
LEVEL = 0.95
MIN_BLOCKS = 5

Statistic: TypeAlias = Literal["mean", "median"]
Counts: TypeAlias = npt.NDArray[np.int64]


def statistic_of(values: Floats, statistic: Statistic) -> float:
    """The statistic of plain samples."""
    return float(np.mean(values) if statistic == "mean" else np.median(values))


def draws(blocks: list[Floats], statistic: Statistic, seed: int) -> Floats:
    """The statistic of `DRAWS` draws of as many blocks as there are, with replacement; empty with too few blocks."""
    if len(blocks) < MIN_BLOCKS:
        return np.empty(0)
    counts = _counts(len(blocks), seed)
    return _means(blocks, counts) if statistic == "mean" else _medians(blocks, counts)


@lru_cache(maxsize=64)
def _counts(blocks: int, seed: int) -> Counts:
    """How often each block is in each draw: [draw, block]."""
    chosen = np.random.default_rng(seed).integers(blocks, size=(DRAWS, blocks))
    places = chosen + blocks * np.arange(DRAWS)[:, None]
    return np.bincount(places.ravel(), minlength=DRAWS * blocks).reshape(DRAWS, blocks)


def interval(first: Floats, other: Floats) -> tuple[float, float] | None:
    """The 95 % interval of other - first, from the draws of both; None when either had too few blocks."""
    if first.size == 0 or other.size == 0:
        return None
    low, high = np.quantile(other - first, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return rounded(float(low)), rounded(float(high))


def _sizes(blocks: list[Floats]) -> Counts:
    return np.array([block.size for block in blocks], dtype=np.int64)


def _means(blocks: list[Floats], counts: Counts) -> Floats:
    sums = np.array([block.sum() for block in blocks])
    return np.asarray((counts @ sums) / (counts @ _sizes(blocks)), dtype=np.float64)


def _medians(blocks: list[Floats], counts: Counts) -> Floats:
    values = np.unique(np.concatenate(blocks))
    upto = np.stack([np.searchsorted(np.sort(block), values, side="right") for block in blocks])
    total = counts @ _sizes(blocks)
    low, high = (_ranked(values, upto, counts, rank) for rank in ((total - 1) // 2, total // 2))
    return (low + high) / 2


def _ranked(values: Floats, upto: npt.NDArray[Any], counts: Counts, rank: Counts) -> Floats:
    """The sample of 0-based `rank` of each draw: the first value with more than `rank` drawn samples not above it."""
    low, high = np.zeros(rank.size, dtype=np.int64), np.full(rank.size, values.size - 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = np.einsum("db,bd->d", counts, upto[:, middle]) > rank
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return values[low]
