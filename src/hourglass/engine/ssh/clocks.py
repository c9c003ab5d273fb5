# SPDX-License-Identifier: Apache-2.0
"""Compute the offset of a host's clock from exchanges over the control connection. Pure.

A request leaves at t1 and arrives at t2. The reply leaves at t3 and arrives at t4. The local clock measures t1 and t4,
the host's clock t2 and t3. The offset is the time by which the host's clock is ahead. It lies between t3 - t4 and
t2 - t1, whatever the delay of each direction. This interval is as long as the round trip without the host's pause,
(t4 - t1) - (t3 - t2). The exchange with the shortest round trip is the most precise (NTP's clock filter, RFC 5905,
section 10).

The offset over time is the line through the best exchange before the test and the best one after it. If both offsets
are known to within u and the clock runs evenly, all offsets in between are known to within u. The exchanges during the
test check this. If the line misses the interval of an exchange, the largest distance is added to the uncertainty."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SET_THRESHOLD_NS = 20_000
"""The time of day was set if it moved by more than this against the monotonic clock; reading both takes less."""


@dataclass(frozen=True)
class Exchange:
    """A request and its reply. The local monotonic clock measures `asked_ns` and `answered_ns`, the host's measures
    `received_ns` and `sent_ns`. `time_of_day_ahead_ns`: the host's time of day minus its monotonic clock."""

    asked_ns: int
    received_ns: int
    sent_ns: int
    answered_ns: int
    time_of_day_ahead_ns: int

    @property
    def round_trip_ns(self) -> int:
        """The round trip of the packets, without the host's pause."""
        return (self.answered_ns - self.asked_ns) - (self.sent_ns - self.received_ns)

    @property
    def low_ns(self) -> int:
        """The lowest possible offset of the host's clock."""
        return self.sent_ns - self.answered_ns

    @property
    def high_ns(self) -> int:
        """The highest possible offset of the host's clock."""
        return self.received_ns - self.asked_ns

    @property
    def middle_ns(self) -> int:
        """The middle of the exchange by the local clock."""
        return (self.asked_ns + self.answered_ns) // 2


@dataclass(frozen=True)
class Clock:
    """The host's monotonic clock is ahead of the local one by `offset_ns` at the local time `at_ns`, and gains
    `drift_ppb` on it, to within `uncertainty_ns`. `set_ns`: the largest jump of the time of day between exchanges."""

    at_ns: int
    offset_ns: int
    drift_ppb: int
    uncertainty_ns: int
    round_trip_ns: int
    exchanges: int
    time_of_day_ahead_ns: int
    set_ns: int

    def offset_at(self, ns: int) -> int:
        """Return the offset at a local time."""
        return self.offset_ns + (ns - self.at_ns) * self.drift_ppb // 10**9

    def host_ns(self, local_ns: int) -> int:
        """Convert a local time to the host's clock."""
        return local_ns + self.offset_at(local_ns)

    def local_ns(self, host_ns: int) -> int:
        """Convert a time of the host's clock to the local one."""
        approximate_ns = host_ns - self.offset_at(host_ns - self.offset_ns)
        return host_ns - self.offset_at(approximate_ns)


def estimate_clock(before: Sequence[Exchange], during: Sequence[Exchange], after: Sequence[Exchange]) -> Clock:
    """Estimate the clock from the exchanges before, during and after the test. `before` needs at least one;
    `after` may be empty while the test has not ended."""
    first = best(before)
    last = best(after) if after else first
    span_ns = last.middle_ns - first.middle_ns
    gained_ns = _offset_ns(last) - _offset_ns(first)
    drift_ppb = gained_ns * 10**9 // span_ns if span_ns else 0
    longer_round_trip_ns = max(first.round_trip_ns, last.round_trip_ns)
    exchanges = [*before, *during, *after]
    clock = Clock(
        at_ns=first.middle_ns,
        offset_ns=_offset_ns(first),
        drift_ppb=drift_ppb,
        uncertainty_ns=0,
        round_trip_ns=longer_round_trip_ns,
        exchanges=len(exchanges),
        time_of_day_ahead_ns=sorted(exchange.time_of_day_ahead_ns for exchange in exchanges)[len(exchanges) // 2],
        set_ns=max(
            (later.time_of_day_ahead_ns - exchange.time_of_day_ahead_ns for exchange, later in pairwise(exchanges)),
            key=abs,
            default=0,
        ),
    )
    distance_ns = max((_distance_ns(clock, exchange) for exchange in during), default=0)
    return Clock(**{**vars(clock), "uncertainty_ns": -(-longer_round_trip_ns // 2) + distance_ns})


def best(exchanges: Sequence[Exchange]) -> Exchange:
    """Return the most precise exchange."""
    return min(exchanges, key=lambda exchange: exchange.round_trip_ns)


def _offset_ns(exchange: Exchange) -> int:
    return (exchange.low_ns + exchange.high_ns) // 2


def _distance_ns(clock: Clock, exchange: Exchange) -> int:
    """Return the distance between the clock's line and the interval of an exchange."""
    offset_ns = clock.offset_at(exchange.middle_ns)
    return max(0, exchange.low_ns - offset_ns, offset_ns - exchange.high_ns)
