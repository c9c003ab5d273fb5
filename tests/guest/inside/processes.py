# SPDX-License-Identifier: Apache-2.0
"""Attempts through programs that the kernel would start, and on processes of the agent (attempts.py)."""

import contextlib
import ctypes
import errno
import os
import re
import signal
import struct
import time
from pathlib import Path
from typing import Any

from attempts import LIBC, NEWNS, NEWUSER, attempt, call, folder, mount, unshare


@attempt
def helper_paths() -> str | None:
    for name in ("core_pattern", "modprobe", "hotplug", "poweroff_cmd", "request-key", "usermodehelper/bset"):
        try:
            Path(f"/proc/sys/kernel/{name}").write_text("/tmp/agent")
        except OSError:
            continue
        return f"{name} was written"
    for path in ("/sys/kernel/uevent_helper", "/sys/kernel/mm/x", "/proc/sys/fs/binfmt_misc/register"):
        try:
            os.close(os.open(path, os.O_WRONLY))
        except OSError:
            continue
        return f"{path} can be written"
    return None


@attempt
def modules_by_alias() -> str | None:
    """For an unknown protocol, or an unknown format of a program, the kernel loads a module."""
    marker = Path("/tmp/agent-ran")
    for family in (21, 30, 39, 44):
        LIBC.socket(family, 2, 0)
    odd = Path(folder("odd")) / "program"
    odd.write_bytes(b"\xff\xfe\xfd\xfc" * 64)
    odd.chmod(0o755)
    if os.fork() == 0:
        try:
            os.execv(odd, ["odd"])
        except OSError:
            os._exit(0)
    os.wait()
    return "a helper ran" if marker.exists() else None


@attempt
def an_orderly_end_of_the_machine() -> str | None:
    Path("/proc/sys/kernel/ctrl-alt-del").write_text("0")
    os.kill(1, signal.SIGINT)
    call(169, 0xFEE1DEAD, 672274793, 0x1234567, 0)
    return "the guest restarts"


@attempt
def memory_of_the_first_process() -> str | None:
    for name in ("mem", "environ", "auxv", "syscall", "stack", "pagemap", "maps", "personality"):
        try:
            if Path(f"/proc/1/{name}").read_bytes():
                return f"{name} was read"
        except (OSError, OverflowError):
            continue
    return None


@attempt
def a_pidfd_of_the_first_process() -> str | None:
    process = call(434, 1, 0)
    return f"its descriptor is {call(438, process, 0, 0)}"


@attempt
def tracing_the_first_process() -> str | None:
    for request in (16, 0x4206):
        try:
            call(101, request, 1, 0, 0)
        except OSError:
            continue
        return "traced"
    return None


@attempt
def the_first_process_is_stopped() -> str | None:
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
        os.kill(1, number)
    time.sleep(0.001)
    return None if Path("/proc/1/stat").read_text().split()[2] in "SR" else "it is stopped"


@attempt
def capabilities_in_a_user_namespace() -> str | None:
    """All capabilities in a new user namespace give none outside."""
    unshare(NEWUSER)
    call(164, struct.pack("qq", 1900000000, 0), None)
    return "the clock is set"


@attempt
def a_map_of_the_host_root() -> str | None:
    """As in CVE-2018-18955: a map names users that the writer does not have."""
    child = os.fork()
    if child == 0:
        unshare(NEWUSER)
        signal.pause()
    time.sleep(0.001)
    try:
        Path(f"/proc/{child}/uid_map").write_text("0 0 4294967295\n")
    finally:
        os.kill(child, signal.SIGKILL)
        os.wait()
    status = Path("/proc/self/status").read_text()
    return None if "CapEff:\t0000000000000000" not in status else "a user wrote a whole map"


@attempt
def memory_of_the_first_process_by_calls() -> str | None:
    """process_vm_readv, process_vm_writev and process_madvise. The address need not exist: rights come first."""
    buffer = ctypes.create_string_buffer(4096)
    vector, remote = struct.pack("QQ", ctypes.addressof(buffer), 4096), struct.pack("QQ", 0x400000, 4096)
    for number, arguments in (
        (310, (1, vector, 1, remote, 1, 0)),
        (311, (1, vector, 1, remote, 1, 0)),
        (440, (call(434, 1, 0), remote, 1, 20, 0)),
    ):
        if allowed(number, *arguments):
            return f"call {number} reaches it"
    return None


@attempt
def capabilities_of_a_file_by_an_overlay() -> str | None:
    """As in CVE-2021-3493: an overlay of a user namespace gives a file capabilities outside of it."""
    if os.getuid() == 0:
        return None  # root of a node may give them
    top = folder("overlay")
    for name in ("lower", "upper", "work", "merged"):
        os.makedirs(f"{top}/{name}", exist_ok=True)
    if (child := os.fork()) == 0:
        user = os.getuid()
        unshare(NEWUSER | NEWNS)
        Path("/proc/self/uid_map").write_text(f"0 {user} 1\n")
        layers = f"lowerdir={top}/lower,upperdir={top}/upper,workdir={top}/work,userxattr"
        mount("overlay", f"{top}/merged", "overlay", 0, layers)
        Path(f"{top}/merged/program").write_bytes(b"#!/bin/sh\n")
        os.setxattr(f"{top}/merged/program", "security.capability", struct.pack("<5I", 0x02000001, *[2**32 - 1] * 4))
        os._exit(0)
    os.waitpid(child, 0)
    value = os.getxattr(f"{top}/upper/program", "security.capability")
    return f"its capabilities are {value.hex()}" if len(value) == 20 else None


@attempt
def paths_of_the_host() -> str | None:
    """The command lines, mounts and messages of the guest name no folder of the host."""
    texts = []
    for path in ("/proc/cmdline", "/proc/1/cmdline", "/proc/self/mountinfo", "/proc/1/mountinfo", "/proc/bootconfig"):
        try:
            texts.append(Path(path).read_text())
        except OSError:
            continue
    buffer = ctypes.create_string_buffer(1 << 16)
    with contextlib.suppress(OSError):
        texts.append(buffer.raw[: call(103, 3, buffer, len(buffer))].decode("latin1"))
    folders = [match for text in texts for match in re.findall(r"/(?:home|root|mnt|media|var|tmp|work)/[^ ,]+", text)]
    foreign = [path for path in folders if not Path(path).exists()]
    return f"the guest names {foreign}" if foreign else None


@attempt
def calls_of_the_machine_s_root() -> str | None:
    """Each call has arguments that a kernel accepts, so only a lack of rights, or of the call, refuses it."""
    zeros, seconds = (ctypes.create_string_buffer(512) for _ in range(2))
    struct.pack_into("qq", seconds, 0, 1_900_000_000, 0)
    step = ctypes.create_string_buffer(struct.pack("I", 0x100).ljust(208, b"\0"))  # ADJ_SETOFFSET by 0
    calls: dict[str, tuple[Any, ...]] = {
        "settimeofday": (164, seconds, None),
        "clock_settime": (227, 0, seconds),
        "clock_adjtime": (305, 0, step),
        "adjtimex": (159, step),
        "acct": (163, None),
        "swapon": (167, b"/tmp/swap", 0),
        "swapoff": (168, b"/tmp/swap"),
        "ioperm": (173, 0x80, 1, 1),
        "init_module": (175, zeros, 512, b""),
        "finit_module": (313, 0, b"", 0),
        "create_module": (174, b"none", 4096),
        "delete_module": (176, b"none", 0),
        "kexec_load": (246, 0, 0, zeros, 0x3E0000),
        "lookup_dcookie": (212, 0, zeros, 512),
        "kcmp": (312, os.getpid(), 1, 1, 0, 0),
        "userfaultfd": (323, 0),
        "io_uring_setup": (425, 1, zeros),
        "perf_event_open": (298, struct.pack("IIQ", 1, 128, 0).ljust(128, b"\0"), -1, 0, -1, 0),
        "keyctl": (250, 0, -4, 1),
        "reboot": (169, 0xFEE1DEAD, 672274793, 0, 0, 0),  # no restart by the keyboard
        "ustat of x32": (0x40000088, 0, zeros),
        "of no name": (600,),
    }
    return ", ".join(name for name, (number, *arguments) in calls.items() if allowed(number, *arguments)) or None


def allowed(number: int, *arguments: object) -> bool:
    """Return whether the kernel has a system call and permits it, even if it then fails for another reason."""
    try:
        call(number, *arguments)
    except OSError as error:
        return error.errno not in {errno.EPERM, errno.EACCES, errno.ENOSYS}
    return True
