# SPDX-License-Identifier: Apache-2.0
"""The programs of a run: their ends, their output, and whether these were expected."""

import signal
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hourglass.contract import summary
from hourglass.contract.plan.apps import PlanApp
from hourglass.contract.summary import CheckVerdict
from hourglass.contract.system_calls import CALLS
from hourglass.results.run_files import APPS_FOLDER
from hourglass.results.stats import rounded
from hourglass.results.tool_output import ToolFigures, tool_figures

NS_PER_S = 10**9
TAIL = 5
"""The most lines of output in a summary."""
TABLES = ("app", "app_output", "app_wait")
RUNNING, ANY = "running", "any"


@dataclass(frozen=True)
class Program:
    """A program of a run. `starts`: the rows of the table `app`, in order; `output`: those of `app_output`,
    `wait_rows` of `app_wait`; `cpu_s`: time of the host's CPU, if it was counted."""

    app: PlanApp
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
        """Return all lines that it wrote to a stream."""
        return self._output_text("stdout")

    @property
    def stderr(self) -> str:
        return self._output_text("stderr")

    def _output_text(self, stream: str) -> str:
        lines: list[str] = self.output.filter(pl.col("pipe") == stream)["line"].to_list()
        return "".join(f"{line}\n" for line in lines)

    @cached_property
    def collected(self) -> list[Path]:
        """Return the collected files."""
        folder = self.folder / APPS_FOLDER / self.name
        return sorted(path for path in folder.rglob("*") if path.is_file())

    @cached_property
    def tool_figures(self) -> ToolFigures:
        """Return the figures in its output, if it is a known tool."""
        return tool_figures(self.app.command, self.stdout)

    @property
    def waits(self) -> dict[str, float]:
        """Return the virtual time of its tasks, over all starts, the longest first: calls by their names, `cpu` of
        its node, `spun` and `stopped`."""
        sums: Counter[str] = Counter()
        for cause, call, ns in self.wait_rows.select("what", "call", "ns").iter_rows():
            sums[cause if call is None else CALLS.get(call, f"call {call}")] += ns
        return {cause: rounded(ns / NS_PER_S) for cause, ns in sums.most_common()}

    @property
    def last_start(self) -> dict[str, Any] | None:
        """Return the row of its last start; None: it never started."""
        return self.starts.row(-1, named=True) if len(self.starts) else None

    @property
    def status(self) -> str:
        """Return its final state in a word or two."""
        start = self.last_start
        if start is None:
            return "not started"
        if start["why"] == "end" or (start["why"] == "stopped" and self.expected == RUNNING):
            return RUNNING
        if start["why"] == "spin":
            return "spinning"
        if start["exit"] is not None:
            return f"exit {start['exit']}"
        return signal_name(start["signal"])

    @property
    def outlasted_test(self) -> bool:
        """Tell if it ran until the end of the test, whether it then ended on order or was killed."""
        why = None if self.last_start is None else self.last_start["why"]
        return why == "end" or (why == "grace" and self.app.stop_ns is None)

    @property
    def ok(self) -> bool:
        """Tell if the final state is the expected one."""
        start = self.last_start
        if self.expected == ANY:
            return start is not None
        if start is None or start["why"] == "spin":
            return False
        if self.expected == RUNNING:
            return start["why"] in ("stopped", "end")
        ended = start["why"] != "end"
        if isinstance(self.expected, int):
            return ended and bool(start["exit"] == self.expected)
        return ended and signal_name(start["signal"]) == self.expected

    def unexpected_loss(self, bounds: Container[str]) -> str:
        """Return the loss of everything that a known tool sent, as a clause. It is "" if the scenario expects it, by
        `expect` other than success or by a bound on the lost packets. `bounds`: the figures with bounds."""
        expects_loss = self.expected not in (0, RUNNING) or f"apps.{self.name}.lost" in bounds or "apps.lost" in bounds
        return "" if expects_loss else self.tool_figures.total_loss

    def check(self, bounds: Container[str]) -> CheckVerdict:
        """Return the expectation as a judged bound. `bounds`: see `unexpected_loss`, which is no success."""
        expectation = f"exit {self.expected}" if isinstance(self.expected, int) else self.expected
        reason = self.unexpected_loss(bounds) if self.ok else self._failure_reason()
        return CheckVerdict(
            figure=f"app.{self.name}", bound=expectation, value=None, unit="", ok=not reason, reason=reason
        )

    def _failure_reason(self) -> str:
        start = self.last_start
        if start is None:
            return "the program never started"
        if start["why"] == "spin":
            return "it called the kernel endlessly while time stood still"
        if start["why"] == "end":
            return "it ran until the end of the test; raise test.length"
        if start["why"] == "grace":
            order, grace_s = signal_name(self.app.stop_signal), self.app.grace_ns / NS_PER_S
            when = "at the end of the test" if self.app.stop_ns is None else f"at {self.app.stop_ns / NS_PER_S:g} s"
            return f"it got {order} {when} and did not end within its grace of {grace_s:g} s, so it was killed"
        end_time = "" if start["end_ns"] is None else f" at {round(start['end_ns'] / NS_PER_S, 3):g} s"
        error_lines = self.stderr.splitlines()
        quoted = error_lines[:1] or self.output["line"].to_list()[-1:]
        quote = f"; last output: {quoted[0][:120]}" if quoted else ""
        return f"{self.status}{end_time}{quote}"

    def figures(self) -> summary.AppFigures:
        """Return its part of the summary."""
        start, tool = self.last_start or {}, self.tool_figures
        lines = self.output["line"].to_list()

        def seconds(key: str) -> float | None:
            return None if start.get(key) is None else rounded(start[key] / NS_PER_S)

        return summary.AppFigures(
            id=self.name,
            node=self.node,
            command=" ".join(self.app.command),
            status=self.status,
            expected=str(self.expected),
            starts=len(self.starts),
            exit=start.get("exit"),
            start_s=seconds("t_ns"),
            ready_s=seconds("ready_ns"),
            end_s=seconds("end_ns"),
            output_bytes=int(self.starts["output_bytes"].sum()),
            error_bytes=int(self.starts["error_bytes"].sum()),
            calls=start.get("calls"),
            cpu_s=None if self.cpu_s is None else rounded(self.cpu_s),
            waits=self.waits,
            goodput_mbps=tool.goodput_mbps,
            sent_mbps=tool.sent_mbps,
            retransmits=tool.retransmits,
            lost=tool.lost,
            jitter_ms=tool.jitter_ms,
            latency_ms=tool.latency_ms,
            tail="\n".join(lines[-TAIL:]),
        )


def signal_name(number: int | None) -> str:
    """Return SIGTERM for 15."""
    if number is None:
        return "unknown"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def programs(
    apps: tuple[PlanApp, ...],
    nodes: dict[int, str],
    expected: dict[str, int | str],
    tables: dict[str, pl.DataFrame],
    cpu_s: dict[str, float],
    folder: Path,
) -> Iterator[Program]:
    """Return the programs of a plan with their records, those of `TABLES`. `nodes`: by the number of a container."""
    for app in apps:
        starts, output, waits = (tables[name].filter(pl.col("app") == app.id) for name in TABLES)
        expectation = expected.get(app.name, ANY)
        yield Program(app, nodes[app.room], expectation, starts.sort("run"), output, waits, cpu_s.get(app.name), folder)


def stamped_output(program: Program) -> str:
    """Return a program's output, each line with its time in seconds and `|`, of stderr `!`."""
    rows = program.output.iter_rows(named=True)
    return "".join(
        f"{row['t_ns'] / NS_PER_S:15.9f} {'!' if row['pipe'] == 'stderr' else '|'} {row['line']}\n" for row in rows
    )
