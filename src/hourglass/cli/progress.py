# SPDX-License-Identifier: Apache-2.0
"""What goes on while kernels, runs and sweeps are made: bars on a terminal, else a line now and then, on stderr."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

PLAIN_EVERY_S = 10.0
"""Wall seconds between two plain lines."""


@contextmanager
def shown() -> Iterator["Display"]:
    """The display that suits stderr; whatever is live disappears at the end."""
    if not sys.stderr.isatty():
        yield Plain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as found:
        yield Live(found)


class Pace:
    """The speed of a guest since its first report."""

    def __init__(self, reached_s: float) -> None:
        self.first_s, self.started_s = reached_s, time.monotonic()

    def words(self, reached_s: float, total_s: float) -> str:
        """ "12.0 of 40.0 s, 30 x real time, 1 s left" """
        known = math.isfinite(total_s)
        text = f"{reached_s:.1f} of {total_s:.1f} s" if known else f"{reached_s:.1f} s"
        wall_s = time.monotonic() - self.started_s
        if wall_s <= 0 or reached_s <= self.first_s:
            return text
        speed = (reached_s - self.first_s) / wall_s
        left = f", {(total_s - reached_s) / speed:.0f} s left" if known else ""
        return f"{text}, {speed:.1f} x real time{left}"


class Count:
    """How many runs of a sweep there are, how many failed, and how long the rest will take at the pace so far."""

    def __init__(self, there: int, total: int) -> None:
        self.there, self.total, self.made, self.failed = there, total, 0, 0
        self.begun_s = time.monotonic()

    def more(self, failure: str | None) -> None:
        self.made += 1
        self.failed += failure is not None

    @property
    def reached(self) -> int:
        return self.there + self.made

    def words(self) -> str:
        """ "12 of 40 runs, 1 failed, 28 s left" """
        parts = [f"{self.reached} of {self.total} runs"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.made:
            left_s = (time.monotonic() - self.begun_s) / self.made * (self.total - self.reached)
            parts.append(f"{span(left_s)} left")
        return ", ".join(parts)


def span(seconds: float) -> str:
    """ "45 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Display:
    """Takes what runs (`runner.Progress`) and sweeps (`campaign.sweep.Progress`) tell; how it looks is for subclasses:
    `show` says how far a kind of work is, `say` what has happened."""

    pace: Pace | None = None
    count = Count(0, 0)

    def kernel(self, fraction: float, step: str) -> None:
        self.show("kernel", fraction, 1.0, f"{fraction:.0%} {step}")

    def root(self, fraction: float, step: str) -> None:
        self.show("programs' root", fraction, 1.0, f"{fraction:.0%} {step}")

    def time(self, reached_s: float, total_s: float) -> None:
        self.pace = self.pace or Pace(reached_s)
        self.show("test time", reached_s, total_s, self.pace.words(reached_s, total_s))

    def begin(self, there: int, total: int, jobs: int | None) -> None:
        self.count = Count(there, total)
        how = "on the cluster" if jobs is None else f"{jobs} at a time"
        self.show("sweep", there, total, f"{there} of {total} runs are there, {total - there} to make, {how}")

    def done(self, cell: str, failure: str | None) -> None:
        self.count.more(failure)
        if failure is not None:
            self.say(f"failed: {cell}: {failure}")
        self.show("sweep", self.count.reached, self.count.total, self.count.words())

    def show(self, kind: str, reached: float, total: float, words: str) -> None:
        raise NotImplementedError

    def say(self, words: str) -> None:
        raise NotImplementedError


class Live(Display):
    """A bar for each kind of work, which shows up when that begins."""

    def __init__(self, bars: "Bars") -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def show(self, kind: str, reached: float, total: float, words: str) -> None:
        if kind not in self.tasks:
            self.tasks[kind] = self.bars.add_task(kind, total=total if math.isfinite(total) else None, detail="")
        self.bars.update(self.tasks[kind], completed=reached, detail=words)

    def say(self, words: str) -> None:
        self.bars.console.print(words, markup=False, highlight=False, soft_wrap=True)


class Plain(Display):
    """A line at the beginning of each kind of work and then rarely."""

    def __init__(self) -> None:
        self.kind = ""
        self.said_s = 0.0

    def show(self, kind: str, reached: float, total: float, words: str) -> None:
        now_s = time.monotonic()
        if kind != self.kind or now_s - self.said_s >= PLAIN_EVERY_S:
            self.kind, self.said_s = kind, now_s
            self.say(f"{kind}: {words}")

    def say(self, words: str) -> None:
        print(f"hourglass: {words}", file=sys.stderr, flush=True)
