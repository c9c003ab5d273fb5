# SPDX-License-Identifier: Apache-2.0
"""The processes that a test starts: those that are left, the kernel of a guest, and what SIGTERM makes a command do."""

import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clocks import until

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
