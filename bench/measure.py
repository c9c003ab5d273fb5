# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of a run and of a command."""

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hourglass.plan as plans
from bench import cases, machine, peers, programs
from hourglass.builders.kernel import registry
from hourglass.contract.kernels import DEFAULT
from hourglass.engine.virtual import Virtual
from hourglass.host import directories, sandbox
from hourglass.results.run_files import PLAN_FILE, RUN_FILE
from hourglass.scenario import Scenario

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """The cost of a run: wall seconds for the plan, from the guest's start to test time 0 and to the records' digest;
    CPU seconds of the guest; its kernel's peak memory in MiB; delivered data segments and connected flows."""

    plan_s: float
    ready_s: float
    wall_s: float
    cpu_s: float
    peak_mib: float
    segments: int
    flows: int


@dataclass
class Spent:
    """Wall seconds, and CPU seconds of child processes that have ended."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    """Count the cost of a block. The result is complete after the block."""
    spent, before, start = Spent(), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    yield spent
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.wall_s = time.monotonic() - start
    spent.cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(scenario: Scenario) -> Run:
    """Run a scenario and return only its cost."""
    peak_kib, ready_s = 0, 0.0

    def observe(_: float, __: float) -> None:
        nonlocal peak_kib, ready_s
        ready_s = ready_s or time.monotonic() - start
        peak_kib = max([peak_kib, *(resident_kib(child) for child in children())])

    start = time.monotonic()
    plan = plans.build(scenario, Virtual.capabilities)
    plan_s, guest = time.monotonic() - start, Virtual(registry.ensure(scenario.kernel))
    with tempfile.TemporaryDirectory() as directory:
        start = time.monotonic()
        with spending() as spent:
            outcome = guest.run(plan, Path(directory), progress=observe)
        tcp = peers.tcp(Path(directory))
        return Run(
            plan_s,
            ready_s,
            outcome.wall_s,
            spent.cpu_s,
            peak_kib / 1024,
            peers.segments(tcp),
            tcp.filter(tcp["sender"])["stream"].n_unique(),
        )


def sandbox_ratios(scenario: Scenario, pairs: int) -> list[float]:
    """Return the CPU seconds of guests with the sandbox over those without, a pair each. The order alternates."""
    ratios, layers = [], sandbox.ENABLED
    for number in range(pairs):
        cpu_s = {}
        for enabled in (True, False) if number % 2 else (False, True):
            sandbox.ENABLED = layers if enabled else set()
            try:
                cpu_s[enabled] = run(scenario).cpu_s
            finally:
                sandbox.ENABLED = layers
        ratios.append(cpu_s[True] / cpu_s[False])
    return ratios


def children() -> list[int]:
    """Return the child processes."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def resident_kib(pid: int) -> int:
    """Return the peak of a process's resident memory; 0 if the process has ended."""
    with contextlib.suppress(OSError):
        if match := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(match[1])
    return 0


def slope(cost: Callable[[Any], tuple[float, float]], ends: tuple[float, float]) -> float:
    """Return the cost of a unit between two ends; `cost` returns cost and units of an end."""
    (low_cost, low_units), (high_cost, high_units) = (cost(end) for end in ends)
    return (high_cost - low_cost) / (high_units - low_units)


def segment_s(case: cases.Case, segments: dict[float, int] | None = None) -> float:
    """Return CPU seconds of the guest per delivered data segment, for the seconds between the case's lengths.
    `segments`: their numbers by length, for a case that does not measure them; otherwise it is filled in."""

    def cost(length_s: float) -> tuple[float, float]:
        done = run(case.scenario(length_s))
        if segments is None:
            return done.cpu_s, done.segments
        return done.cpu_s, segments.setdefault(length_s, done.segments)

    return slope(cost, (case.short_s, case.long_s))


def programs_s() -> dict[str, float]:
    """Return CPU seconds of the guest for each of `programs.COUNTS`, once, and for a second of "iperf3" and of
    "flow"."""
    with tempfile.TemporaryDirectory() as directory:
        root = programs.root(Path(directory))
        costs = {
            operation: program_s(partial(programs.repeated, root, operation), counts)
            for operation, counts in programs.COUNTS.items()
        }
    costs["iperf3"] = program_s(programs.iperf3, programs.LENGTHS_S)
    costs["flow"] = program_s(programs.flow, programs.LENGTHS_S)
    return costs


def program_s(make: Callable[[int], Scenario], ends: tuple[int, int]) -> float:
    """Return CPU seconds of the guest per unit. `make` returns the scenario for a number of units."""
    return slope(lambda units: (run(make(units)).cpu_s, units), ends)


def counted_per_segment(case: cases.Case) -> dict[str, float]:
    """Return the guest's CPU counters per data segment. Raises MissingError."""
    ends = {}
    for length_s in (case.short_s, case.long_s):
        with machine.counted() as counters:
            done = run(case.scenario(length_s))
            ends[length_s] = {**counters(), "segments": done.segments}
    few, many = ends[case.short_s], ends[case.long_s]
    return {name: (many[name] - few[name]) / (many["segments"] - few["segments"]) for name in machine.COUNTERS}


@dataclass(frozen=True)
class Command:
    """The seconds of a command that makes a run: before the guest starts, the guest, from its end to the first output,
    and from there to the command's end."""

    before_s: float
    guest_s: float
    output_s: float
    after_s: float

    @property
    def all_s(self) -> float:
        return self.before_s + self.guest_s + self.output_s + self.after_s


def command(arguments: Sequence[str], source: Path = ROOT) -> Command:
    """Time `hourglass run` with these arguments and the sources of a checkout. Raises
    `subprocess.CalledProcessError`."""
    with tempfile.TemporaryDirectory() as directory:
        run_directory = Path(directory) / "run"
        start = time.time()
        with hourglass("run", *arguments, "--out", str(run_directory), source=source) as child:
            assert child.stdout is not None
            child.stdout.read(1)
            first_output = time.time()
            output, errors = child.communicate()
        end = time.time()
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, child.args, output, errors)
        guest_s = json.loads((run_directory / RUN_FILE).read_text())["wall_s"]
        guest_began = (run_directory / PLAN_FILE).stat().st_mtime
    return Command(guest_began - start, guest_s, first_output - guest_began - guest_s, end - first_output)


def hourglass(*arguments: str, source: Path = ROOT, **environment: str) -> subprocess.Popen[bytes]:
    """Start the command `hourglass` with the sources of a checkout."""
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, "-c", "from hourglass.cli import main; main()", *arguments],
        env=inherited | {"PYTHONPATH": str(source / "src")} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def shell(*arguments: str, source: Path = ROOT, **environment: str) -> Spent:
    """Return the cost of `hourglass` with these arguments. Raises `subprocess.CalledProcessError`."""
    with spending() as spent, hourglass(*arguments, source=source, **environment) as child:
        output, errors = child.communicate()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args, output, errors)
    return spent


REPORTED = 200


def report_s() -> float:
    """Return wall seconds of `hourglass report` about `REPORTED` runs."""
    with tempfile.TemporaryDirectory() as directory:
        run_directory = Path(directory) / "run"
        shell("run", "L100M", "--no-picture", "--out", str(run_directory))
        runs = [Path(directory) / f"run{number}" for number in range(REPORTED)]
        for link in runs:
            link.symlink_to(run_directory)
        return shell("report", *map(str, runs), "--out", f"{directory}/report.html").wall_s


def swept() -> tuple[float, float]:
    """Return the shares of the CPUs' time that a sweep of short runs used, and that its guests had."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        spent = shell("sweep", str(cases.sweep(Path(directory))), "--no-picture", "--out", str(out))
        guests_s = [json.loads(file.read_text())["wall_s"] for file in out.glob(f"runs/*/{RUN_FILE}")]
    assert len(guests_s) == cases.SWEPT
    available_s = spent.wall_s * len(os.sched_getaffinity(0))
    return spent.cpu_s / available_s, sum(guests_s) / available_s


def build() -> Spent:
    """Build the default kernel from its source, with an empty cache."""
    registry.ensure(DEFAULT)  # then the source exists
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "sources").symlink_to(directories.cache() / "sources")
        return shell("kernel", "build", DEFAULT, HOURGLASS_CACHE=directory)
