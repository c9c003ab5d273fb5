# SPDX-License-Identifier: Apache-2.0
"""Show the progress of kernels, runs and studies on stderr: bars on a terminal, otherwise an occasional line."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from hourglass.scenario import Scenario

PLAIN_EVERY_S = 10.0
"""Wall seconds between two plain lines."""


@contextmanager
def display(source: str = "") -> Iterator["Display"]:
    """Provide the display that suits stderr. Bars disappear at the end. `source`: the file that leads to runs."""
    if not sys.stderr.isatty():
        yield Plain(source)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield Live(bars, source)


class Pace:
    """The speed of a guest since its first report."""

    def __init__(self, reached_s: float) -> None:
        self.first_s, self.started_s = reached_s, time.monotonic()

    def text(self, reached_s: float, total_s: float) -> str:
        """ "12.0 of 40.0 s, 30 x real time, 1 s left" """
        bounded = math.isfinite(total_s)
        text = f"{reached_s:.1f} of {total_s:.1f} s" if bounded else f"{reached_s:.1f} s"
        wall_s = time.monotonic() - self.started_s
        if wall_s <= 0 or reached_s <= self.first_s:
            return text
        speed = (reached_s - self.first_s) / wall_s
        left = f", {(total_s - reached_s) / speed:.0f} s left" if bounded else ""
        return f"{text}, {speed:.1f} x real time{left}"


class Count:
    """Numbers of complete, failed and remaining runs of a study, and the remaining time at the current pace."""

    def __init__(self, existing: int, total: int) -> None:
        self.existing, self.total, self.made, self.failed = existing, total, 0, 0
        self.started_s = time.monotonic()

    def add(self, failure: str | None) -> None:
        self.made += 1
        self.failed += failure is not None

    @property
    def reached(self) -> int:
        return self.existing + self.made

    def text(self) -> str:
        """ "12 of 40 runs, 1 failed, 28 s left" """
        parts = [f"{self.reached} of {self.total} runs"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.made:
            left_s = (time.monotonic() - self.started_s) / self.made * (self.total - self.reached)
            parts.append(f"{span(left_s)} left")
        return ", ".join(parts)


def span(seconds: float) -> str:
    """ "45 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Display:
    """Receives the progress of runs (`runner.RunProgress`), studies (`studies.runs.StudyProgress`) and searches.

    In subclasses, `show` displays the state of a kind of work, `say` a message.
    """

    pace: Pace | None = None
    count = Count(0, 0)

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.notices: set[str] = set()

    def plan(self, scenarios: Sequence[tuple[str, "Scenario"]]) -> None:
        from hourglass.cli import notice

        for text in notice.announcements(scenarios, self.source):
            if text not in self.notices:
                self.notices.add(text)
                self.say(text)

    def kernel(self, fraction: float, step: str) -> None:
        self.show("kernel", fraction, 1.0, f"{fraction:.0%} {step}")

    def root(self, fraction: float, step: str) -> None:
        self.show("programs' root", fraction, 1.0, f"{fraction:.0%} {step}")

    def time(self, reached_s: float, total_s: float) -> None:
        self.pace = self.pace or Pace(reached_s)
        self.show("test time", reached_s, total_s, self.pace.text(reached_s, total_s))

    def begin(self, existing: int, total: int, jobs: int | None) -> None:
        self.count = Count(existing, total)
        parallel = "on the cluster" if jobs is None else f"{jobs} at a time"
        self.show("study", existing, total, f"{existing} of {total} runs exist, {total - existing} to make, {parallel}")

    def done(self, cell: str, failure: str | None) -> None:
        self.count.add(failure)
        if failure is not None:
            self.say(f"failed: {cell}: {failure}")
        self.show("study", self.count.reached, self.count.total, self.count.text())

    def search(self, reached: int, total: int, text: str) -> None:
        self.show("search", reached, total, f"{reached} of {total} conditions, {text}")

    def show(self, kind: str, reached: float, total: float, text: str) -> None:
        raise NotImplementedError

    def say(self, text: str) -> None:
        raise NotImplementedError


class Live(Display):
    """A bar for each kind of work, from its start."""

    def __init__(self, bars: "Bars", source: str = "") -> None:
        super().__init__(source)
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def show(self, kind: str, reached: float, total: float, text: str) -> None:
        if kind not in self.tasks:
            self.tasks[kind] = self.bars.add_task(kind, total=total if math.isfinite(total) else None, detail="")
        self.bars.update(self.tasks[kind], completed=reached, detail=text)

    def say(self, text: str) -> None:
        self.bars.console.print(f"hourglass: {text}", markup=False, highlight=False, soft_wrap=True)


class Plain(Display):
    """A line at the start of each kind of work, and occasional ones later."""

    def __init__(self, source: str = "") -> None:
        super().__init__(source)
        self.kind = ""
        self.printed_s = 0.0

    def show(self, kind: str, reached: float, total: float, text: str) -> None:
        now_s = time.monotonic()
        if kind != self.kind or now_s - self.printed_s >= PLAIN_EVERY_S:
            self.kind, self.printed_s = kind, now_s
            self.say(f"{kind}: {text}")

    def say(self, text: str) -> None:
        print(f"hourglass: {text}", file=sys.stderr, flush=True)
