# SPDX-License-Identifier: Apache-2.0
"""Measure this machine: its memory's latency and bandwidth, its CPUs' counters, its load.

`machine.c`, compiled on use, measures. No file of /proc gives the load exactly: where time is counted by ticks, the
interrupts of an idle CPU count as idle time. So a program with the lowest priority runs on each CPU. The time that it
does not get is the load, with interrupts and their softirqs.
"""

import ctypes
import os
import platform
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hourglass.errors import MissingError

SOURCE = Path(__file__).with_suffix(".c")
WORKING_SETS = {"512 KiB": 2**19, "2 MiB": 2**21, "8 MiB": 2**23, "32 MiB": 2**25}
"""Bytes by name."""


@contextmanager
def program() -> Iterator[Path]:
    """Provide `machine.c`, compiled. Raises MissingError."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "machine"
        compile_c(SOURCE, binary)
        yield binary


def compile_c(source: Path, target: Path, *options: str) -> None:
    """Compile a file of the bench. Raises MissingError."""
    try:
        subprocess.run(["gcc", "-O2", *options, "-o", target, source], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise MissingError("there is no gcc", "apt-get install -y gcc libc6-dev") from None


def latencies_ns() -> dict[str, float]:
    """Return the latency of dependent loads by working set."""
    with program() as binary:
        return {name: _figure(binary, "latency", str(size)) for name, size in WORKING_SETS.items()}


def copied_gb_s() -> float:
    """Return memcpy()'s bandwidth in GB/s."""
    with program() as binary:
        return _figure(binary, "copy")


def _figure(binary: Path, *arguments: str) -> float:
    return float(subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout)


@contextmanager
def busy() -> Iterator[Callable[[], float]]:
    """Yield a function that returns the CPU seconds of all work on this machine since the start, over all CPUs."""
    with ExitStack() as stack:
        binary = stack.enter_context(program())
        totals = []
        for cpu in sorted(os.sched_getaffinity(0)):
            file = binary.with_name(str(cpu))
            file.write_bytes(bytes(8))
            totals.append(file)
            child = subprocess.Popen([binary, "idle", file, str(cpu)])
            stack.callback(child.wait)
            stack.callback(child.kill)
        yield lambda: sum(struct.unpack("Q", file.read_bytes())[0] for file in totals) / 1e9


COUNTERS = {"cycles": 0, "instructions": 1, "cache misses": 3}
"""PERF_COUNT_HW_…"""
HARDWARE, SOFTWARE = 0, 1
_SYSCALL = 298
"""perf_event_open(), x86-64."""
_ATTR_BYTES = 112
_DISABLED, _INHERIT = 1, 2
_ENABLE = 0x2400
"""PERF_EVENT_IOC_ENABLE."""


@contextmanager
def counted(counters: Mapping[str, int] = COUNTERS, kind: int = HARDWARE) -> Iterator[Callable[[], dict[str, int]]]:
    """Yield a function that returns the counters of this thread and of the processes that it starts and that have
    ended. Raises MissingError if the CPU has no counters, or hides them."""
    import fcntl

    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as stack:
        files: dict[str, int] = {}
        for name, number in counters.items():
            attr = struct.pack("IIQQQQQ", kind, _ATTR_BYTES, number, 0, 0, 0, _DISABLED | _INHERIT)
            file = -1
            if platform.machine() == "x86_64":
                file = libc.syscall(_SYSCALL, attr.ljust(_ATTR_BYTES, b"\0"), 0, -1, -1, 0)
            if file < 0:
                reason = os.strerror(ctypes.get_errno())
                raise MissingError(f"no counters here ({name}: {reason})", "a machine that shows its CPUs' counters")
            stack.callback(os.close, file)
            files[name] = file
        for file in files.values():
            fcntl.ioctl(file, _ENABLE, 0)
        yield lambda: {name: struct.unpack("Q", os.read(file, 8))[0] for name, file in files.items()}
