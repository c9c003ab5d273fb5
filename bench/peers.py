# SPDX-License-Identifier: Apache-2.0
"""Run the peers that Hourglass is compared with, at the same time: ns-3's wheel, and this machine's own kernel."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import polars as pl

import hourglass.plan as plans
from bench import machine
from hourglass import locks
from hourglass.contract.plan import Plan
from hourglass.engine.native import Native
from hourglass.errors import MissingError
from hourglass.host import directories
from hourglass.results.records import Tables
from hourglass.results.run_files import RECORDS_FILE
from hourglass.scenario import Scenario

NS3 = "ns3==3.44.post0"
"""A build with assertions and logging, without the compiler's full optimisation."""

NS3_SLOWER = (1.5, 2.0)
"""The wheel's duration relative to a build of the same version from source (-O3 -march=native -DNDEBUG, no assertions,
no logging): the least and the most over the cases here, measured once, on two cores."""

PROGRAMS = Path(__file__).parent


def ns3_python() -> Path:
    """Return the interpreter of an environment with ns-3, created on first use. Raises MissingError."""
    environment = directories.cache() / "tools" / NS3
    with locks.exclusive(environment.parent / f"{NS3}.lock"):
        done = environment / "installed"
        if not done.exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", environment], check=True)
                subprocess.run([environment / "bin" / "pip", "install", "--quiet", NS3], check=True)
            except subprocess.CalledProcessError:
                raise MissingError(f"{NS3} cannot be installed", "a registry of Python packages in reach") from None
            done.touch()
    return environment / "bin" / "python"


def ns3_s(program: str, *arguments: object) -> tuple[float, float]:
    """Run a simulation of `bench/<program>`. Return wall seconds from its first event to its last, and received
    Mbit/s."""
    command = [str(ns3_python()), str(PROGRAMS / program), *map(str, arguments)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wall_s, mbps = map(float, out.split())
    return wall_s, mbps


REST_S, SLICE_S = 2.0, 0.25
"""Length and step of the observation before and after a run on this machine's kernel."""

QUIET, PATIENCE, PAUSE_S = 0.1, 5, 5.0
"""The limit for other load on a CPU during a run; the number of attempts with more load, and the pause between them."""


@contextmanager
def one_cpu() -> Iterator[None]:
    """Pin this thread, and the processes that it starts, to one CPU, like a guest."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def host_segment_s(host: Native, scenario: Scenario, begin_s: float) -> float:
    """Run the same traffic in namespaces of this machine's kernel, on one CPU. Return CPU seconds per delivered data
    segment, from `begin_s` of test time on, above the idle load. Raises MissingError if the machine is never quiet.

    The median over the seconds, and over the slices of an idle time, excludes occasional other load.
    """
    for _ in range(PATIENCE):
        with one_cpu(), machine.busy() as busy, tempfile.TemporaryDirectory() as directory:
            before = resting(busy)
            load = loaded(host, plans.build(scenario, host.capabilities), Path(directory), begin_s, busy)
            after = resting(busy)
            if max(before, after) < QUIET:
                return (load - (before + after) / 2) / segments_per_s(tcp(Path(directory)), begin_s)
        time.sleep(PAUSE_S)
    raise MissingError(f"others take more than {QUIET:.0%} of a CPU", "a quiet machine")


def resting(busy: Callable[[], float]) -> float:
    """Return busy seconds per second while nothing runs."""
    observations = [(time.monotonic(), busy())]
    for _ in range(round(REST_S / SLICE_S)):
        time.sleep(SLICE_S)
        observations.append((time.monotonic(), busy()))
    return share(observations)


def loaded(host: Native, plan: Plan, directory: Path, begin_s: float, busy: Callable[[], float]) -> float:
    """Return busy seconds per second during a run."""
    observations: list[tuple[float, float]] = []

    def observe(reached_s: float, end_s: float) -> None:
        if begin_s <= reached_s < end_s:
            observations.append((time.monotonic(), busy()))

    host.run(plan, directory, progress=observe)
    return share(observations)


def share(observations: list[tuple[float, float]]) -> float:
    """Return busy seconds per second: the median over the spans between observations."""
    return median((later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairwise(observations))


def tcp(directory: Path) -> pl.DataFrame:
    """Return the samples of data segments of a run's sockets; none for a run with programs only."""
    tables = Tables(directory / RECORDS_FILE)
    if "tcp" not in tables:
        return pl.DataFrame(schema={"t_ns": pl.Int64, "stream": pl.UInt16, "sender": pl.Boolean, DATA: pl.UInt32})
    return tables.columns("tcp", ("t_ns", "stream", "sender", DATA))


DATA = "data_segs_in"


def segments(samples: pl.DataFrame) -> int:
    """Return the data segments that all receivers got."""
    return int(samples.filter(~pl.col("sender")).group_by("stream").agg(pl.col(DATA).max())[DATA].sum())


def segments_per_s(samples: pl.DataFrame, begin_s: float) -> float:
    """Return the same per second, from a point of test time to the last sample."""
    late = samples.filter(~pl.col("sender") & (pl.col("t_ns") >= begin_s * 1e9))
    grown = late.group_by("stream").agg(pl.col(DATA).max() - pl.col(DATA).min())
    start_ns, end_ns = (int(late["t_ns"].sort()[index]) for index in (0, -1))
    return float(grown[DATA].sum()) / (end_ns - start_ns) * 1e9
