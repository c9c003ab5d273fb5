# SPDX-License-Identifier: Apache-2.0
"""What Hourglass is compared with, run side by side with it: ns-3's wheel, and this machine's own kernel."""

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
from hourglass.engine import paths
from hourglass.engine.native import Native
from hourglass.errors import MissingError
from hourglass.results.files import RECORDS_FILE
from hourglass.results.records import Tables
from hourglass.scenario import Scenario

NS3 = "ns3==3.44.post0"
"""A build with assertions and logging, without the compiler's full optimisation."""

NS3_SLOWER = (1.5, 2.0)
"""How many times as long the wheel takes as a build of the same version from source (-O3 -march=native -DNDEBUG, no
assertions, no logging): the least and the most over the cases here, measured once, on two cores."""

PROGRAMS = Path(__file__).parent


def ns3_python() -> Path:
    """The interpreter of an environment that has ns-3; made on first use. Raises MissingError."""
    place = paths.cache() / "tools" / NS3
    with locks.held(place.parent / f"{NS3}.lock"):
        done = place / "installed"
        if not done.exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", place], check=True)
                subprocess.run([place / "bin" / "pip", "install", "--quiet", NS3], check=True)
            except subprocess.CalledProcessError:
                raise MissingError(f"{NS3} cannot be installed", "a registry of Python packages in reach") from None
            done.touch()
    return place / "bin" / "python"


def ns3_s(program: str, *arguments: object) -> tuple[float, float]:
    """One simulation by `bench/<program>`: wall seconds from its first event to its last, Mbit/s received."""
    words = [str(ns3_python()), str(PROGRAMS / program), *map(str, arguments)]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    wall_s, mbps = map(float, out.split())
    return wall_s, mbps


REST_S, SLICE_S = 2.0, 0.25
"""For how long the machine is looked at before and after a run of its own kernel, and how finely."""

QUIET, PATIENCE, PAUSE_S = 0.1, 5, 5.0
"""The most that others may take of a CPU meanwhile; how often a run is made again that they took more of, and when."""


@contextmanager
def one_cpu() -> Iterator[None]:
    """This thread, and what it starts, on one CPU, as a guest is."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(own)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def host_segment_s(host: Native, scenario: Scenario, begin_s: float) -> float:
    """The same traffic in namespaces of this machine's kernel, on one CPU: CPU seconds per data segment delivered, from
    `begin_s` of test time on, beyond what the machine does anyway. Raises MissingError on a machine that never rests.

    Of the seconds it is the median, as of the slices of a rest, so that what else happens now and then is not counted.
    """
    for _ in range(PATIENCE):
        with one_cpu(), machine.busy() as busy, tempfile.TemporaryDirectory() as directory:
            before = resting(busy)
            taken = loaded(host, plans.build(scenario, host.capabilities), Path(directory), begin_s, busy)
            after = resting(busy)
            if max(before, after) < QUIET:
                return (taken - (before + after) / 2) / segments_per_s(tcp(Path(directory)), begin_s)
        time.sleep(PAUSE_S)
    raise MissingError(f"others take more than {QUIET:.0%} of a CPU", "a quiet machine")


def resting(busy: Callable[[], float]) -> float:
    """Busy seconds per second while nothing is run."""
    seen = [(time.monotonic(), busy())]
    for _ in range(round(REST_S / SLICE_S)):
        time.sleep(SLICE_S)
        seen.append((time.monotonic(), busy()))
    return share(seen)


def loaded(host: Native, plan: Plan, directory: Path, begin_s: float, busy: Callable[[], float]) -> float:
    """The same during a run, second by second."""
    seen: list[tuple[float, float]] = []

    def look(reached_s: float, end_s: float) -> None:
        if begin_s <= reached_s < end_s:
            seen.append((time.monotonic(), busy()))

    host.run(plan, directory, progress=look)
    return share(seen)


def share(seen: list[tuple[float, float]]) -> float:
    """Busy seconds per second: the median over the spans between moments at which both were noted."""
    return median((later[1] - sooner[1]) / (later[0] - sooner[0]) for sooner, later in pairwise(seen))


def tcp(directory: Path) -> pl.DataFrame:
    """What a run's sockets told of data segments; nothing of a run of programs alone."""
    tables = Tables(directory / RECORDS_FILE)
    if "tcp" not in tables:
        return pl.DataFrame(schema={"t_ns": pl.Int64, "stream": pl.UInt16, "sender": pl.Boolean, DATA: pl.UInt32})
    return tables.columns("tcp", ("t_ns", "stream", "sender", DATA))


DATA = "data_segs_in"


def segments(told: pl.DataFrame) -> int:
    """Data segments that all receivers were given."""
    return int(told.filter(~pl.col("sender")).group_by("stream").agg(pl.col(DATA).max())[DATA].sum())


def segments_per_s(told: pl.DataFrame, begin_s: float) -> float:
    """The same per second, from a moment of test time to the last sample."""
    late = told.filter(~pl.col("sender") & (pl.col("t_ns") >= begin_s * 1e9))
    grown = late.group_by("stream").agg(pl.col(DATA).max() - pl.col(DATA).min())
    begun_ns, end_ns = (int(late["t_ns"].sort()[place]) for place in (0, -1))
    return float(grown[DATA].sum()) / (end_ns - begun_ns) * 1e9
