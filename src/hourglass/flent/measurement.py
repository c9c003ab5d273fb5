# SPDX-License-Identifier: Apache-2.0
"""The measured series of a Flent file and their times.

Flent's x = 0 is the time of the first sample. The run begins earlier if a flow's first interval or a request does, and
contains all flows. Another series that lies outside the test, measured with another clock, does not change begin and
end. If all series lie outside, the file's own time is wrong, and the run begins with the first of them.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hourglass.flent.document import Document, Point
from hourglass.flent.versions import start_s

Kind: TypeAlias = Literal["flow", "ping", "voice", "fetch"]
Timed: TypeAlias = tuple[float, Point]
"""A point and its time since the run's start, s."""
COMPUTED = re.compile(r"(avg|sum|fairness|totals?)$")
FLOW = "TCP "
"""The beginning of the names of flows."""
STEP_S = 0.2
"""Flent's default, for files without a step size."""
MS_PER_S = 1000.0
OVERRUN, OVERRUN_S = 0.1, 5.0
"""The time after the test's end in which late tools still belong to it: a share of the test, and at most these s."""


@dataclass(frozen=True)
class MeasuredSeries:
    """A series with its points by time. `start_s` is the start of the first point's interval."""

    name: str
    kind: Kind
    points: list[Timed]
    start_s: float
    stop_s: float


@dataclass(frozen=True)
class Measurement:
    """The series of each kind.

    `x0_s`: the time of x = 0, s since 1970; `zero_s`: the run's start; `end_s`: its length. `empty`: the names of
    series without data. `displaced`: the names of series with points outside the test."""

    series: list[MeasuredSeries]
    x0_s: float
    zero_s: float
    end_s: float
    empty: list[str]
    displaced: list[str]

    def of_kind(self, kind: Kind) -> list[MeasuredSeries]:
        """Return the series of a kind."""
        return [series for series in self.series if series.kind == kind]

    def timed(self, points: Iterable[Point]) -> list[Timed]:
        """Return points with their times since the run's start, by time."""
        return sorted(((point.t - self.zero_s, point) for point in points), key=lambda timed: timed[0])


@dataclass(frozen=True)
class _Span:
    """A span of time, s since 1970."""

    start_s: float
    stop_s: float

    def contains(self, other: "_Span") -> bool:
        return self.start_s <= other.start_s and other.stop_s <= self.stop_s

    def overlaps(self, other: "_Span") -> bool:
        return self.start_s <= other.stop_s and other.start_s <= self.stop_s


def measurement(document: Document) -> Measurement:
    """Return the series of a file that Hourglass shows."""
    kinds = _kinds(document)
    x0_s, length = start_s(document), length_s(document)
    points = {name: _points(document, name, kind, x0_s) for name, kind in kinds.items()}
    step = step_s(document)
    spans = {
        name: _Span(min(_begin_s(point, kinds[name], step) for point in part), part[-1].t)
        for name, part in points.items()
        if part
    }
    slack_s = min(OVERRUN_S, OVERRUN * length)
    test = _Span(x0_s - slack_s, x0_s + length + slack_s)
    displaced = [name for name, span in spans.items() if not test.contains(span)]
    if spans and not any(test.overlaps(span) for span in spans.values()):
        x0_s = min(span.start_s for span in spans.values())
        test = _Span(x0_s, math.inf)
    within = [span for name, span in spans.items() if kinds[name] == "flow" or test.overlaps(span)]
    zero_s = min([x0_s, *(span.start_s for span in within)])
    end_s = max([x0_s + length, *(span.stop_s for span in within)])
    series = [
        MeasuredSeries(
            name,
            kinds[name],
            [(point.t - zero_s, point) for point in points[name]],
            span.start_s - zero_s,
            span.stop_s - zero_s,
        )
        for name, span in spans.items()
    ]
    empty = [name for name in kinds if name not in spans]
    return Measurement(series, x0_s, zero_s, end_s - zero_s or step, empty, displaced)


def length_s(document: Document) -> float:
    """Return the length of the test, which includes the time before and after the load."""
    return document.metadata.total_length or max(document.x_values, default=0.0)


def step_s(document: Document) -> float:
    """Return the distance of the steps."""
    return document.metadata.step_size or STEP_S


def _kinds(document: Document) -> dict[str, Kind]:
    """Return the kind of each measured series, by name; flows first, then pings, ICMP before UDP."""
    computed = {name for name, series in document.metadata.series_meta.items() if series.computed_late}
    names = [
        name
        for name in dict.fromkeys([*document.results, *document.raw_values])
        if name not in computed and not COMPUTED.search(name)
    ]
    names.sort(key=lambda name: ("ICMP" not in name, name))
    return {name: kind for kind, belongs in KINDS.items() for name in names if belongs(name)}


def _begin_s(point: Point, kind: Kind, step: float) -> float:
    """Return the begin of the time that a point covers, s since 1970."""
    if kind == "flow":
        return point.t - (point.dur or step)
    return point.t - (point.val or 0.0) / MS_PER_S if kind == "fetch" else point.t


def _points(document: Document, name: str, kind: Kind, x0_s: float) -> list[Point]:
    """Return the points of a series by time, or else the values at the file's steps."""
    raw = [point for point in document.raw_values.get(name, ()) if _has_value(point, kind)]
    if not raw and kind != "voice":
        steps = zip(document.x_values, document.results.get(name, ()), strict=False)
        raw = [Point(t=x0_s + x_s, val=value) for x_s, value in steps if value is not None]
    return sorted(raw, key=lambda point: point.t)


def _has_value(point: Point, kind: Kind) -> bool:
    if kind == "voice":
        return point.seq is not None and (point.lost or point.val is not None)
    return point.val is not None or (point.lost and kind == "ping")


def _is_of_socket(name: str) -> bool:
    """Return whether the series has ss's values of a socket, like "TCP upload::tcp_cwnd"."""
    return name.rsplit("::", 1)[-1].startswith("tcp_")


KINDS: dict[Kind, Callable[[str], bool]] = {
    "flow": lambda name: name.startswith(FLOW) and not _is_of_socket(name),
    "ping": lambda name: name.startswith("Ping (ms)") and not _is_of_socket(name),
    "voice": lambda name: name == "VoIP",
    "fetch": lambda name: name.startswith("HTTP latency"),
}
