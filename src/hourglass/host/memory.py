# SPDX-License-Identifier: Apache-2.0
"""Read how much memory this process may use, and how often the kernel killed a process for lack of it.

The machine's memory is one limit. Each memory cgroup around this process can set another."""

from dataclasses import dataclass
from typing import NamedTuple

from hourglass.host import cgroups
from hourglass.host.cgroups import Cgroup, number, numbers, text

STRICT = "2"
"""The value of vm.overcommit_memory with which Linux bounds the memory that all processes reserve."""


@dataclass(frozen=True)
class MemoryLimit:
    """A limit in bytes, and the bytes of it that are in use and that the kernel cannot drop. `name`: for messages."""

    name: str
    size: int
    used: int

    @property
    def free(self) -> int:
        return max(self.size - self.used, 0)


class _Files(NamedTuple):
    """The files of a memory cgroup: limit, use, killed processes; the fields of memory.stat with droppable bytes."""

    limit: str
    use: str
    kills: str
    droppable: tuple[str, str]


_FILES = {
    1: _Files(
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.oom_control",
        ("total_inactive_file", "total_active_file"),
    ),
    2: _Files("memory.max", "memory.current", "memory.events.local", ("inactive_file", "active_file")),
}
"""By version of cgroups."""


def limits() -> list[MemoryLimit]:
    """Return the machine's memory, its bound of reserved memory, and the lower limits of the cgroups around this
    process."""
    sizes = numbers(cgroups.PROC / "meminfo")
    total, available = (1024 * sizes.get(f"{key}:", 0) for key in ("MemTotal", "MemAvailable"))
    inner = [limit for cgroup in cgroups.around("memory") if (limit := _limit(cgroup)) is not None]
    if not total:
        return inner
    machine = [MemoryLimit("this machine has", total, total - available)]
    if text(cgroups.PROC / "sys/vm/overcommit_memory") == STRICT:
        bound, committed = (1024 * sizes.get(f"{key}:", 0) for key in ("CommitLimit", "Committed_AS"))
        machine.append(MemoryLimit("CommitLimit of /proc/meminfo (vm.overcommit_memory = 2) is", bound, committed))
    return [*machine, *(limit for limit in inner if limit.size < total)]


def tightest() -> MemoryLimit | None:
    """Return the limit that leaves the least memory; None if /proc is unreadable."""
    return min(limits(), key=lambda limit: limit.free, default=None)


def kills() -> int:
    """Return the number of processes that the kernel has killed for lack of memory. This process's cgroup counts them,
    otherwise the machine."""
    cgroup = next(cgroups.around("memory"), None)
    files = [] if cgroup is None else [cgroup.folder / _FILES[cgroup.version].kills]
    counts = (numbers(path).get("oom_kill") for path in (*files, cgroups.PROC / "vmstat"))
    return next((count for count in counts if count is not None), 0)


def _limit(cgroup: Cgroup) -> MemoryLimit | None:
    """Return the limit of a cgroup, if it has one."""
    names = _FILES[cgroup.version]
    size = number(cgroup.folder / names.limit)
    if size is None:
        return None
    parts = numbers(cgroup.folder / "memory.stat")
    used = (number(cgroup.folder / names.use) or 0) - sum(parts.get(part, 0) for part in names.droppable)
    return MemoryLimit(f"{cgroup.folder / names.limit} is", size, max(used, 0))
