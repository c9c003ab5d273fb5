# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of programs in a node: a system call, a page, a process; iperf3 compared with built-in flows.

All figures are CPU seconds of the guest, as the difference of two counts or lengths, so boot, set-up and the programs'
start cancel. On an idle machine, wall time would be the same: a guest has one CPU.
"""

from pathlib import Path
from typing import Any

from bench import machine
from bench.cases import line
from hourglass import scenario
from hourglass.scenario import Scenario

KERNEL = "6.1"
SOURCES = Path(__file__).with_suffix(".c"), Path(__file__).with_name("waits.c")

COUNTS = {
    "call": (20_000, 80_000),
    "clock": (50_000, 200_000),
    "fault": (5_000, 20_000),
    "fork": (100, 400),
    "exec": (100, 400),
}
"""The repetitions of each operation in `programs.c`: getppid(); clock_gettime(); mmap(), a write, munmap(); fork(),
wait(); with an exec()."""

LENGTHS_S = (2, 12)
"""Lengths of iperf3 and of the built-in flow."""

RATE = "100mbit"


def root(folder: Path) -> Path:
    """Return a root with only the programs `programs` and `waits`, linked statically. Raises MissingError."""
    root_folder = folder / "root"
    root_folder.mkdir()
    for source in SOURCES:
        machine.compile_c(source, root_folder / source.stem, "-static", "-pthread")
    return root_folder


def repeated(folder: Path, operation: str, count: int, kernel: str = KERNEL) -> Scenario:
    """Return a node that repeats an operation."""
    app = {"name": "programs", "node": "client", "command": ["/programs", operation, str(count)], "expect": 0}
    return scenario.load(alone([app], root=str(folder)), kernel=kernel)


def iperf3(length_s: int) -> Scenario:
    """Return a TCP connection of iperf3, and nothing else."""
    server = {"name": "server", "node": "server", "command": ["iperf3", "--server"], "ready": {"listen": "tcp:5201"}}
    command = ["iperf3", "--client", "server", "--time", str(length_s)]
    client = {"name": "client", "node": "client", "after": ["server"], "command": command, "expect": 0}
    return scenario.load(alone([server | {"expect": "running"}, client], packages=["iperf3"]), kernel=KERNEL)


def flow(length_s: int) -> Scenario:
    """Return the same with a built-in flow."""
    settings = ["test.name=tcp_1up", f"test.length={length_s}"]
    return scenario.load(line(RATE), settings, kernel=KERNEL)


def alone(apps: list[dict[str, Any]], **root: Any) -> dict[str, Any]:
    """Return the bench's testbed with programs instead of a test."""
    data = line(RATE)
    del data["test"]
    return data | {"apps": root, "app": apps}
