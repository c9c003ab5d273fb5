# SPDX-License-Identifier: Apache-2.0
"""What Hourglass is compared with, run side by side with it: ns-3's wheel, and this machine's own kernel."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import polars as pl

import hourglass.plan as plans
from hourglass import locks
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


REST_S, SLICE_S = 3.0, 0.25
"""How long the machine is looked at before a native run, and how finely."""


def host_segment_s(machine: Native, scenario: Scenario, begin_s: float, busy: Callable[[], float]) -> float:
    """The same traffic in namespaces of this machine's kernel: CPU seconds per data segment delivered, from `begin_s`
    of test time on, beyond what the machine does anyway; `busy` is `machine.busy`'s.

    Of the seconds it is the median, as of the slices of a rest before, so that what else the machine does now and then
    is not counted.
    """
    plan = plans.build(scenario, machine.capabilities)
    rest, seen = [(time.monotonic(), busy())], list[tuple[float, float]]()
    for _ in range(round(REST_S / SLICE_S)):
        time.sleep(SLICE_S)
        rest.append((time.monotonic(), busy()))

    def look(reached_s: float, _: float) -> None:
        if reached_s >= begin_s and reached_s < plan.end_ns / 1e9:
            seen.append((time.monotonic(), busy()))

    with tempfile.TemporaryDirectory() as directory:
        machine.run(plan, Path(directory), progress=look)
        return (share(seen) - share(rest)) / segments_per_s(received(Path(directory)), begin_s)


def share(seen: list[tuple[float, float]]) -> float:
    """Busy seconds per second: the median over the spans between moments at which both were noted."""
    return median((later[1] - sooner[1]) / (later[0] - sooner[0]) for sooner, later in pairwise(seen))


def received(directory: Path) -> pl.DataFrame:
    """Data segments that each receiver of a run was given so far, by time; none of a run of programs alone."""
    tables = Tables(directory / RECORDS_FILE)
    if "tcp" not in tables:
        return pl.DataFrame({"t_ns": [], "stream": [], "data_segs_in": []})
    return tables.columns("tcp", ("t_ns", "stream", "sender", "data_segs_in")).filter(~pl.col("sender"))


def segments(told: pl.DataFrame) -> int:
    """Data segments that all receivers were given."""
    return int(told.group_by("stream").agg(pl.col("data_segs_in").max())["data_segs_in"].sum())


def segments_per_s(told: pl.DataFrame, begin_s: float) -> float:
    """The same per second, from a moment of test time to the last sample."""
    late = told.filter(pl.col("t_ns") >= begin_s * 1e9)
    grown = late.group_by("stream").agg(pl.col("data_segs_in").max() - pl.col("data_segs_in").min())
    begun_ns, end_ns = (int(late["t_ns"].sort()[place]) for place in (0, -1))
    return float(grown["data_segs_in"].sum()) / (end_ns - begun_ns) * 1e9
