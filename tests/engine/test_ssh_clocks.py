# SPDX-License-Identifier: Apache-2.0
"""Estimates of a clock, compared with clocks of known offset and drift; and one-way delays from two clocks."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourglass.engine.ssh.clocks import Clock, Exchange, estimate_clock
from hourglass.engine.ssh.one_way_delay import HostRecords, imprecision

S = 10**9


PAUSE_NS = 100


def exchange(
    at_ns: int, offset_ns: int, there_ns: int, back_ns: int, pause_ns: int = 100, ahead_ns: int = 0
) -> Exchange:
    """Return an exchange that left at our time; `there_ns` and `back_ns` are the delays of the two directions."""
    received = at_ns + there_ns + offset_ns
    return Exchange(at_ns, received, received + pause_ns, at_ns + there_ns + pause_ns + back_ns, ahead_ns)


def series(start_ns: int, count: int, offset_ns: int, drift_ppb: int, delays: list[tuple[int, int]]) -> list[Exchange]:
    """Return an exchange every 10 ms with a clock that is `offset_ns` ahead at 0 and gains."""
    times = [start_ns + number * S // 100 for number in range(count)]
    return [
        exchange(time, offset_ns + time * drift_ppb // 10**9, *delays[number % len(delays)])
        for number, time in enumerate(times)
    ]


delay = st.integers(10_000, 3_000_000)


@given(
    st.lists(st.tuples(delay, delay), min_size=1, max_size=20),
    st.integers(-(10**15), 10**15),
    st.integers(-100_000, 100_000),
)
def test_the_truth_is_within_the_uncertainty_for_any_delays(
    delays: list[tuple[int, int]], offset_ns: int, drift_ppb: int
) -> None:
    before, during, after = (series(start * S, 20, offset_ns, drift_ppb, delays) for start in (0, 2, 30))
    clock = estimate_clock(before, during, after)
    for at_ns in (S, 10 * S, 29 * S):
        truth = offset_ns + at_ns * drift_ppb // 10**9
        assert abs(clock.offset_at(at_ns) - truth) <= clock.uncertainty_ns + 40 * abs(drift_ppb) // 1000 + 2


def test_the_shortest_round_trip_counts() -> None:
    clock = estimate_clock(series(0, 5, 7_000, 0, [(900_000, 100_000), (50_000, 50_000)]), [], [])
    assert (clock.offset_ns, clock.uncertainty_ns, clock.round_trip_ns) == (7_000, 50_000, 100_000)


def test_drift_is_the_gain_between_exchanges() -> None:
    clock = estimate_clock(
        series(0, 3, 0, 20_000, [(1_000, 1_000)]), [], series(100 * S, 3, 0, 20_000, [(1_000, 1_000)])
    )
    assert clock.drift_ppb == pytest.approx(20_000, abs=2)
    assert clock.local_ns(clock.host_ns(50 * S)) == pytest.approx(50 * S, abs=2)


def test_an_uneven_clock_has_a_larger_uncertainty() -> None:
    """The exchange in the middle is 1 ms off the line: the uncertainty is 1 ms, less half its round trip."""
    steady = [(10_000, 10_000)]
    odd = [exchange(50 * S, 1_000_000, 10_000, 10_000)]
    clock = estimate_clock(series(0, 3, 0, 0, steady), odd, series(100 * S, 3, 0, 0, steady))
    assert clock.uncertainty_ns == 10_000 + 990_000


def test_a_change_of_the_time_of_day_is_detected() -> None:
    before = [exchange(number * S, 0, 1_000, 1_000, ahead_ns=5 * S) for number in range(3)]
    after = [exchange(number * S, 0, 1_000, 1_000, ahead_ns=5 * S + 300_000) for number in range(10, 13)]
    assert estimate_clock(before, [], after).set_ns == 300_000


def part(node: str, offset_ns: int, drift_ppb: int = 0, uncertainty_ns: int = 0, set_ns: int = 0) -> HostRecords:
    """Return records of a host whose clock is `offset_ns` ahead at our time 0. The test begins at our time 10 s."""
    clock = Clock(0, offset_ns, drift_ppb, uncertainty_ns, 0, 1, 0, set_ns)
    return HostRecords(node, Path(), clock.host_ns(10 * S), 10 * S, clock, {}, 0)


def test_test_times_do_not_depend_on_the_clock() -> None:
    """The clock gains 1 ms in 10 s: its 10.001 s since the start are 10 s."""
    fast = part("a", -3 * S, drift_ppb=100_000)
    assert fast.local_ns(np.array([0, 10 * S + 1_000_000])).tolist() == [0, pytest.approx(10 * S, abs=2)]
    assert part("b", 5 * S).local_ns(np.array([7])).tolist() == [7]


def test_delays_shorter_than_the_uncertainty_are_refused() -> None:
    client, server = part("c", 0, uncertainty_ns=60_000), part("s", 0, uncertainty_ns=50_000)
    assert imprecision(client, server, 110_000) is None
    assert "0.110 ms" in (imprecision(client, server, 109_999) or "")
    assert imprecision(client, part("s", 0, set_ns=1_000_000), 10**9) == "a clock was set during the test"
