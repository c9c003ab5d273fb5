# SPDX-License-Identifier: Apache-2.0
"""The processes that a test starts: those that are left, the kernel of a guest, and what SIGTERM makes a command do."""

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hourglass.host import syscall_filter
from tests.clocks import HANG_S, until

HOURGLASS = Path(sys.executable).with_name("hourglass")

MESSAGES = "messages"
"""The named pipe of `after_sigterm`."""


def processes_below(folder: Path) -> list[int]:
    """Return the processes in folders below this one, without zombies. All of a guest's processes are in one."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(f"{folder}/"):
                pids.append(int(process.name))
    return sorted(pids)


def guest_below(folder: Path) -> int:
    """Wait for the kernel of a guest, and return its process. It leads its session."""

    def leader() -> int:
        with contextlib.suppress(ProcessLookupError):  # a process ended meanwhile
            return next((pid for pid in processes_below(folder) if os.getsid(pid) == pid), 0)
        return 0

    return until(leader)


def after_sigterm(command: Sequence[str], folder: Path, **options: Any) -> tuple[str, "subprocess.Popen[bytes]"]:
    """Start a command, one of whose processes writes `begins` to the named pipe `MESSAGES` in a folder. Then send
    SIGTERM to the command. Return what its processes write until none of them has the pipe, and the command.
    `options`: for `subprocess.Popen`."""
    os.mkfifo(folder / MESSAGES)
    child = subprocess.Popen(command, **options)
    with (folder / MESSAGES).open() as messages:
        assert messages.readline() == "begins\n"
        child.terminate()
        return messages.read(), child


def drawing_processes(folder: Path) -> list[int]:
    """Return the processes in a folder that wait for a run to draw it."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"cli.pictures" in (process / "cmdline").read_bytes() and (process / "cwd").readlink() == folder:
                pids.append(int(process.name))
    return pids


def all_end(folder: Path) -> None:
    """Wait until no process is left there."""
    until(lambda: not processes_below(folder) and not drawing_processes(folder), "a process remains")


def run_hourglass(
    folder: Path, *arguments: str, before: Sequence[str] = (), prepare: Callable[[], None] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Return the result of a command in a folder. No process may remain there."""
    result = subprocess.run(
        [*before, str(HOURGLASS), *arguments],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        preexec_fn=prepare,
    )
    assert "Traceback" not in result.stdout + result.stderr
    all_end(folder)
    return result


def refuse_calls(errors: Mapping[int, int]) -> None:
    """Install a filter in this process that refuses system calls: seccomp(2). `errors`: errno by number on x86-64."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    steps = [(load, 0, 0, 0)]
    for number, error in errors.items():
        steps += [(jump_if_equal, 0, 1, number), (give, 0, 0, syscall_filter.ERRNO | error)]
    steps += [(give, 0, 0, syscall_filter.ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    described = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, described, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
