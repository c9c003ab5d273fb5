# SPDX-License-Identifier: Apache-2.0
"""The statistics object of the JSON contract, Jain's fairness and the rounding of what is printed.

Percentiles are numpy's linear ones, as Flent's: between the two nearest ranks of (n - 1) · p.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Statistics: TypeAlias = dict[str, float | int | None]

PERCENTILES = {"p10": 10.0, "p50": 50.0, "p90": 90.0, "p99": 99.0}
KEYS = ("n", "min", *PERCENTILES, "max", "mean")
"""The keys of a statistics object, in the order of the contract."""

SIGNIFICANT = 6
"""Digits kept in the summary: the sampling is coarser than that, and differences stay readable."""


def rounded(value: float) -> float:
    """`value` to `SIGNIFICANT` significant digits."""
    return float(f"{value:.{SIGNIFICANT}g}")


def statistics(values: npt.ArrayLike) -> Statistics:
    """{n, min, p10, p50, p90, p99, max, mean} of `values`, in their unit, without NaN. No values: nulls and n = 0."""
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[~np.isnan(sample)]
    if sample.size == 0:
        return {key: 0 if key == "n" else None for key in KEYS}
    figures = np.percentile(sample, list(PERCENTILES.values()))
    result: Statistics = {"n": int(sample.size), "min": rounded(sample.min())}
    result |= {key: rounded(figure) for key, figure in zip(PERCENTILES, figures, strict=True)}
    return result | {"max": rounded(sample.max()), "mean": rounded(sample.mean())}


def percent(part: float, whole: float) -> float | None:
    """`part` in % of `whole`; None of nothing."""
    return rounded(100 * part / whole) if whole else None


def known_sum(counts: Sequence[int | None]) -> int | None:
    """The sum; None when one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def fairness(shares: Sequence[float]) -> float | None:
    """Jain's index (Σx)² / (n · Σx²): 1 = all equal, 1/n = one has everything. None when nobody got anything."""
    squares = sum(share * share for share in shares)
    return rounded(sum(shares) ** 2 / (len(shares) * squares)) if squares > 0 else None


def short(value: float) -> str:
    """Three significant digits without an exponent: 95.6, 0.823, 1230."""
    if value == 0:
        return "0"
    kept = float(f"{value:.3g}")
    return f"{kept:.{max(0, 2 - int(np.floor(np.log10(abs(kept)))))}f}"
