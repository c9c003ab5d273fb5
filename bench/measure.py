# SPDX-License-Identifier: Apache-2.0
"""One run and what it cost; the least of several; the cost of a second."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import hourglass.plan as plans
from bench.cases import CASES, START, Case
from hourglass.engine import virtual
from hourglass.engine.kernel import store
from hourglass.scenario import Scenario

KERNELS = sorted({case.kernel for case in CASES})

Say = Callable[[str], None]


@dataclass
class Costs:
    """What was measured: wall seconds by case and length, each as often as repeated, and the guest's peak memory."""

    command_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    wall_s: dict[tuple[str, float], list[float]] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)

    def second_ms(self, case: Case) -> float:
        """Wall ms per loaded second."""
        short, long = (min(self.wall_s[case.name, length]) for length in (case.short_s, case.long_s))
        return (long - short) / (case.long_s - case.short_s) * 1e3


def measure(repetitions: int, say: Say) -> Costs:
    """All cases, `repetitions` times over."""
    costs = Costs()
    for kernel in KERNELS:
        say(f"kernel {kernel}")
        store.ensure(kernel)
    for number in range(1, repetitions + 1):
        say(f"{number}/{repetitions}: start")
        costs.command_s.append(command_s())
        costs.start_s.append(run(START.scenario(START.short_s))[0])
        for case in CASES:
            say(f"{number}/{repetitions}: {case.name}")
            for length_s in (case.short_s, case.long_s):
                wall_s, peak_mib = run(case.scenario(length_s))
                costs.wall_s.setdefault((case.name, length_s), []).append(wall_s)
                costs.peak_mib[case.name] = max(peak_mib, costs.peak_mib.get(case.name, 0))
    return costs


def run(scenario: Scenario) -> tuple[float, float]:
    """Wall seconds from the guest's start to the records' digest, and the most MiB the guest's kernel had."""
    peak_kib = 0

    def look(_: float, __: float) -> None:
        nonlocal peak_kib
        peak_kib = max([peak_kib, *(resident_kib(child) for child in children())])

    plan = plans.build(scenario).to_json()
    with tempfile.TemporaryDirectory() as directory:
        kernel = store.ensure(scenario.kernel)
        outcome = virtual.run(plan, kernel, Path(directory), seed=scenario.seed, progress=look)
    return outcome.wall_s, peak_kib / 1024


def children() -> list[int]:
    """Our child processes."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def resident_kib(pid: int) -> int:
    """The most memory a process had resident; 0 when it is gone."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1])
    return 0


def command_s() -> float:
    """Wall seconds of the whole command for the shortest of tests, from the shell's point of view."""
    words = ["run", "L100M", "--kernel", START.kernel, "--no-picture", "--json"]
    words += ["--set", "test.name=ping", "--set", "test.length=1"]
    with tempfile.TemporaryDirectory() as directory:
        argv: list[str | Path] = [Path(sys.executable).with_name("hourglass"), *words, "--out", f"{directory}/run"]
        begun = time.monotonic()
        subprocess.run(argv, check=True, capture_output=True, env=dict(os.environ))
        return time.monotonic() - begun
