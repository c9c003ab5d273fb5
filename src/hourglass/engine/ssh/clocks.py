# SPDX-License-Identifier: Apache-2.0
"""Compute the offset of a host's clock from exchanges over the control connection. Pure.

A request leaves at t1 and arrives at t2. The reply leaves at t3 and arrives at t4. The other clock measures t2 and t3.
For any delay of each direction, the other clock was ahead by a value between t3 - t4 and t2 - t1. An exchange
bounds the offset to an interval as long as its round trip without the other's pause, (t4 - t1) - (t3 - t2). Nothing is
assumed about the share of each direction. The exchange with the shortest round trip is the most precise (NTP's clock
filter, RFC 5905, section 10).

The clock is the line through the best exchange before the test and the best one after it. If both are known to within u
and the clock is even, all times in between are known to within u. The exchanges during the test check this. If one
excludes the line, the line is wrong by at least that amount. The uncertainty grows by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SET_NS = 20_000
"""A time of day that moves by more against the monotonic clock was set: reading both takes less."""


@dataclass(frozen=True)
class Exchange:
    """A request and its reply; times in ns of the monotonic clocks. `ahead_ns`: the other's time of day minus its
    monotonic clock."""

    asked_ns: int
    received_ns: int
    sent_ns: int
    answered_ns: int
    ahead_ns: int

    @property
    def round_trip_ns(self) -> int:
        """The round trip of the packets, without the other's pause."""
        return (self.answered_ns - self.asked_ns) - (self.sent_ns - self.received_ns)

    @property
    def low_ns(self) -> int:
        """The least offset of the other clock."""
        return self.sent_ns - self.answered_ns

    @property
    def high_ns(self) -> int:
        """The greatest offset of the other clock."""
        return self.received_ns - self.asked_ns

    @property
    def middle_ns(self) -> int:
        """The middle of the exchange by the local clock."""
        return (self.asked_ns + self.answered_ns) // 2


@dataclass(frozen=True)
class Clock:
    """The other monotonic clock is ahead of the local one by `offset_ns` at the local time `at_ns`, and gains
    `drift_ppb` on it, to within `uncertainty_ns`. `set_ns`: the change of the time of day if it was set meanwhile."""

    at_ns: int
    offset_ns: int
    drift_ppb: int
    uncertainty_ns: int
    round_trip_ns: int
    exchanges: int
    ahead_ns: int
    set_ns: int

    def offset_at(self, ns: int) -> int:
        """Return the offset at a local time."""
        return self.offset_ns + (ns - self.at_ns) * self.drift_ppb // 10**9

    def theirs(self, ns: int) -> int:
        """Convert a local time to the other clock."""
        return ns + self.offset_at(ns)

    def ours(self, theirs_ns: int) -> int:
        """Convert a time of the other clock to the local one."""
        guess = theirs_ns - self.offset_at(theirs_ns - self.offset_ns)
        return theirs_ns - self.offset_at(guess)


def estimate_clock(before: Sequence[Exchange], during: Sequence[Exchange], after: Sequence[Exchange]) -> Clock:
    """Estimate the clock from the exchanges before, during and after the test. `before` needs one; `after` may be empty
    while the test has not ended."""
    first = best(before)
    last = best(after) if after else first
    span = last.middle_ns - first.middle_ns
    gained = _offset(last) - _offset(first)
    drift_ppb = gained * 10**9 // span if span else 0
    known_ns = max(first.round_trip_ns, last.round_trip_ns)
    exchanges = [*before, *during, *after]
    clock = Clock(
        at_ns=first.middle_ns,
        offset_ns=_offset(first),
        drift_ppb=drift_ppb,
        uncertainty_ns=0,
        round_trip_ns=known_ns,
        exchanges=len(exchanges),
        ahead_ns=sorted(exchange.ahead_ns for exchange in exchanges)[len(exchanges) // 2],
        set_ns=max((later.ahead_ns - exchange.ahead_ns for exchange, later in pairwise(exchanges)), key=abs, default=0),
    )
    out_ns = max((_excluded_ns(clock, exchange) for exchange in during), default=0)
    return Clock(**{**vars(clock), "uncertainty_ns": -(-known_ns // 2) + out_ns})


def best(exchanges: Sequence[Exchange]) -> Exchange:
    """Return the most precise exchange."""
    return min(exchanges, key=lambda exchange: exchange.round_trip_ns)


def _offset(exchange: Exchange) -> int:
    return (exchange.low_ns + exchange.high_ns) // 2


def _excluded_ns(clock: Clock, exchange: Exchange) -> int:
    """Return the distance between the clock's line and the interval of an exchange."""
    offset = clock.offset_at(exchange.middle_ns)
    return max(0, exchange.low_ns - offset, offset - exchange.high_ns)
