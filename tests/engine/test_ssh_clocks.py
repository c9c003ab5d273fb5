# SPDX-License-Identifier: Apache-2.0
"""How a clock stands, against clocks whose truth is known; and one-way delays by two of them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourglass.engine.ssh.clocks import Clock, Exchange, compare
from hourglass.engine.ssh.ways import Part, unknown

S = 10**9


PAUSE_NS = 100


def exchange(
    at_ns: int, offset_ns: int, there_ns: int, back_ns: int, PAUSE_NS: int = 100, ahead_ns: int = 0
) -> Exchange:
    """One that left at a time of ours; `there_ns` and `back_ns` are how long the ways took."""
    received = at_ns + there_ns + offset_ns
    return Exchange(at_ns, received, received + PAUSE_NS, at_ns + there_ns + PAUSE_NS + back_ns, ahead_ns)


def series(start_ns: int, count: int, offset_ns: int, drift_ppb: int, ways: list[tuple[int, int]]) -> list[Exchange]:
    """One each 10 ms of a clock that is `offset_ns` ahead at 0 and gains."""
    times = [start_ns + number * S // 100 for number in range(count)]
    return [
        exchange(at, offset_ns + at * drift_ppb // 10**9, *ways[number % len(ways)]) for number, at in enumerate(times)
    ]


way = st.integers(10_000, 3_000_000)


@given(
    st.lists(st.tuples(way, way), min_size=1, max_size=20),
    st.integers(-(10**15), 10**15),
    st.integers(-100_000, 100_000),
)
def test_the_truth_is_within_the_uncertainty_however_the_ways_differ(
    ways: list[tuple[int, int]], offset_ns: int, drift_ppb: int
) -> None:
    before, during, after = (series(start * S, 20, offset_ns, drift_ppb, ways) for start in (0, 2, 30))
    clock = compare(before, during, after)
    for at_ns in (S, 10 * S, 29 * S):
        truth = offset_ns + at_ns * drift_ppb // 10**9
        assert abs(clock.offset_at(at_ns) - truth) <= clock.uncertainty_ns + 40 * abs(drift_ppb) // 1000 + 2


def test_the_shortest_round_trip_counts() -> None:
    clock = compare(series(0, 5, 7_000, 0, [(900_000, 100_000), (50_000, 50_000)]), [], [])
    assert (clock.offset_ns, clock.uncertainty_ns, clock.round_trip_ns) == (7_000, 50_000, 100_000)


def test_drift_is_what_was_gained_between() -> None:
    clock = compare(series(0, 3, 0, 20_000, [(1_000, 1_000)]), [], series(100 * S, 3, 0, 20_000, [(1_000, 1_000)]))
    assert clock.drift_ppb == pytest.approx(20_000, abs=2)
    assert clock.ours(clock.theirs(50 * S)) == pytest.approx(50 * S, abs=2)


def test_a_clock_that_is_not_even_is_known_less_well() -> None:
    """In the middle it is 1 ms off the line: its exchange there says 1 ms, less half its round trip."""
    steady = [(10_000, 10_000)]
    odd = [exchange(50 * S, 1_000_000, 10_000, 10_000)]
    clock = compare(series(0, 3, 0, 0, steady), odd, series(100 * S, 3, 0, 0, steady))
    assert clock.uncertainty_ns == 10_000 + 990_000


def test_a_time_of_day_that_was_set_is_seen() -> None:
    before = [exchange(number * S, 0, 1_000, 1_000, ahead_ns=5 * S) for number in range(3)]
    after = [exchange(number * S, 0, 1_000, 1_000, ahead_ns=5 * S + 300_000) for number in range(10, 13)]
    assert compare(before, [], after).set_ns == 300_000


def part(node: str, offset_ns: int, drift_ppb: int = 0, uncertainty_ns: int = 0, set_ns: int = 0) -> Part:
    """Its clock is that much ahead of ours at our time 0, when the test begins 10 s later by ours."""
    clock = Clock(0, offset_ns, drift_ppb, uncertainty_ns, 0, 1, 0, set_ns)
    return Part(node, Path(), clock.theirs(10 * S), 10 * S, clock, {}, 0)


def test_test_times_are_ours_whatever_the_clock() -> None:
    """It gains 1 ms in 10 s: what it calls 10.001 s since the start is 10 s."""
    fast = part("a", -3 * S, drift_ppb=100_000)
    assert fast.ours(np.array([0, 10 * S + 1_000_000])).tolist() == [0, pytest.approx(10 * S, abs=2)]
    assert part("b", 5 * S).ours(np.array([7])).tolist() == [7]


def test_delays_that_are_shorter_than_what_is_not_known_are_refused() -> None:
    client, server = part("c", 0, uncertainty_ns=60_000), part("s", 0, uncertainty_ns=50_000)
    assert unknown(client, server, 110_000) is None
    assert "0.110 ms" in (unknown(client, server, 109_999) or "")
    assert unknown(client, part("s", 0, set_ns=1_000_000), 10**9) == "a clock was set during the test"
