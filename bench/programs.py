# SPDX-License-Identifier: Apache-2.0
"""What programs in a node cost: a system call, a page, a process; iperf3 beside the built-in flows.

All of it in CPU seconds of the guest, as the difference of two counts or lengths, so that boot, set-up and the start of
the programs cancel. Wall time would be the same on an idle machine: a guest has one CPU.
"""

from pathlib import Path
from typing import Any

from bench import machine
from bench.cases import line
from hourglass import scenario
from hourglass.scenario import Scenario

KERNEL = "6.1"
SOURCE = Path(__file__).with_suffix(".c")

COUNTS = {
    "call": (20_000, 80_000),
    "clock": (50_000, 200_000),
    "fault": (5_000, 20_000),
    "fork": (100, 400),
    "exec": (100, 400),
}
"""How often `programs.c` does each: getppid(); clock_gettime(); mmap(), a write, munmap(); fork(), wait(); with an
exec()."""

LENGTHS_S = (2, 12)
"""Of iperf3 and of the built-in flow."""

RATE = "100mbit"


def root(folder: Path) -> Path:
    """A root with nothing but the program, linked statically. Raises MissingError."""
    made = folder / "root"
    made.mkdir()
    machine.compile_c(SOURCE, made / "programs", "-static", "-pthread")
    return made


def repeated(folder: Path, what: str, count: int) -> Scenario:
    """A node that does `what` so many times."""
    app = {"name": "programs", "node": "client", "command": ["/programs", what, str(count)], "expect": 0}
    return scenario.load(alone([app], root=str(folder)), kernel=KERNEL)


def iperf3(length_s: int) -> Scenario:
    """A TCP connection of iperf3, nothing else."""
    server = {"name": "server", "node": "server", "command": ["iperf3", "--server"], "ready": {"listen": "tcp:5201"}}
    words = ["iperf3", "--client", "server", "--time", str(length_s)]
    client = {"name": "client", "node": "client", "after": ["server"], "command": words, "expect": 0}
    return scenario.load(alone([server | {"expect": "running"}, client], packages=["iperf3"]), kernel=KERNEL)


def flow(length_s: int) -> Scenario:
    """The same by a built-in flow."""
    settings = ["test.name=tcp_1up", f"test.length={length_s}"]
    return scenario.load(line(RATE), settings, kernel=KERNEL)


def alone(apps: list[dict[str, Any]], **root: Any) -> dict[str, Any]:
    """The bench's testbed with programs in place of a test."""
    made = line(RATE)
    del made["test"]
    return made | {"apps": root, "app": apps}
