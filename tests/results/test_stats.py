# SPDX-License-Identifier: Apache-2.0
"""Statistics, compared with closed forms."""

import json

import numpy as np
import pytest

from hourglass.results.stats import fairness, rounded, short, statistics

KEYS = ("n", "min", "p10", "p50", "p90", "p99", "max", "mean")

TABLE = [
    # values, n, min, p10, p50, p90, p99, max, mean
    ([5], 1, 5, 5, 5, 5, 5, 5, 5),
    ([0, 10], 2, 0, 1, 5, 9, 9.9, 10, 5),
    (range(101), 101, 0, 10, 50, 90, 99, 100, 50),
    (range(100, -1, -1), 101, 0, 10, 50, 90, 99, 100, 50),
    ([1, 2, 3, 4], 4, 1, 1.3, 2.5, 3.7, 3.97, 4, 2.5),
    ([7.5] * 1000, 1000, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5),
    ([-1, np.nan, 1], 2, -1, -0.8, 0, 0.8, 0.98, 1, 0),
]


@pytest.mark.parametrize("row", TABLE)
def test_statistics_have_their_closed_form(row):
    values, *expected = row
    assert statistics(list(values)).model_dump() == pytest.approx(dict(zip(KEYS, expected, strict=True)))


@pytest.mark.parametrize("values", [[], [float("nan")]])
def test_no_values_give_nulls(values):
    assert statistics(values).model_dump() == dict.fromkeys(KEYS) | {"n": 0}


def test_statistics_are_valid_json_with_the_keys_of_the_contract():
    assert list(json.loads(statistics([1, 2]).model_dump_json())) == list(KEYS)


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1, 1, 1, 1], 1), ([4, 0, 0, 0], 0.25), ([1, 3], 0.8), ([5], 1), ([], None), ([0, 0], None)],
)
def test_fairness_is_jains(shares, index):
    assert fairness(shares) == index


@pytest.mark.parametrize(
    ("value", "expected"), [(95.648191234, 95.6482), (0.00123456789, 0.00123457), (0, 0), (1e9, 1e9)]
)
def test_rounding_keeps_six_digits(value, expected):
    assert rounded(value) == expected


SHORT = [(95.64, "95.6"), (0.8234, "0.823"), (1234, "1230"), (0, "0"), (9.999, "10.0")]


@pytest.mark.parametrize(("value", "text"), SHORT)
def test_figures_are_written_short(value, text):
    assert short(value) == text
