# SPDX-License-Identifier: Apache-2.0
"""One run, one command, and what it cost."""

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
from hourglass.contract.kernels import DEFAULT
from hourglass.engine import paths
from hourglass.engine.kernel import store
from hourglass.engine.virtual import Virtual
from hourglass.results.files import PLAN_FILE, RUN_FILE
from hourglass.scenario import Scenario

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """What a run cost: wall seconds until there was a plan, and from the guest's start to test time 0 and to the
    records' digest; CPU seconds of the guest; the most MiB its kernel had; the data segments delivered, and the
    flows that were connected."""

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
    """Counts what is spent meanwhile; told when it is over."""
    spent, before, begun = Spent(), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    yield spent
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.wall_s = time.monotonic() - begun
    spent.cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(scenario: Scenario) -> Run:
    """Makes a run of which only this is kept."""
    peak_kib, ready_s = 0, 0.0

    def look(_: float, __: float) -> None:
        nonlocal peak_kib, ready_s
        ready_s = ready_s or time.monotonic() - begun
        peak_kib = max([peak_kib, *(resident_kib(child) for child in children())])

    begun = time.monotonic()
    plan = plans.build(scenario, Virtual.capabilities)
    plan_s, guest = time.monotonic() - begun, Virtual(store.ensure(scenario.kernel))
    with tempfile.TemporaryDirectory() as directory:
        begun = time.monotonic()
        with spending() as spent:
            outcome = guest.run(plan, Path(directory), progress=look)
        told = peers.tcp(Path(directory))
        return Run(
            plan_s,
            ready_s,
            outcome.wall_s,
            spent.cpu_s,
            peak_kib / 1024,
            peers.segments(told),
            told.filter(told["sender"])["stream"].n_unique(),
        )


def children() -> list[int]:
    """Our child processes."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def resident_kib(pid: int) -> int:
    """The most memory a process had resident; 0 when it is gone."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1])
    return 0


def slope(cost: Callable[[Any], tuple[float, float]], ends: tuple[float, float]) -> float:
    """The cost of a unit between two ends; `cost` gives cost and units of an end."""
    (less, few), (more, many) = (cost(end) for end in ends)
    return (more - less) / (many - few)


def segment_s(case: cases.Case, segments: dict[float, int] | None = None) -> float:
    """CPU seconds of the guest per data segment delivered, of the seconds between the case's lengths. `segments`: how
    many there are by length, of a case that does not measure them; else it is filled in."""

    def cost(length_s: float) -> tuple[float, float]:
        done = run(case.scenario(length_s))
        if segments is None:
            return done.cpu_s, done.segments
        return done.cpu_s, segments.setdefault(length_s, done.segments)

    return slope(cost, (case.short_s, case.long_s))


def programs_s() -> dict[str, float]:
    """CPU seconds of the guest for each of `programs.COUNTS`, once, and for a second of "iperf3" and of "flow"."""
    with tempfile.TemporaryDirectory() as directory:
        root = programs.root(Path(directory))
        found = {
            what: program_s(partial(programs.repeated, root, what), counts) for what, counts in programs.COUNTS.items()
        }
    found["iperf3"] = program_s(programs.iperf3, programs.LENGTHS_S)
    found["flow"] = program_s(programs.flow, programs.LENGTHS_S)
    return found


def program_s(made: Callable[[int], Scenario], ends: tuple[int, int]) -> float:
    """CPU seconds of the guest per unit of what `made` makes a scenario of."""
    return slope(lambda units: (run(made(units)).cpu_s, units), ends)


def counted_per_segment(case: cases.Case) -> dict[str, float]:
    """What the CPU's counters say of the guest, per data segment. Raises MissingError."""
    ends = {}
    for length_s in (case.short_s, case.long_s):
        with machine.counted() as counters:
            done = run(case.scenario(length_s))
            ends[length_s] = {**counters(), "segments": done.segments}
    few, many = ends[case.short_s], ends[case.long_s]
    return {name: (many[name] - few[name]) / (many["segments"] - few["segments"]) for name in machine.COUNTERS}


@dataclass(frozen=True)
class Command:
    """Where the seconds of a command went that makes a run: until the guest begins, the guest, from its end to the
    first word printed, and from then to the command's end."""

    before_s: float
    guest_s: float
    told_s: float
    after_s: float

    @property
    def all_s(self) -> float:
        return self.before_s + self.guest_s + self.told_s + self.after_s


def command(words: Sequence[str], source: Path = ROOT) -> Command:
    """`hourglass run` with these words, by the sources of a checkout. Raises `subprocess.CalledProcessError`."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "run"
        begun = time.time()
        with hourglass("run", *words, "--out", str(place), source=source) as child:
            assert child.stdout is not None
            child.stdout.read(1)
            told = time.time()
            rest, complaints = child.communicate()
        ended = time.time()
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, child.args, rest, complaints)
        guest_s = json.loads((place / RUN_FILE).read_text())["wall_s"]
        guest_began = (place / PLAN_FILE).stat().st_mtime
    return Command(guest_began - begun, guest_s, told - guest_began - guest_s, ended - told)


def hourglass(*words: str, source: Path = ROOT, **environment: str) -> subprocess.Popen[bytes]:
    """The command `hourglass` of the sources of a checkout."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, "-c", "from hourglass.cli import main; main()", *words],
        env=kept | {"PYTHONPATH": str(source / "src")} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def shell(*words: str, source: Path = ROOT, **environment: str) -> Spent:
    """What `hourglass` with these words takes. Raises `subprocess.CalledProcessError`."""
    with spending() as spent, hourglass(*words, source=source, **environment) as child:
        said, complaints = child.communicate()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args, said, complaints)
    return spent


REPORTED = 200


def report_s() -> float:
    """Wall seconds of `hourglass report` about so many runs."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "run"
        shell("run", "L100M", "--no-picture", "--out", str(place))
        runs = [Path(directory) / f"run{number}" for number in range(REPORTED)]
        for link in runs:
            link.symlink_to(place)
        return shell("report", *map(str, runs), "--out", f"{directory}/report.html").wall_s


def swept() -> tuple[float, float]:
    """Of a sweep of short runs, the share of the CPUs' time that it used, and that guests had."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        spent = shell("sweep", str(cases.sweep(Path(directory))), "--no-picture", "--out", str(out))
        guests_s = [json.loads(file.read_text())["wall_s"] for file in out.glob(f"runs/*/{RUN_FILE}")]
    assert len(guests_s) == cases.SWEPT
    there_s = spent.wall_s * len(os.sched_getaffinity(0))
    return spent.cpu_s / there_s, sum(guests_s) / there_s


def build() -> Spent:
    """A build of the default kernel from nothing but its source, in a cache of its own."""
    store.ensure(DEFAULT)  # the source is there
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "sources").symlink_to(paths.cache() / "sources")
        return shell("kernel", "build", DEFAULT, HOURGLASS_CACHE=directory)
