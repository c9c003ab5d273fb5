# SPDX-License-Identifier: Apache-2.0
"""The system calls of the guest's process, and the seccomp program that allows no others (seccomp(2), x86-64).

User Mode Linux makes these: for its memory, its clock, its traced processes, its console, and the files of the run
directory. There are none for networks, mounts, namespaces, keys, BPF or other users. The programs inside the guest
never reach this filter: their calls stop before it. `kernel/hooks/program-filter.toml` gives them a tighter one.

Landlock controls neither mode, owner and times of a file nor the limits of other processes. So the calls that change
them are refused here.
"""

import struct
from dataclasses import dataclass

KILL_PROCESS, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_ARCHITECTURE = 0xC000003E
"""AUDIT_ARCH_X86_64."""

MEMORY = {
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "msync": 26, "madvise": 28, "memfd_create": 319,
}  # fmt: skip
PROCESSES = {
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "getpid": 39,
    "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "wait4": 61, "kill": 62, "uname": 63, "getrlimit": 97,
    "getrusage": 98, "sysinfo": 99, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
    "getppid": 110, "getpgrp": 111, "getpgid": 121, "rt_sigpending": 127,
    "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "sigaltstack": 131, "personality": 135, "modify_ldt": 154,
    "prctl": 157, "arch_prctl": 158, "setrlimit": 160, "gettid": 186, "tkill": 200, "futex": 202,
    "sched_getaffinity": 204, "set_tid_address": 218, "exit_group": 231, "tgkill": 234, "waitid": 247,
    "set_robust_list": 273, "seccomp": 317, "execveat": 322, "rseq": 334, "close_range": 436,
}  # fmt: skip
CLOCKS = {
    "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "gettimeofday": 96, "times": 100,
    "time": 201, "timer_create": 222, "timer_settime": 223, "timer_gettime": 224, "timer_getoverrun": 225,
    "timer_delete": 226, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "getcpu": 309,
    "getrandom": 318,
}  # fmt: skip
DESCRIPTORS = {
    "read": 0, "write": 1, "close": 3, "poll": 7, "lseek": 8, "ioctl": 16, "pread64": 17, "pwrite64": 18, "readv": 19,
    "writev": 20, "pipe": 22, "select": 23, "dup": 32, "dup2": 33, "sendmsg": 46, "recvmsg": 47, "shutdown": 48,
    "socketpair": 53, "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75, "epoll_create": 213, "epoll_wait": 232,
    "epoll_ctl": 233, "pselect6": 270, "ppoll": 271, "epoll_pwait": 281, "signalfd4": 289, "eventfd2": 290,
    "epoll_create1": 291, "dup3": 292, "pipe2": 293, "preadv": 295, "pwritev": 296,
}  # fmt: skip
FILES = {
    "open": 2, "stat": 4, "fstat": 5, "lstat": 6, "access": 21, "ftruncate": 77, "getdents": 78,
    "getcwd": 79, "mkdir": 83, "rmdir": 84, "creat": 85, "unlink": 87, "readlink": 89, "umask": 95,
    "statfs": 137, "fstatfs": 138, "sync": 162, "getdents64": 217, "fadvise64": 221,
    "openat": 257, "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "readlinkat": 267, "faccessat": 269,
    "fallocate": 285, "syncfs": 306, "statx": 332, "faccessat2": 439,
}  # fmt: skip
ALLOWED = MEMORY | PROCESSES | CLOCKS | DESCRIPTORS | FILES
ABSENT = {"clone3": 435}
"""The C library tries these and does without: they fail with ENOSYS."""
DENIED = {
    "truncate": 76, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "utimes": 235,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280,
    "link": 86, "symlink": 88, "linkat": 265, "symlinkat": 266, "rename": 82, "renameat": 264, "renameat2": 316,
    "setpgid": 109, "setsid": 112,
}  # fmt: skip
"""They fail with EPERM. No step of a run needs them. Landlock would let the first ones change the user's files. A link
that is new or moved would lead the engine, which writes to the run directory after the guest, to a file outside. The
last two would let a process leave the group whose end is the end of the run."""


@dataclass(frozen=True)
class Checked:
    """A call that is allowed unless the lower half of an argument is one of `values` or has one of `bits`; `only`:
    allowed only where it is this value."""

    number: int
    argument: int
    values: tuple[int, ...] = ()
    bits: int = 0
    only: int | None = None


_CLONE_NEW, _ATTACH, _SEIZE = 0x7E020000, 16, 0x4206
CHECKED = {
    "ptrace": Checked(101, 0, values=(_ATTACH, _SEIZE)),
    "clone": Checked(56, 0, bits=_CLONE_NEW),
    "prlimit64": Checked(302, 0, only=0),
}
"""No new namespaces; no tracing of a process that does not ask for it; no limits of other processes."""

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
"""Offsets in struct seccomp_data."""

Step = tuple[int, int, int, int]


def program() -> bytes:
    """Return the filter, 8 bytes a step (struct sock_filter)."""
    steps = [(_LOAD, 0, 0, _MACHINE), (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURE), (_RETURN, 0, 0, KILL_PROCESS)]
    steps.append((_LOAD, 0, 0, _NUMBER))
    for check in CHECKED.values():
        steps += _checks(check)
    for number in ABSENT.values():
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, ERRNO | _ENOSYS)]
    for number in DENIED.values():
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, ERRNO | _EPERM)]
    numbers = sorted(ALLOWED.values())
    # each comparison jumps over those after it and the return before ALLOW
    steps += [(_JUMP_IF_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, KILL_PROCESS), (_RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _checks(check: Checked) -> list[Step]:
    """Return the steps for a call whose argument decides. They end it, or jump over themselves for another call."""
    tests = [(_JUMP_IF_EQUAL, 0, 1, value) for value in check.values]
    if check.bits:
        tests.append((_JUMP_IF_BITS, 0, 1, check.bits))
    if check.only is not None:
        tests.append((_JUMP_IF_EQUAL, 1, 0, check.only))
    steps: list[Step] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * check.argument)]
    for test in tests:
        steps += [test, (_RETURN, 0, 0, KILL_PROCESS)]
    steps.append((_RETURN, 0, 0, ALLOW))
    return [(_JUMP_IF_EQUAL, 0, len(steps), check.number), *steps]
