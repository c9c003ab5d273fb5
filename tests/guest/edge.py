# SPDX-License-Identifier: Apache-2.0
"""What a link's line, policer and shaper do to frames, frame by frame: arithmetic in fractions that shares no code with
the driver. Rates bit/s, sizes bytes as buckets count them, times ns."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from hourglass.results.recording import Recording

NS = 10**9
HEADERS = 14 + 20 + 8
"""Ethernet, IPv4, and UDP or ICMP."""
ON_LINE = 24


class Sent(NamedTuple):
    """A frame that comes to a NIC."""

    t_ns: int
    stream: str
    seq: int
    size: int


def sent(run: Recording, sender: str) -> list[Sent]:
    """All frames of a node in their order: those of datagrams that it sends, and of pings that it asks or answers.
    Only where all paths but the pings' are one way and nothing waits above the NIC."""
    pings = [
        Sent(row["t_ns"], one.name, row["seq"], HEADERS + one.payload_bytes)
        for one in run.pings
        if one.client == sender
        for row in run.rows(one).iter_rows(named=True)
    ]
    datagrams = [
        Sent(row["t_ns"], one.name, row["seq"], HEADERS + one.payload_bytes)
        for one in run.datagrams
        if one.client == sender
        for row in run.rows(one).iter_rows(named=True)
    ]
    return sorted([*pings, *datagrams], key=lambda one: one.t_ns)


@dataclass
class Line:
    """One frame after another at a rate."""

    rate: int
    free: Fraction = Fraction(0)

    def ends(self, t_ns: int, size: int) -> int:
        """The first whole ns at which a frame that comes at `t_ns` has left."""
        self.free = max(Fraction(t_ns), self.free) + Fraction(8 * NS * (max(size, 60) + ON_LINE), self.rate)
        return ceil(self.free)


@dataclass
class Bucket:
    """So many bytes at most, filled at a rate."""

    rate: int
    burst: int
    level: Fraction = field(init=False)
    at_ns: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.level = Fraction(self.burst)

    def at(self, t_ns: Fraction) -> Fraction:
        """Its level, at the last taking or later."""
        return min(Fraction(self.burst), self.level + self.rate * (t_ns - self.at_ns) / (8 * NS))

    def has(self, t_ns: Fraction, size: int) -> Fraction:
        """From when on, at `t_ns` or later."""
        return t_ns + max(Fraction(0), (size - self.at(t_ns)) * 8 * NS / self.rate)

    def take(self, t_ns: Fraction, size: int) -> None:
        self.level, self.at_ns = self.at(t_ns) - size, t_ns


def policed(frames: Iterable[Sent], line: Line, bucket: Bucket) -> Iterator[Sent]:
    """Those that are dropped."""
    for frame in frames:
        t_ns = Fraction(line.ends(frame.t_ns, frame.size))
        if bucket.at(t_ns) < frame.size:
            yield frame
        else:
            bucket.take(t_ns, frame.size)


def shaped(
    frames: Iterable[Sent], line: Line, buckets: list[Bucket], limit: int = 0, latency_ns: int = 0
) -> Iterator[tuple[Sent, int, int | None]]:
    """(frame, when it comes to the shaper, when it leaves it; None: dropped)."""
    queue: list[tuple[int, int]] = []
    last_ns = Fraction(0)
    for frame in frames:
        t_ns = line.ends(frame.t_ns, frame.size)
        queue = [one for one in queue if one[0] > t_ns]
        leaves_ns = max(Fraction(t_ns), last_ns)
        for bucket in buckets:
            leaves_ns = bucket.has(leaves_ns, frame.size)
        held = sum(size for _, size in queue) + frame.size
        if (limit and held > limit) or (latency_ns and ceil(leaves_ns) - t_ns > latency_ns):
            yield frame, t_ns, None
            continue
        for bucket in buckets:
            bucket.take(leaves_ns, frame.size)
        queue.append((ceil(leaves_ns), frame.size))
        last_ns = leaves_ns
        yield frame, t_ns, ceil(leaves_ns)
