# SPDX-License-Identifier: Apache-2.0
"""The effect of a link's line, policer and shaper on each frame: arithmetic in fractions that shares no code with the
driver. Rates in bit/s, sizes in bytes as buckets count them, times in ns."""

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
    """A frame that arrives at a NIC."""

    t_ns: int
    stream: str
    seq: int
    size: int


def sent_frames(run: Recording, sender: str) -> list[Sent]:
    """Return all frames of a node in their order: its datagrams, and its pings with their answers. This requires that
    only pings use both directions, and that no packet waits above the NIC."""
    pings = [
        Sent(row["t_ns"], stream.name, row["seq"], HEADERS + stream.payload_bytes)
        for stream in run.pings
        if stream.client == sender
        for row in run.rows(stream).iter_rows(named=True)
    ]
    datagrams = [
        Sent(row["t_ns"], stream.name, row["seq"], HEADERS + stream.payload_bytes)
        for stream in run.datagrams
        if stream.client == sender
        for row in run.rows(stream).iter_rows(named=True)
    ]
    return sorted([*pings, *datagrams], key=lambda frame: frame.t_ns)


@dataclass
class Line:
    """A line that carries one frame after another at a rate."""

    rate: int
    free: Fraction = Fraction(0)

    def ends(self, t_ns: int, size: int) -> int:
        """Return the first whole ns at which a frame that arrives at `t_ns` has left."""
        self.free = max(Fraction(t_ns), self.free) + Fraction(8 * NS * (max(size, 60) + ON_LINE), self.rate)
        return ceil(self.free)


@dataclass
class Bucket:
    """A bucket of at most `burst` bytes, filled at a rate."""

    rate: int
    burst: int
    level: Fraction = field(init=False)
    at_ns: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.level = Fraction(self.burst)

    def at(self, t_ns: Fraction) -> Fraction:
        """Return the level at a time, not before the last `take`."""
        return min(Fraction(self.burst), self.level + self.rate * (t_ns - self.at_ns) / (8 * NS))

    def has(self, t_ns: Fraction, size: int) -> Fraction:
        """Return the time, not before `t_ns`, from which on the bucket has `size` bytes."""
        return t_ns + max(Fraction(0), (size - self.at(t_ns)) * 8 * NS / self.rate)

    def take(self, t_ns: Fraction, size: int) -> None:
        self.level, self.at_ns = self.at(t_ns) - size, t_ns


def policed(frames: Iterable[Sent], line: Line, bucket: Bucket) -> Iterator[Sent]:
    """Yield the dropped frames."""
    for frame in frames:
        t_ns = Fraction(line.ends(frame.t_ns, frame.size))
        if bucket.at(t_ns) < frame.size:
            yield frame
        else:
            bucket.take(t_ns, frame.size)


def shaped(
    frames: Iterable[Sent], line: Line, buckets: list[Bucket], limit: int = 0, latency_ns: int = 0
) -> Iterator[tuple[Sent, int, int | None]]:
    """Yield (frame, time of its arrival at the shaper, time at which it leaves, or None if it is dropped)."""
    queue: list[tuple[int, int]] = []
    last_ns = Fraction(0)
    for frame in frames:
        t_ns = line.ends(frame.t_ns, frame.size)
        queue = [entry for entry in queue if entry[0] > t_ns]
        leaves_ns = max(Fraction(t_ns), last_ns)
        for bucket in buckets:
            leaves_ns = bucket.has(leaves_ns, frame.size)
        backlog = sum(size for _, size in queue) + frame.size
        if (limit and backlog > limit) or (latency_ns and ceil(leaves_ns) - t_ns > latency_ns):
            yield frame, t_ns, None
            continue
        for bucket in buckets:
            bucket.take(leaves_ns, frame.size)
        queue.append((ceil(leaves_ns), frame.size))
        last_ns = leaves_ns
        yield frame, t_ns, ceil(leaves_ns)
