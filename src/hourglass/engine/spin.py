# SPDX-License-Identifier: Apache-2.0
"""Find where a guest spins: sample its kernel and the program on its CPU. The guest is stopped afterwards.

User Mode Linux is a process that traces others. It waits in wait4() while a program's code runs, and executes the
program's system calls in between. If the kernel used all the CPU time, the kernel spins. If it used none, a program
spins without calling it. Otherwise a program calls it in a loop.

The kernel is stopped by ptrace, as a debugger does, and continues after each sample. A program is already traced. Its
position outside the kernel is visible once it got a signal while its tracer is stopped."""

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hourglass.engine.guest_memory import GuestMemory, GuestProgram, signal_program

SAMPLES = 20
APART_S = 0.02
NAMED = 3
"""Functions, callers or system calls in a message."""

IDLE_SHARE, BUSY_SHARE = 0.02, 0.98
"""Shares of the CPU time in the kernel: below the first, a program never calls it; above the second, it never
returns."""

PATIENCE = 500
"""Checks whether a process has stopped: 10 s in all, for busy machines."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_SEIZE, _INTERRUPT, _GETREGS, _DETACH = 0x4206, 0x4207, 12, 17
_WALL = 0x40000000
_REGISTERS = 27
_IP, _SP = 16, 19
"""Positions in the host's `struct user_regs_struct`."""

_STACK = 2048
_CALL = 0xE8


@dataclass(frozen=True)
class Sample:
    """`chain`: the running kernel function and its callers, as far as they are known."""

    chain: tuple[str, ...]
    program: GuestProgram | None


def locate(child: subprocess.Popen[bytes], memory: GuestMemory, share: float) -> str:
    """Describe where the guest spins, as a clause; "" if this machine does not permit it. `share`: the kernel's share
    of the CPU time."""
    try:
        samples = [_sample(child, memory) for _ in range(SAMPLES)]
        return describe(samples, memory, share) + (_instruction(child, samples) if share < IDLE_SHARE else "")
    except OSError:
        program = memory.program()
        return "" if program is None else f"the running program is {program}"


def describe(samples: list[Sample], memory: GuestMemory, share: float) -> str:
    """Describe the samples."""
    programs = [sample.program for sample in samples if sample.program is not None]
    if share > BUSY_SHARE or not programs:
        return _kernel(samples, memory)
    name = Counter(map(str, programs)).most_common(1)[0][0]
    if share < IDLE_SHARE:
        return f"{name}, computes or polls memory and never calls the kernel"
    numbers = Counter(program.syscall for program in programs if str(program) == name and program.syscall is not None)
    calls = ", ".join(memory.syscall_name(number) for number, _ in numbers.most_common(NAMED))
    return f"{name}, calls {calls or 'the kernel'} repeatedly and never sleeps"


def _kernel(samples: list[Sample], memory: GuestMemory) -> str:
    chains = Counter(sample.chain[: NAMED + 1] for sample in samples)
    chain, count = chains.most_common(1)[0]
    program = next((sample.program for sample in samples if sample.program is not None), None)
    on_behalf = f", for {program}" if program else ""
    if program and program.syscall is not None:
        on_behalf += f", in {memory.syscall_name(program.syscall)}"
    return f"the guest's kernel is in {' < '.join(chain)} ({count} of {len(samples)} samples){on_behalf}"


@contextmanager
def _stopped_kernel(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stop the kernel during the block. A pending signal (its programs cause one at each stop) is passed on. Raises
    OSError; ProcessLookupError if it ended."""
    _ptrace(_SEIZE, child.pid)
    _ptrace(_INTERRUPT, child.pid)
    status = _wait_for_stop(child)
    try:
        yield
    finally:
        pending = None if status >> 16 else os.WSTOPSIG(status)
        with contextlib.suppress(OSError):
            _ptrace(_DETACH, child.pid, pending)


def _wait_for_stop(child: subprocess.Popen[bytes]) -> int:
    """Wait until the kernel has stopped; return its wait status."""
    for _ in range(PATIENCE):
        pid, status = os.waitpid(child.pid, _WALL | os.WNOHANG)
        if not pid:
            time.sleep(APART_S)
        elif os.WIFSTOPPED(status):
            return status
        else:
            child.returncode = os.waitstatus_to_exitcode(status)
            raise ProcessLookupError
    raise TimeoutError


def _ptrace(request: int, pid: int, data: object = None) -> None:
    _LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    _LIBC.ptrace.restype = ctypes.c_long
    if _LIBC.ptrace(request, pid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _sample(child: subprocess.Popen[bytes], memory: GuestMemory) -> Sample:
    """Take a sample. Raises OSError."""
    time.sleep(APART_S)
    with _stopped_kernel(child):
        registers = (ctypes.c_ulong * _REGISTERS)()
        _ptrace(_GETREGS, child.pid, ctypes.addressof(registers))
        return Sample(_chain(memory, registers[_IP], registers[_SP]), memory.program())


def _chain(memory: GuestMemory, ip: int, sp: int) -> tuple[str, ...]:
    """Return the function at `ip` and its callers: return addresses on the stack that follow a call of that function. A
    call through a pointer ends the chain, as its target is not visible."""
    function = memory.symbols.function(ip)
    chain = [function or f"{ip:#x}"]
    try:
        stack = struct.iter_unpack("<Q", memory.read(sp, _STACK))
    except OSError:
        return tuple(chain)
    for (word,) in stack:
        caller = memory.symbols.function(word)
        if caller is None or len(chain) > 2 * NAMED:
            continue
        with contextlib.suppress(OSError, struct.error):
            opcode, distance = struct.unpack("<Bi", memory.read(word - 5, 5))
            if opcode == _CALL and memory.symbols.function(word + distance) == chain[-1]:
                chain.append(caller)
    return tuple(chain)


def _instruction(child: subprocess.Popen[bytes], samples: list[Sample]) -> str:
    """Describe the position of a program that does not call the kernel, as the end of a clause: its instruction
    pointer.

    The kernel, which would receive the signal's stop, is stopped. Raises OSError."""
    program = next((sample.program for sample in reversed(samples) if sample.program is not None), None)
    if program is None or not program.host:
        return ""
    with _stopped_kernel(child):
        signal_program(child.pid, program.host, signal.SIGSTOP)
        for _ in range(PATIENCE):
            time.sleep(APART_S)
            fields = Path(f"/proc/{program.host}/syscall").read_text().split()
            if len(fields) >= 2 and fields[0] != "running":
                return f", at instruction {fields[-1]}"
    return ""
