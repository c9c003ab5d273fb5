# SPDX-License-Identifier: Apache-2.0
"""What goes on while a run is made: live on a terminal, otherwise a plain line now and then. Always on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from hourglass.runner import Progress

PLAIN_EVERY_S = 10.0
"""Wall seconds between two plain lines."""


@contextmanager
def shown() -> Iterator["Progress"]:
    """The progress display that suits stderr; whatever is live disappears at the end."""
    with bars() as found:
        yield Live(found) if found else Plain()


@contextmanager
def bars() -> Iterator["Bars | None"]:
    """Bars for stderr, none where it is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as found:
        yield found


class Pace:
    """The speed of a guest since its first report."""

    def __init__(self, reached_s: float) -> None:
        self.first_s, self.started_s = reached_s, time.monotonic()

    def words(self, reached_s: float, total_s: float) -> str:
        """ "12.0 of 40.0 s, 30 x real time, 1 s left" """
        text, wall_s = f"{reached_s:.1f} of {total_s:.1f} s", time.monotonic() - self.started_s
        if wall_s <= 0 or reached_s <= self.first_s:
            return text
        speed = (reached_s - self.first_s) / wall_s
        return f"{text}, {speed:.1f} x real time, {(total_s - reached_s) / speed:.0f} s left"


class Building:
    """A bar for kernels being built, which shows up when that begins."""

    def __init__(self, bars: "Bars") -> None:
        self.bars = bars
        self.building: TaskID | None = None
        self.running: TaskID | None = None

    def kernel(self, fraction: float, step: str) -> None:
        if self.building is None:
            self.building = self.bars.add_task("kernel", total=1.0, detail="")
        self.bars.update(self.building, completed=fraction, detail=f"{fraction:.0%} {step}")


class Live(Building):
    """And one for the run."""

    pace: Pace | None = None

    def time(self, reached_s: float, total_s: float) -> None:
        if self.running is None or self.pace is None:
            self.pace = Pace(reached_s)
            self.running = self.bars.add_task("test time", total=total_s, detail="")
        self.bars.update(self.running, completed=reached_s, detail=self.pace.words(reached_s, total_s))


class Plain:
    """A line at the beginning of each kind of work and then rarely."""

    def __init__(self) -> None:
        self.kind = ""
        self.said_s = 0.0
        self.pace: Pace | None = None

    def kernel(self, fraction: float, step: str) -> None:
        self._say("kernel", f"kernel: {fraction:.0%} {step}")

    def time(self, reached_s: float, total_s: float) -> None:
        self.pace = self.pace or Pace(reached_s)
        self._say("test time", f"test time: {self.pace.words(reached_s, total_s)}")

    def _say(self, kind: str, text: str) -> None:
        now_s = time.monotonic()
        if kind == self.kind and now_s - self.said_s < PLAIN_EVERY_S:
            return
        self.kind, self.said_s = kind, now_s
        print(f"hourglass: {text}", file=sys.stderr, flush=True)
