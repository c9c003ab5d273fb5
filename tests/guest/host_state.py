# SPDX-License-Identifier: Apache-2.0
"""The host before and after a run: its files, processes, settings and clock."""

import ctypes
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clocks import until

_SUBREAPER = 36
_STEADY = {
    **dict.fromkeys(("/", "/boot", "/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/dev", "/mnt", "/opt"), 0),
    "/etc": 2, "/var/spool": 2, str(Path.home() / ".ssh"): 1,
}  # fmt: skip
"""Folders in which no other test changes an entry, and the compared levels below each."""
_SETTINGS = (
    "kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname", "kernel/sysrq",
    "kernel/panic_on_oops", "kernel/randomize_va_space", "vm/panic_on_oom", "vm/overcommit_memory", "fs/suid_dumpable",
)  # fmt: skip
_STEP_S = 2.0
"""Seconds by which a time service may move the clock during a run."""


def _files(top: Path, depth: int, except_for: set[str]) -> dict[str, tuple[int, ...]]:
    """Return mode, owner, and of regular files and links size and time of last change, of each entry below a folder."""
    facts = {}
    for entry in sorted(top.iterdir()) if top.is_dir() else ():
        if entry.name in except_for:
            continue
        status = entry.lstat()
        lasting = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
        change = (status.st_size, status.st_mtime_ns) if lasting else ()
        facts[str(entry)] = (status.st_mode, status.st_uid, status.st_gid, *change)
        if depth and entry.is_dir() and not entry.is_symlink():
            facts |= _files(entry, depth - 1, set())
    return facts


def _state(folder: Path, except_for: set[str]) -> dict[str, object]:
    state: dict[str, object] = {str(folder): _files(folder, 8, except_for)}
    for name, depth in _STEADY.items():
        state[name] = _files(Path(name), depth, set())
    for name in _SETTINGS:
        path = Path("/proc/sys", name)
        state[name] = path.read_text() if path.exists() else None
    state["mounts"] = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    state["interfaces"] = {name for _, name in socket.if_nameindex()}
    state["passwd"] = Path("/etc/passwd").read_bytes()
    return state


def _children() -> set[int]:
    """Return the processes whose parent this process is."""
    parent, children = os.getpid(), set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(facts[1]) == parent and facts[0] != "Z":
            children.add(int(path.parent.name))
    return children


@contextmanager
def unchanged(folder: Path, except_for: set[str]) -> Iterator[None]:
    """Assert that the block does not change the host. `folder`: a folder that is compared completely, apart from
    `except_for`. A process that remains becomes a child of this one and is detected."""
    libc = ctypes.CDLL(None)
    before, children = _state(folder, except_for), _children()
    ahead = time.time() - time.monotonic()
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
        until(lambda: _children() <= children, "a process remains")
    finally:
        libc.prctl(_SUBREAPER, 0, 0, 0, 0)
    assert abs(time.time() - time.monotonic() - ahead) < _STEP_S
    after = _state(folder, except_for)
    changed = changes(before, after)
    assert not changed, ", ".join(changed)


def changes(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Return the names of what differs, of a folder those of its entries."""
    names: list[str] = []
    for name, facts in before.items():
        now = after[name]
        if isinstance(facts, dict) and isinstance(now, dict):
            names += sorted(str(entry) for entry in facts.keys() | now.keys() if facts.get(entry) != now.get(entry))
        elif now != facts:
            names.append(name)
    return names


def alive(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
