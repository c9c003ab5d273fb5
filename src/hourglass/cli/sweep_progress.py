# SPDX-License-Identifier: Apache-2.0
"""What goes on while a sweep is made: a bar with the remaining time on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hourglass.campaign.sweep import Progress
from hourglass.cli.progress import PLAIN_EVERY_S, Building, bars

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


@contextmanager
def shown() -> Iterator[Progress]:
    """The display that suits stderr; whatever is live disappears at the end."""
    with bars() as found:
        yield Live(found) if found else Plain()


class Count:
    """How many runs there are, how many failed, and how long the rest will take."""

    def __init__(self) -> None:
        self.there = self.total = self.made = self.failed = 0
        self.begun_s = time.monotonic()

    def begin(self, there: int, total: int) -> None:
        self.there, self.total, self.begun_s = there, total, time.monotonic()

    def more(self, failure: str | None) -> None:
        self.made += 1
        self.failed += failure is not None

    def words(self) -> str:
        """ "12 of 40 runs, 1 failed, 28 s left": at the pace so far."""
        reached = self.there + self.made
        parts = [f"{reached} of {self.total} runs"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.made:
            left_s = (time.monotonic() - self.begun_s) / self.made * (self.total - reached)
            parts.append(f"{span(left_s)} left")
        return ", ".join(parts)


def span(seconds: float) -> str:
    """ "45 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Live(Building):
    """And one for the runs."""

    def __init__(self, bars: "Bars") -> None:
        super().__init__(bars)
        self.count = Count()

    def begin(self, there: int, total: int, jobs: int | None) -> None:
        self.count = Count()
        self.count.begin(there, total)
        self.running = self.bars.add_task("sweep", total=total, completed=there, detail=self.count.words())

    def done(self, cell: str, failure: str | None) -> None:
        self.count.more(failure)
        assert self.running is not None
        self.bars.update(self.running, advance=1, detail=self.count.words())
        if failure is not None:
            self.bars.console.print(f"failed: {cell}: {failure}", markup=False, highlight=False)


class Plain:
    """A line at the beginning, then rarely, and one per failure."""

    def __init__(self) -> None:
        self.count, self.said_s = Count(), 0.0

    def kernel(self, fraction: float, step: str) -> None:
        self._now_and_then(f"kernel: {fraction:.0%} {step}")

    def begin(self, there: int, total: int, jobs: int | None) -> None:
        self.count = Count()
        self.count.begin(there, total)
        how = "on the cluster" if jobs is None else f"{jobs} at a time"
        _say(f"sweep: {total} runs, {there} are there, {total - there} to make, {how}")
        self.said_s = time.monotonic()

    def done(self, cell: str, failure: str | None) -> None:
        self.count.more(failure)
        if failure is not None:
            _say(f"failed: {cell}: {failure}")
        self._now_and_then(f"sweep: {self.count.words()}")

    def _now_and_then(self, words: str) -> None:
        if (now_s := time.monotonic()) - self.said_s >= PLAIN_EVERY_S:
            self.said_s = now_s
            _say(words)


def _say(words: str) -> None:
    print(f"hourglass: {words}", file=sys.stderr, flush=True)
