# SPDX-License-Identifier: Apache-2.0
"""Statistics of samples, Jain's fairness and the rounding of printed values.

Percentiles are numpy's linear ones, as Flent's: between the two nearest ranks of (n - 1) · p.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hourglass.contract.summary import Statistics

Floats: TypeAlias = npt.NDArray[np.float64]

PERCENTILES = (10, 50, 90, 99)

SIGNIFICANT = 6
"""Digits stored in the summary: the sampling is coarser, and differences stay readable."""


def rounded(value: float) -> float:
    """Return `value` with `SIGNIFICANT` significant digits."""
    return float(f"{value:.{SIGNIFICANT}g}")


def statistics(values: npt.ArrayLike) -> Statistics:
    """Return the statistics of the values, in their unit; NaN is left out."""
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[~np.isnan(sample)]
    if sample.size == 0:
        return Statistics(n=0, min=None, p10=None, p50=None, p90=None, p99=None, max=None, mean=None)
    p10, p50, p90, p99 = map(rounded, np.percentile(sample, PERCENTILES))
    low, high, mean = rounded(sample.min()), rounded(sample.max()), rounded(sample.mean())
    return Statistics(n=sample.size, min=low, p10=p10, p50=p50, p90=p90, p99=p99, max=high, mean=mean)


def percent(part: float, total: float) -> float | None:
    """Return `part` in % of `total`; None if `total` is 0."""
    return rounded(100 * part / total) if total else None


def known_sum(counts: Sequence[int | None]) -> int | None:
    """Return the sum; None if one of them is unknown."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def fairness(shares: Sequence[float]) -> float | None:
    """Return Jain's index (Σx)² / (n · Σx²): 1 = all equal, 1/n = one has everything. None if all are 0."""
    squares = sum(share * share for share in shares)
    return rounded(sum(shares) ** 2 / (len(shares) * squares)) if squares > 0 else None


def short(value: float) -> str:
    """Return three significant digits without an exponent: 95.6, 0.823, 1230."""
    if value == 0:
        return "0"
    shortened = float(f"{value:.3g}")
    return f"{shortened:.{max(0, 2 - int(np.floor(np.log10(abs(shortened)))))}f}"
