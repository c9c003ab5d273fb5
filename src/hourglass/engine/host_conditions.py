# SPDX-License-Identifier: Apache-2.0
"""Name what this host lacks to run guests, with the remedy.

`doctor` lists the unmet conditions before a run. If a guest fails, the engine looks for the cause here (docs/how-to/
install.md, "Hosts")."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hourglass.engine.console import Console
from hourglass.errors import MissingError
from hourglass.host import cgroups, memory
from hourglass.host.cgroups import number, text

MEMORY_GIB = 2
"""A guest's memory. Buffer limits and hash sizes depend on it, so it is constant up to `virtual.NODES_IN_MEMORY` nodes.
The host provides the pages that are used."""

LEAST_MEMORY = 256 << 20
"""Bytes for a run of two nodes without programs: 90 MB for the guest, the rest for this process."""

LEAST_ADDRESSES = 2 * MEMORY_GIB << 30
"""Bytes of address space: the guest's memory is mapped at once, and must find its place."""

LEAST_SIGNALS = 16
"""Pending signals. Each timer of a guest reserves one."""

MAX_MAP_COUNT = Path("/proc/sys/vm/max_map_count")
MEMFD_NOEXEC = Path("/proc/sys/vm/memfd_noexec")
FORBIDDEN = "2"
EXECUTED_FROM = (7, 0)
"""The first release of a guest that executes a memory file, to start its processes."""

_TRACE_ME = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"


@dataclass(frozen=True)
class HostUse:
    """Counters of the host before a guest starts. They are the processes killed for lack of memory, and the largest
    memory in bytes of an ended child."""

    kills: int
    largest: int

    @classmethod
    def now(cls) -> "HostUse":
        return cls(memory.kills(), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def unmet() -> Iterator[MissingError]:
    """Yield what this host lacks for guests, the cause of most others first."""
    yield from settings()
    if (error := tracing()) is not None:
        yield error
    limit = memory.tightest()
    if limit is not None and limit.free < LEAST_MEMORY:
        yield MissingError(
            f"{_size(limit.free)} of memory are free, and a guest needs {_size(LEAST_MEMORY)}: "
            f"{limit.name} {_size(limit.size)}",
            "free memory, or raise the limit",
            code="host-memory",
        )


def settings(version: tuple[int, ...] = ()) -> Iterator[MissingError]:
    """Yield the settings and resource limits (setrlimit(2)) with which no guest starts. They are known without a trial.
    `version`: the release of the guest's kernel."""
    if not os.access("/proc/self/cwd", os.F_OK):
        problem = "/proc is not mounted, and a guest finds its run directory there"
        yield MissingError(problem, "mount -t proc proc /proc", code="host-setting")
    if version >= EXECUTED_FROM and text(MEMFD_NOEXEC) == FORBIDDEN:
        yield MissingError(
            f"vm.memfd_noexec = 2 forbids programs in memory, which guests of Linux {EXECUTED_FROM[0]} start",
            "sysctl vm.memfd_noexec=1; or another kernel: --kernel 6.12",
            code="host-setting",
        )
    for kind, least, name, option, written in (
        (resource.RLIMIT_AS, LEAST_ADDRESSES, "address space", "v", _size),
        (resource.RLIMIT_FSIZE, MEMORY_GIB << 30, "the size of a file", "f", _size),
        (resource.RLIMIT_SIGPENDING, LEAST_SIGNALS, "pending signals", "i", str),
    ):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY and limit < least:
            problem = f"the limit of {name} is {written(limit)} (ulimit -{option}), and a guest needs {written(least)}"
            yield MissingError(problem, f"ulimit -{option} unlimited", code="host-limit")


def tracing() -> MissingError | None:
    """Return the error of a machine that does not let processes be traced. The guest kernel runs its programs so."""
    if subprocess.run([sys.executable, "-c", _TRACE_ME], check=False).returncode == 0:
        return None
    return MissingError(
        "this machine forbids ptrace, which the guest kernel needs",
        "sysctl kernel.yama.ptrace_scope=1 (in a container: allow it SYS_PTRACE)",
        code="ptrace-forbidden",
    )


def cause(console: Console, status: int, before: HostUse) -> MissingError | None:
    """Return what the host did to a guest that failed, or lacks, or None if the host is not to blame.

    `status`: the guest's end (`Popen.returncode`); `before`: the use at the guest's start."""
    after = HostUse.now()
    if after.kills > before.kills:
        share = f", which had {_size(after.largest)}," if after.largest > before.largest else ""
        return _scarce_memory(f"the host killed the guest{share} for lack of memory")
    if status == -signal.SIGXCPU:
        seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
        return MissingError(
            f"the guest used all of the CPU time that the host permits: {seconds} s (ulimit -t)",
            "ulimit -t unlimited",
            code="host-limit",
        )
    return None if console.spoke else next(unmet(), None)


def refusal(console: Console) -> MissingError | None:
    """Return the error for a guest whose programs lacked a resource of the host. Their behaviour then depends on the
    host, so the run fails even if it ended."""
    if "memory" in console.refused:
        return _scarce_memory("the host refused memory to the guest")
    if "process" in console.refused:
        return MissingError(
            f"the host permits no more processes ({_process_limit()}); each process of a guest is one of the host",
            "raise this limit",
            code="host-limit",
        )
    if "mapping" in console.refused:
        return MissingError(
            f"the host permits a program no more mappings (vm.max_map_count = {text(MAX_MAP_COUNT)}); each range "
            "of adjacent pages of the guest needs one",
            "sysctl vm.max_map_count=1048576",
            code="host-limit",
        )
    return None


def _process_limit() -> str:
    """Return the lowest limit of processes."""
    own_limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    limits = [] if own_limit == resource.RLIM_INFINITY or os.geteuid() == 0 else [(own_limit, "ulimit -u")]
    files = [cgroup.folder / "pids.max" for cgroup in cgroups.around("pids")]
    limits += [(limit, str(file)) for file in files if (limit := number(file)) is not None]
    return " is ".join(map(str, reversed(min(limits)))) if limits else "kernel.pid_max or kernel.threads-max"


def _scarce_memory(event: str) -> MissingError:
    limit = memory.tightest()
    space = f"{limit.name} {_size(limit.size)}, and " if limit is not None else ""
    return MissingError(
        f"{event}: {space}a guest may use {MEMORY_GIB} GiB",
        "raise this limit, make fewer runs at once, or let the scenario's programs need less memory",
        code="host-memory",
    )


def _size(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB" if size < 1 << 30 else f"{size / (1 << 30):.3g} GiB"
