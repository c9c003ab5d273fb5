# SPDX-License-Identifier: Apache-2.0
"""The programs of a run: how they fared, what they wrote, whether that was expected."""

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hourglass.contract import plan_apps, summary
from hourglass.contract.calls import CALLS
from hourglass.contract.summary import Check
from hourglass.results.files import APPS_FOLDER
from hourglass.results.stats import rounded
from hourglass.results.tools import Told, told

NS_PER_S = 10**9
TAIL = 5
"""Lines of output that a summary has."""
TABLES = ("app", "app_output", "app_wait")
RUNNING, ANY = "running", "any"


@dataclass(frozen=True)
class Program:
    """A program of a run. `starts`: the rows of the table `app`, in order; `output`: those of `app_output`, `wait_rows`
    of `app_wait`; `cpu_s`: time of the host's CPU, if it was counted."""

    app: plan_apps.App
    node: str
    expected: int | str
    starts: pl.DataFrame
    output: pl.DataFrame
    wait_rows: pl.DataFrame
    cpu_s: float | None
    folder: Path

    @property
    def name(self) -> str:
        return self.app.name

    @property
    def stdout(self) -> str:
        """All lines that it wrote there."""
        return self._said("stdout")

    @property
    def stderr(self) -> str:
        return self._said("stderr")

    def _said(self, stream: str) -> str:
        lines: list[str] = self.output.filter(pl.col("pipe") == stream)["line"].to_list()
        return "".join(f"{line}\n" for line in lines)

    @cached_property
    def collected(self) -> list[Path]:
        """The files that were collected."""
        folder = self.folder / APPS_FOLDER / self.name
        return sorted(path for path in folder.rglob("*") if path.is_file())

    @cached_property
    def told(self) -> Told:
        """What its output says, of tools that are known."""
        return told(self.app.command, self.stdout)

    @property
    def waits(self) -> dict[str, float]:
        """What virtual time went by with in its tasks, all starts together, the longest first: calls by their names,
        `cpu` of its node, `spun` and `stopped`."""
        sums: Counter[str] = Counter()
        for what, call, ns in self.wait_rows.select("what", "call", "ns").iter_rows():
            sums[what if call is None else CALLS.get(call, f"call {call}")] += ns
        return {what: rounded(ns / NS_PER_S) for what, ns in sums.most_common()}

    @property
    def last(self) -> dict[str, Any] | None:
        """How its last start went; None: it never started."""
        return self.starts.row(-1, named=True) if len(self.starts) else None

    @property
    def status(self) -> str:
        """How it ended, in a word or two."""
        last = self.last
        if last is None:
            return "not started"
        if last["why"] == "end" or (last["why"] == "stopped" and self.expected == RUNNING):
            return RUNNING
        if last["why"] == "spin":
            return "spinning"
        if last["exit"] is not None:
            return f"exit {last['exit']}"
        return signal_name(last["signal"])

    @property
    def ok(self) -> bool:
        """Whether that was expected."""
        last = self.last
        if self.expected == ANY:
            return last is not None
        if last is None or last["why"] == "spin":
            return False
        if self.expected == RUNNING:
            return last["why"] in ("stopped", "end")
        ended = last["why"] != "end"
        if isinstance(self.expected, int):
            return ended and bool(last["exit"] == self.expected)
        return ended and signal_name(last["signal"]) == self.expected

    def check(self) -> Check:
        """The expectation as a bound that was judged."""
        shown = f"exit {self.expected}" if isinstance(self.expected, int) else self.expected
        reason = "" if self.ok else self._why()
        return Check(figure=f"app.{self.name}", bound=shown, value=None, unit="", ok=self.ok, reason=reason)

    def _why(self) -> str:
        last = self.last
        if last is None:
            return "it never started"
        if last["why"] == "spin":
            return "it asked the kernel without end while time stood"
        if last["why"] == "end":
            return "it ran until the end of the test: raise test.length"
        at = "" if last["end_ns"] is None else f" at {last['end_ns'] / NS_PER_S:g} s"
        complaints = self.stderr.splitlines()
        said = complaints[:1] or self.output["line"].to_list()[-1:]
        words = f"; it said: {said[0][:120]}" if said else ""
        return f"{self.status}{at}{words}"

    def figures(self) -> summary.App:
        """Its part of the summary."""
        last, known = self.last or {}, self.told
        lines = self.output["line"].to_list()

        def seconds(key: str) -> float | None:
            return None if last.get(key) is None else rounded(last[key] / NS_PER_S)

        return summary.App(
            id=self.name,
            node=self.node,
            command=" ".join(self.app.command),
            status=self.status,
            expected=str(self.expected),
            starts=len(self.starts),
            exit=last.get("exit"),
            start_s=seconds("t_ns"),
            ready_s=seconds("ready_ns"),
            end_s=seconds("end_ns"),
            output_bytes=int(self.starts["output_bytes"].sum()),
            error_bytes=int(self.starts["error_bytes"].sum()),
            calls=last.get("calls"),
            cpu_s=None if self.cpu_s is None else rounded(self.cpu_s),
            waits=self.waits,
            goodput_mbps=known.goodput_mbps,
            sent_mbps=known.sent_mbps,
            retransmits=known.retransmits,
            lost=known.lost,
            jitter_ms=known.jitter_ms,
            latency_ms=known.latency_ms,
            tail="\n".join(lines[-TAIL:]),
        )


def signal_name(number: int | None) -> str:
    """SIGTERM of 15."""
    if number is None:
        return "unknown"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def programs(
    apps: tuple[plan_apps.App, ...],
    nodes: dict[int, str],
    expected: dict[str, int | str],
    tables: dict[str, pl.DataFrame],
    cpu_s: dict[str, float],
    folder: Path,
) -> Iterator[Program]:
    """The programs of a plan with their records, those of `TABLES`. `nodes`: by the number of a room."""
    for app in apps:
        mine, said, waited = (tables[name].filter(pl.col("app") == app.id) for name in TABLES)
        wanted = expected.get(app.name, ANY)
        yield Program(app, nodes[app.room], wanted, mine.sort("run"), said, waited, cpu_s.get(app.name), folder)


def stamped(program: Program) -> str:
    """What a program wrote, each line with its time in seconds and `|`, of stderr `!`."""
    rows = program.output.iter_rows(named=True)
    return "".join(
        f"{row['t_ns'] / NS_PER_S:15.9f} {'!' if row['pipe'] == 'stderr' else '|'} {row['line']}\n" for row in rows
    )
