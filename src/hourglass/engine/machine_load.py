# SPDX-License-Identifier: Apache-2.0
"""Measure the load of this machine, which disturbs runs in real time."""

import os
from pathlib import Path

from hourglass.contract.run_json import HostLoad

Times = tuple[float, float, float, float]
"""CPU seconds of the machine: all, idle, stolen; and those of this process and its children."""


def cpu_times() -> Times:
    """Return the CPU times since the machine booted."""
    fields = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:]
    ticks = [int(field) for field in fields]
    hertz = os.sysconf("SC_CLK_TCK")
    times = os.times()
    children = times.user + times.system + times.children_user + times.children_system
    return sum(ticks[:8]) / hertz, (ticks[3] + ticks[4]) / hertz, ticks[7] / hertz, children


def load_between(before: Times, after: Times) -> HostLoad:
    """Return the load between two instants."""
    total, idle, stolen, process = (late - early for early, late in zip(before, after, strict=True))
    total = total or 1.0
    busy = total - idle - stolen
    return HostLoad(100 * busy / total, 100 * max(busy - process, 0.0) / total, 100 * stolen / total)
