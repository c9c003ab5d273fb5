# SPDX-License-Identifier: Apache-2.0
"""What this machine is like: its memory's latency and bandwidth, its CPUs' counters, how busy it is.

`machine.c`, compiled when it is needed, measures. How busy the machine is no file of /proc says well: where time is
counted by ticks, what an idle CPU does in interrupts is counted as idleness. So a program of the lowest priority runs
on each CPU, and the time that it does not get is what everything else took, interrupts and their softirqs included.
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
    """`machine.c`, compiled. Raises MissingError."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "machine"
        compile_c(SOURCE, made)
        yield made


def compile_c(source: Path, made: Path, *words: str) -> None:
    """Compiles a file of the bench. Raises MissingError."""
    try:
        subprocess.run(["gcc", "-O2", *words, "-o", made, source], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise MissingError("there is no gcc", "apt-get install -y gcc libc6-dev") from None


def latencies_ns() -> dict[str, float]:
    """Of a load that has to wait for the one before it, by the working set over which they are spread."""
    with program() as made:
        return {name: _figure(made, "latency", str(size)) for name, size in WORKING_SETS.items()}


def copied_gb_s() -> float:
    """GB/s that memcpy() copies."""
    with program() as made:
        return _figure(made, "copy")


def _figure(made: Path, *words: str) -> float:
    return float(subprocess.run([made, *words], check=True, capture_output=True, text=True).stdout)


@contextmanager
def busy() -> Iterator[Callable[[], float]]:
    """Gives what tells how many CPU seconds this machine spent on anything since the beginning, all CPUs together."""
    with ExitStack() as held:
        made = held.enter_context(program())
        totals = []
        for cpu in sorted(os.sched_getaffinity(0)):
            file = made.with_name(str(cpu))
            file.write_bytes(bytes(8))
            totals.append(file)
            child = subprocess.Popen([made, "idle", file, str(cpu)])
            held.callback(child.wait)
            held.callback(child.kill)
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
    """Gives what tells how far the counters of this thread, and of the processes it starts meanwhile, have got; of a
    process once it has ended. Raises MissingError where the CPU has none, or does not show them."""
    import fcntl

    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as held:
        files: dict[str, int] = {}
        for name, number in counters.items():
            attr = struct.pack("IIQQQQQ", kind, _ATTR_BYTES, number, 0, 0, 0, _DISABLED | _INHERIT)
            file = -1
            if platform.machine() == "x86_64":
                file = libc.syscall(_SYSCALL, attr.ljust(_ATTR_BYTES, b"\0"), 0, -1, -1, 0)
            if file < 0:
                why = os.strerror(ctypes.get_errno())
                raise MissingError(f"no counters here ({name}: {why})", "a machine that shows its CPUs' counters")
            held.callback(os.close, file)
            files[name] = file
        for file in files.values():
            fcntl.ioctl(file, _ENABLE, 0)
        yield lambda: {name: struct.unpack("Q", os.read(file, 8))[0] for name, file in files.items()}
