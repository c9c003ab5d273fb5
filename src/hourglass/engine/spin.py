# SPDX-License-Identifier: Apache-2.0
"""Where a guest spins: a few samples of its kernel and of the program that has its CPU. For one that will be ended.

User Mode Linux is a process that traces others: it waits in wait4() while a program's own code runs, and carries out
the program's system calls in between. So a kernel that has used all the CPU time is at fault itself; one that has used
none has a program that does not call it; and else a program calls it again and again.

The kernel is stopped by ptrace, as a debugger does, and runs on after each sample. A program is traced already: where
it is without calling the kernel is known once it has got a signal while its tracer is held still.
"""

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

from hourglass.engine.inside import Inside, Program

SAMPLES = 20
APART_S = 0.02
NAMED = 3
"""As many functions, callers or system calls are told."""

IDLE_SHARE, BUSY_SHARE = 0.02, 0.98
"""Of the CPU time, in a kernel that is not called, and in one that never returns."""

PATIENCE = 500
"""As many times we look whether a process has stopped: 10 s, for machines that have much to do."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_SEIZE, _INTERRUPT, _GETREGS, _DETACH = 0x4206, 0x4207, 12, 17
_WALL = 0x40000000
_REGISTERS = 27
_IP, _SP = 16, 19
"""Places in the host's `struct user_regs_struct`."""

_STACK = 2048
_CALL = 0xE8


@dataclass(frozen=True)
class Sample:
    """`chain`: the kernel's function that runs and its callers, as far as is known."""

    chain: tuple[str, ...]
    program: Program | None


def where(child: subprocess.Popen[bytes], inside: Inside, share: float) -> str:
    """What the guest is at, as half a sentence; "" if this machine does not let it be seen. `share`: the kernel's own,
    of the CPU time that was used for nothing."""
    try:
        samples = [_sample(child, inside) for _ in range(SAMPLES)]
        return told(samples, inside, share) + (_own_place(child, samples) if share < IDLE_SHARE else "")
    except OSError:
        program = inside.program()
        return "" if program is None else f"the program at work is {program}"


def told(samples: list[Sample], inside: Inside, share: float) -> str:
    """The samples in words."""
    programs = [sample.program for sample in samples if sample.program is not None]
    if share > BUSY_SHARE or not programs:
        return _kernel(samples, inside)
    name = Counter(map(str, programs)).most_common(1)[0][0]
    if share < IDLE_SHARE:
        return f"{name}, computes or polls memory and never calls the kernel"
    numbers = Counter(one.syscall for one in programs if str(one) == name and one.syscall is not None)
    again = ", ".join(inside.called(number) for number, _ in numbers.most_common(NAMED))
    return f"{name}, calls {again or 'the kernel'} again and again and never sleeps"


def _kernel(samples: list[Sample], inside: Inside) -> str:
    chains = Counter(sample.chain[: NAMED + 1] for sample in samples)
    chain, count = chains.most_common(1)[0]
    program = next((sample.program for sample in samples if sample.program is not None), None)
    on_behalf = f", for {program}" if program else ""
    if program and program.syscall is not None:
        on_behalf += f", in {inside.called(program.syscall)}"
    return f"the guest's kernel is in {' < '.join(chain)} ({count} of {len(samples)} samples){on_behalf}"


@contextmanager
def _held(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """The kernel stands still for a moment. A signal that is just coming to it (one comes whenever a program of its own
    stops) is passed on. Raises OSError; ProcessLookupError when it ended instead."""
    _ptrace(_SEIZE, child.pid)
    _ptrace(_INTERRUPT, child.pid)
    status = _stopped(child)
    try:
        yield
    finally:
        coming = None if status >> 16 else os.WSTOPSIG(status)
        with contextlib.suppress(OSError):
            _ptrace(_DETACH, child.pid, coming)


def _stopped(child: subprocess.Popen[bytes]) -> int:
    """How the kernel has stopped, once it has."""
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


def _sample(child: subprocess.Popen[bytes], inside: Inside) -> Sample:
    """What is at work just now. Raises OSError."""
    time.sleep(APART_S)
    with _held(child):
        registers = (ctypes.c_ulong * _REGISTERS)()
        _ptrace(_GETREGS, child.pid, ctypes.addressof(registers))
        return Sample(_chain(inside, registers[_IP], registers[_SP]), inside.program())


def _chain(inside: Inside, ip: int, sp: int) -> tuple[str, ...]:
    """The function at `ip` and who called it: return addresses behind a call of just that function, up the stack. A
    call through a pointer ends it, as its target is not to be seen."""
    found = inside.symbols.function(ip)
    chain = [found or f"{ip:#x}"]
    try:
        stack = struct.iter_unpack("<Q", inside.read(sp, _STACK))
    except OSError:
        return tuple(chain)
    for (word,) in stack:
        caller = inside.symbols.function(word)
        if caller is None or len(chain) > 2 * NAMED:
            continue
        with contextlib.suppress(OSError, struct.error):
            opcode, distance = struct.unpack("<Bi", inside.read(word - 5, 5))
            if opcode == _CALL and inside.symbols.function(word + distance) == chain[-1]:
                chain.append(caller)
    return tuple(chain)


def _own_place(child: subprocess.Popen[bytes], samples: list[Sample]) -> str:
    """Where a program is that does not call the kernel, as the end of a sentence: its instruction pointer.

    The signal's stop is reported to the kernel, which is held still. Raises OSError.
    """
    program = next((sample.program for sample in reversed(samples) if sample.program is not None), None)
    if program is None or not program.host:
        return ""
    with _held(child):
        os.kill(program.host, signal.SIGSTOP)
        for _ in range(PATIENCE):
            time.sleep(APART_S)
            words = Path(f"/proc/{program.host}/syscall").read_text().split()
            if len(words) >= 2 and words[0] != "running":
                return f", at instruction {words[-1]}"
    return ""
