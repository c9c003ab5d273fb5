# SPDX-License-Identifier: Apache-2.0
"""The filter of the processes that carry out a guest's programs, alone: without guest, Landlock and other filters."""

import signal
import subprocess
from pathlib import Path

import pytest

from hourglass import resources
from tests.clocks import HANG_S

NEWUSER, SIGCHLD, TRACEME, ATTACH, SEIZE, STOP = 0x10000000, 17, 0, 16, 0x4206, 19

ALLOWED = {
    "mmap": (9, 0, 4096, 0), "getpid": (39,), "getppid": (110,), "signal at its parent's death": (157, 1, 9),
    "clone": (56, SIGCHLD), "traceme": (101, TRACEME),
    "stop of nobody": (62, 0x7FFFFFF0, STOP),
}  # fmt: skip
KILLED = {
    "read": (0, 0), "open": (2,), "mkdir": (83,), "execve": (59,), "fork": (57,), "vfork": (58,), "socket": (41, 1, 1),
    "connect": (42,), "kill": (62, 0, 9), "signal of nobody": (62, 0x7FFFFFF0, 0), "tgkill": (234,),
    "clone with a user namespace": (56, NEWUSER | SIGCHLD), "clone with mounts": (56, 0x20000 | SIGCHLD),
    "clone3": (435,), "attach": (101, ATTACH, 1), "seize": (101, SEIZE, 1), "unshare": (272, NEWUSER), "mount": (165,),
    "ioctl": (16,), "prctl": (157,), "prctl of a name": (157, 15),
    "seccomp": (317,), "process_vm_readv": (310,), "io_uring_setup": (425,),
    "pidfd_getfd": (438,), "memfd_create": (319,), "time": (201,), "gettimeofday": (96,), "getcpu": (309,),
    "getpid of x32": (0x40000027,), "no call": (600,),
}  # fmt: skip


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("filter") / "filtered"
    source = Path(__file__).with_name("program_filter.c")
    headers = resources.KERNEL / "hooks"
    subprocess.run(["gcc", "-static", "-O1", f"-I{headers}", "-o", program, source], check=True)
    return program


def status(filtered: Path, *arguments: int) -> int:
    """Return the exit status of a call under the filter."""
    return subprocess.run([filtered, *map(str, arguments)], check=False, timeout=HANG_S).returncode


@pytest.mark.parametrize("name", ALLOWED)
def test_calls_of_user_mode_linux_are_allowed(filtered: Path, name: str) -> None:
    assert status(filtered, *ALLOWED[name]) in {0, 1}


@pytest.mark.parametrize("name", KILLED)
def test_other_calls_kill(filtered: Path, name: str) -> None:
    assert status(filtered, *KILLED[name]) == -signal.SIGSYS


def test_a_call_by_the_vsyscall_page_is_a_signal(filtered: Path) -> None:
    """The guest's kernel gets the signal and executes the call. Here no handler exists, and the signal kills."""
    assert status(filtered, -1) in {-signal.SIGSYS, -signal.SIGSEGV}
