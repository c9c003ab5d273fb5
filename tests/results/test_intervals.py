# SPDX-License-Identifier: Apache-2.0
"""The interval of order statistics, from its closed form."""

from math import comb

import pytest

from hourglass.results.intervals import MIN_VALUES, order_interval


@pytest.mark.parametrize("n", range(1, 40))
def test_the_interval_contains_the_median_with_95_percent_and_is_the_narrowest(n: int) -> None:
    """The number of values below the median is binomial. So the median is between the k-th least and the k-th greatest
    value with the probability 1 - 2 · P(fewer than k)."""
    bounds = order_interval([float(n - number) for number in range(n)])

    def coverage(k: int) -> float:
        return 1 - 2 * sum(comb(n, below) for below in range(k)) / 2**n

    if n < MIN_VALUES:
        assert bounds is None
        assert coverage(1) < 0.95
        return
    assert bounds is not None
    k = round(bounds[0])  # values are 1 … n
    assert bounds == (k, n + 1 - k)
    assert coverage(k) >= 0.95 > coverage(k + 1)
