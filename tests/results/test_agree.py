# SPDX-License-Identifier: Apache-2.0
"""Gaps, intervals and verdicts of the lab held against a machine, from closed forms."""

from math import comb

import pytest

from hourglass.results.agree import LEAST, order_interval, row, states_of, verdict


@pytest.mark.parametrize("n", range(1, 40))
def test_the_interval_holds_the_median_with_95_percent_and_is_the_narrowest(n: int) -> None:
    """Of n values, those below the median are binomial: between the k-th least and the k-th greatest it lies with
    1 - 2 · P(fewer than k)."""
    found = order_interval([float(n - place) for place in range(n)])

    def coverage(k: int) -> float:
        return 1 - 2 * sum(comb(n, below) for below in range(k)) / 2**n

    if n < LEAST:
        assert found is None
        assert coverage(1) < 0.95
        return
    assert found is not None
    k = round(found[0])  # values are 1 … n
    assert found == (k, n + 1 - k)
    assert coverage(k) >= 0.95 > coverage(k + 1)


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((-0.9, 0.9), "agrees"),
        ((-1.0, 1.0), "agrees"),
        ((1.1, 3.0), "differs"),
        ((-3.0, -1.1), "differs"),
        ((0.9, 1.1), "undecided"),
        ((-2.0, 2.0), "undecided"),
        (None, "undecided"),
    ],
)
def test_a_verdict_is_what_the_whole_interval_says(interval: tuple[float, float] | None, said: str) -> None:
    assert verdict(interval, 1.0) == said


def test_a_row_is_in_percent_of_the_labs_median() -> None:
    found = row("case", "tcp_rtt.p50", "ms", [50.0, 40.0, 60.0], [55.0, 51.0, 52.0, 53.0, 54.0, 50.0], 5.0)
    assert (found.lab, found.real, found.gap) == (50.0, 52.5, 5.0)
    assert found.interval == (0.0, 10.0)
    assert (found.runs, found.verdict, found.within) == (6, "undecided", True)


def test_fewer_runs_than_an_interval_needs_decide_nothing() -> None:
    assert row("case", "x", "", [1.0], [1.0] * (LEAST - 1), 5.0).verdict == "undecided"
    assert row("case", "x", "", [1.0], [1.0] * LEAST, 5.0).verdict == "agrees"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([124.0, 228.0, 123.0, 229.0, 124.5, 227.5], "3 runs at 124, 3 at 228; the lab has 230"),
        ([100.0, 101.0, 102.0, 103.0, 104.0, 230.0], "5 runs at 102, 1 at 230"),
        ([100.0, 120.0, 140.0, 160.0, 200.0, 240.0], None),
        ([229.0, 230.0, 231.0, 231.0, 232.0, 240.0], None),
    ],
)
def test_runs_in_two_states_are_told(values: list[float], said: str | None) -> None:
    """A gap above twice the tolerance, and above four times what lies within either group."""
    found = states_of(values, row("case", "tcp_rtt.p50", "ms", [230.0], values, 5.0))
    assert (found is None) == (said is None)
    assert said is None or (found is not None and said in found)
