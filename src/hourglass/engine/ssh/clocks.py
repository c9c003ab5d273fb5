# SPDX-License-Identifier: Apache-2.0
"""How a machine's clock stands to ours, from questions and answers over the control connection. Pure.

A question leaves at t1 and comes at t2 of the other clock; the answer leaves at t3 of the other clock and comes at t4.
Whatever each way took, the other clock was ahead by something between t3 - t4 and t2 - t1: an exchange bounds the
offset to an interval as long as its round trip without the other's pause, (t4 - t1) - (t3 - t2), and nothing is assumed
of how the two ways share it. The exchange of the shortest round trip says most (NTP's clock filter, RFC 5905, section
10).

The line through the best exchange before the test and the best after it is the clock; what lies between two points that
are known to within u is known to within u, if the clock is even. Whether it is, the exchanges during the test say:
where one of them excludes the line, the line is out by at least that much, which is added to what is not known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SET_NS = 20_000
"""A time of day that moves by more against the monotonic clock was set: reading both takes less."""


@dataclass(frozen=True)
class Exchange:
    """A question and its answer; times in ns of the monotonic clocks. `ahead_ns`: the other's time of day beyond its
    monotonic clock."""

    asked_ns: int
    received_ns: int
    sent_ns: int
    answered_ns: int
    ahead_ns: int

    @property
    def round_trip_ns(self) -> int:
        """Of the packets, without the other's pause."""
        return (self.answered_ns - self.asked_ns) - (self.sent_ns - self.received_ns)

    @property
    def low_ns(self) -> int:
        """The other clock is ahead by at least this."""
        return self.sent_ns - self.answered_ns

    @property
    def high_ns(self) -> int:
        """And by at most this."""
        return self.received_ns - self.asked_ns

    @property
    def middle_ns(self) -> int:
        """When, by our clock."""
        return (self.asked_ns + self.answered_ns) // 2


@dataclass(frozen=True)
class Clock:
    """The other monotonic clock is ahead of ours by `offset_ns` at our time `at_ns`, and gains `drift_ppb` on it; known
    to within `uncertainty_ns`. `set_ns`: by how much the time of day was set in the meantime."""

    at_ns: int
    offset_ns: int
    drift_ppb: int
    uncertainty_ns: int
    round_trip_ns: int
    exchanges: int
    ahead_ns: int
    set_ns: int

    def offset_at(self, ns: int) -> int:
        """By how much it is ahead at a time of ours."""
        return self.offset_ns + (ns - self.at_ns) * self.drift_ppb // 10**9

    def theirs(self, ns: int) -> int:
        """A time of ours by the other clock."""
        return ns + self.offset_at(ns)

    def ours(self, theirs_ns: int) -> int:
        """A time of the other clock by ours."""
        guess = theirs_ns - self.offset_at(theirs_ns - self.offset_ns)
        return theirs_ns - self.offset_at(guess)


def compare(before: Sequence[Exchange], during: Sequence[Exchange], after: Sequence[Exchange]) -> Clock:
    """The clock from the exchanges before, during and after the test; `before` has one, `after` may have none, while
    the test is still to come."""
    first = best(before)
    last = best(after) if after else first
    span = last.middle_ns - first.middle_ns
    gained = _offset(last) - _offset(first)
    drift_ppb = gained * 10**9 // span if span else 0
    known_ns = max(first.round_trip_ns, last.round_trip_ns)
    everything = [*before, *during, *after]
    clock = Clock(
        at_ns=first.middle_ns,
        offset_ns=_offset(first),
        drift_ppb=drift_ppb,
        uncertainty_ns=0,
        round_trip_ns=known_ns,
        exchanges=len(everything),
        ahead_ns=sorted(one.ahead_ns for one in everything)[len(everything) // 2],
        set_ns=max((two.ahead_ns - one.ahead_ns for one, two in pairwise(everything)), key=abs, default=0),
    )
    out_ns = max((_excluded_ns(clock, one) for one in during), default=0)
    return Clock(**{**vars(clock), "uncertainty_ns": -(-known_ns // 2) + out_ns})


def best(exchanges: Sequence[Exchange]) -> Exchange:
    """The one that says most."""
    return min(exchanges, key=lambda one: one.round_trip_ns)


def _offset(one: Exchange) -> int:
    return (one.low_ns + one.high_ns) // 2


def _excluded_ns(clock: Clock, one: Exchange) -> int:
    """By how much the clock's line misses what an exchange allows."""
    offset = clock.offset_at(one.middle_ns)
    return max(0, one.low_ns - offset, offset - one.high_ns)
