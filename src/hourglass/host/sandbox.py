# SPDX-License-Identifier: Apache-2.0
"""Confine processes on the host: the guest, and the compiler of a custom C file.

Each of the two layers is sufficient against a program that escapes the guest's kernel:

* Landlock (landlock(7), Linux 5.13 or newer): only the listed files, no TCP, no signals to processes outside.
* seccomp (seccomp(2)): only the system calls of User Mode Linux. Any other call kills the guest.

Neither needs a privilege. Both apply to all children and end with the process."""

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hourglass.errors import MissingError
from hourglass.host import hardware, syscall_filter

LANDLOCK, SECCOMP = "landlock", "seccomp"
ENABLED = {LANDLOCK, SECCOMP}
"""The layers in use if the host has them. Tests disable one to test the other."""
REQUIRED = "HOURGLASS_REQUIRE_SANDBOX"
"""An environment variable: if set, a run without both layers is refused."""
REMEDY = "a host with Linux 5.13 or newer, with landlock in /sys/kernel/security/lsm and with seccomp"

_LIBC = ctypes.CDLL(None, use_errno=True)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP = 317
_SET_MODE_FILTER, _GET_ACTION_AVAIL, _SPEC_ALLOW = 1, 2, 4
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER = 1 << 6, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""File rights by the version of Landlock's interface that added them."""
_NO_DEVICES = ~(MAKE_CHAR | MAKE_SOCK | MAKE_BLOCK)
"""All rights but those to create device nodes and sockets, which are never granted."""
READ, RUN, DEVICE = READ_FILE | READ_DIR, READ_FILE | READ_DIR | EXECUTE, READ_FILE | WRITE_FILE | IOCTL_DEV
WRITE = ((1 << 15) - 1) & _NO_DEVICES & ~EXECUTE
WRITE_PLAIN = WRITE & ~(MAKE_FIFO | MAKE_SYM | REFER)
"""`WRITE` without the rights to make FIFOs and symbolic links, and to move or link a file to another folder."""

_TCP = 3
_SCOPES = 3
"""No abstract UNIX sockets and no signals across the border."""

Rules = Sequence[tuple[Path, int]]
"""Paths, each with the rights for it and all below it. A path that does not exist is left out."""

Confine = Callable[[], None]
"""Confines the calling process. Raises OSError."""


@dataclass(frozen=True)
class Layers:
    """The layers that this host has and that are enabled. `landlock`: the version of its interface; 0: none."""

    landlock: int
    seccomp: bool

    @property
    def names(self) -> list[str]:
        """The names for run.json and `doctor`, like "landlock 7"."""
        return [f"{LANDLOCK} {self.landlock}"] * bool(self.landlock) + [SECCOMP] * self.seccomp

    @property
    def complete(self) -> bool:
        """Return whether both layers are active."""
        return bool(self.landlock) and self.seccomp


def layers() -> Layers:
    """Return the layers of this host."""
    possible = LANDLOCK in ENABLED and sys.platform == "linux"
    landlock = _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION) if possible else 0
    return Layers(max(landlock, 0), SECCOMP in ENABLED and hardware.runs_guests() and _has_filters())


def is_required() -> bool:
    """Return whether the user requires a sandbox."""
    return bool(os.environ.get(REQUIRED))


def check(active: Layers, required: bool = False) -> None:
    """Raise MissingError if a sandbox is `required`, or the user of this process requires it, and this host lacks
    it."""
    if (required or is_required()) and not active.complete:
        present = " and ".join(active.names) or "no layer of it"
        raise MissingError(f"a sandbox is required, and this host has {present}", REMEDY)


@contextmanager
def confinement(rules: Rules, filtered: bool, limits: Sequence[tuple[int, int]] = ()) -> Iterator[Confine]:
    """Prepare a confinement to the files of `rules`; `filtered`: with the filter of User Mode Linux's system calls;
    `limits`: numbers of `resource` and values, which a lower limit of the host replaces.

    The yielded function confines the process that calls it, between fork and exec. Raises MissingError.
    """
    active = layers()
    check(active)
    ruleset = _ruleset(rules, active.landlock) if active.landlock else None
    program = _program() if filtered and active.seccomp else None

    def confine() -> None:
        for number, limit in limits:
            hard = resource.getrlimit(number)[1]
            resource.setrlimit(number, (limit if hard == resource.RLIM_INFINITY else min(limit, hard),) * 2)
        if sys.platform == "linux":
            _require(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        if ruleset is not None:
            # the interpreter closes inherited descriptors by this list before it starts the program
            _allow(ruleset, Path("/proc/self/fd"), READ_DIR)
            _require(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0))
        if program is not None:
            _require(_LIBC.syscall(_SECCOMP, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(program)))

    try:
        yield confine
    finally:
        if ruleset is not None:
            os.close(ruleset)


def _has_filters() -> bool:
    action = ctypes.c_uint32(syscall_filter.KILL_PROCESS)
    return bool(_LIBC.syscall(_SECCOMP, _GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0)


def _require(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def handled(version: int) -> int:
    """Return the file rights that a version of Landlock's interface controls."""
    return next(rights for first, rights in sorted(_HANDLED.items(), reverse=True) if first <= version)


def _ruleset(rules: Rules, version: int) -> int:
    """Return the descriptor of a ruleset; everything that no rule allows is refused."""
    attributes = struct.pack("QQQ", handled(version), _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _require(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    os.set_inheritable(ruleset, False)
    for path, rights in rules:
        _allow(ruleset, path, rights & handled(version))
    return ruleset


def _allow(ruleset: int, path: Path, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if path.is_dir() else rights & _OF_FILES
            rule = struct.pack("=Qi", allowed, descriptor)
            _require(_LIBC.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        finally:
            os.close(descriptor)


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _program() -> _Program:
    steps = syscall_filter.program()
    return _Program(len(steps) // 8, steps)
