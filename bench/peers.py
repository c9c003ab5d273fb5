# SPDX-License-Identifier: Apache-2.0
"""What Hourglass is compared with, run side by side with it: ns-3's wheel, and this machine's own kernel."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import hourglass.plan as plans
from hourglass import locks
from hourglass.engine import paths
from hourglass.engine.native import Native
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
    """The interpreter of an environment that has ns-3; made on first use. Raises `subprocess.CalledProcessError`."""
    place = paths.cache() / "tools" / NS3
    with locks.held(place.parent / f"{NS3}.lock"):
        done = place / "installed"
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([place / "bin" / "pip", "install", "--quiet", NS3], check=True)
            done.touch()
    return place / "bin" / "python"


def ns3_s(program: str, *arguments: object) -> tuple[float, float]:
    """One simulation by `bench/<program>`: wall seconds from its first event to its last, Mbit/s received."""
    words = [str(ns3_python()), str(PROGRAMS / program), *map(str, arguments)]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    wall_s, mbps = map(float, out.split())
    return wall_s, mbps


def busy_s() -> float:
    """CPU seconds this machine has spent on anything so far, all cores; not what its host took from it."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
    idle, iowait = ticks[3], ticks[4]
    return (sum(ticks) - idle - iowait) / os.sysconf("SC_CLK_TCK")


def native_cpu_s(machine: Native, scenario: Scenario) -> tuple[float, int]:
    """The same traffic in namespaces of this machine's kernel: CPU seconds beyond what the machine does anyway, and the
    data segments delivered."""
    plan = plans.build(scenario, machine.capabilities)
    rest_s = 3.0
    before = busy_s()
    time.sleep(rest_s)
    background = (busy_s() - before) / rest_s
    with tempfile.TemporaryDirectory() as directory:
        begun, before = time.monotonic(), busy_s()
        machine.run(plan, Path(directory))
        spent = busy_s() - before - background * (time.monotonic() - begun)
        return spent, segments(Path(directory))


def segments(directory: Path) -> int:
    """Data segments that all receivers of a run were given; none of a run of programs alone."""
    tables = Tables(directory / RECORDS_FILE)
    if "tcp" not in tables:
        return 0
    tcp = tables.columns("tcp", ("stream", "sender", "data_segs_in"))
    last = tcp.filter(~pl.col("sender")).group_by("stream").agg(pl.col("data_segs_in").max())
    return int(last["data_segs_in"].sum())
