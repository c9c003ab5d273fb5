# SPDX-License-Identifier: Apache-2.0
"""Read a guest's memory from outside: its clock, and the program on its CPU. The guest does not notice.

The guest's kernel is a process of this user. Its variables are read from /proc/PID/mem at the addresses of its symbol
table; `kernel/drivers/lib/watch.c` exports the offsets of fields. Unreadable values are None: a machine may forbid
it."""

import contextlib
import os
import signal
import struct
from dataclasses import dataclass
from pathlib import Path

from hourglass.engine.symbols import Symbols, symbols

FIELDS = (
    "current", "comm", "tgid", "ip", "syscall", "mm", "context", "arg_start", "arg_end", "nsproxy", "uts_ns",
    "nodename",
)  # fmt: skip
"""The offsets in `hourglass_watch`, in its order."""

_COMM, _NODENAME, _ARGUMENTS = 16, 65, 200
_NOT_NAMED = ("", "(none)", "hourglass")


@dataclass(frozen=True)
class GuestProgram:
    """A process of the guest. `host`: the host process that executes it. `syscall`: the number of its last system call,
    if it last stopped for one. `ip`: its instruction pointer then."""

    name: str
    pid: int
    node: str
    arguments: str
    host: int
    ip: int
    syscall: int | None

    def __str__(self) -> str:
        node = f" on {self.node}" if self.node else ""
        arguments = f" ({self.arguments})" if self.arguments and self.arguments != self.name else ""
        return f"{self.name}{arguments}, pid {self.pid}{node}"


class GuestMemory:
    """The memory of a guest: process `pid`, running the kernel's program file `linux`."""

    def __init__(self, linux: Path, pid: int) -> None:
        self.pid = pid
        try:
            self.symbols = symbols(linux)
        except OSError:
            self.symbols = Symbols({}, [], [])
        self._offsets: dict[str, int] | None = None

    def virtual_ns(self) -> int | None:
        """Return the guest's clock."""
        address = self.symbols.addresses.get("time_travel_time")
        return None if address is None else self._number(address)

    def program(self) -> GuestProgram | None:
        """Return the program on the guest's CPU; None for the kernel's threads too."""
        with contextlib.suppress(OSError, OverflowError, struct.error, KeyError):
            return self._program()
        return None

    def syscall_name(self, number: int) -> str:
        """Return the name of a system call."""
        table = self.symbols.addresses.get("sys_call_table")
        pointer = None if table is None else self._number(table + 8 * number)
        name = None if pointer is None else self.symbols.function(pointer)
        for prefix in ("__x64_sys_", "__se_sys_", "__do_sys_", "sys_"):
            if name is not None and name.startswith(prefix):
                return name[len(prefix) :]
        return name or f"system call {number}"

    def read(self, address: int, size: int, pid: int | None = None) -> bytes:
        """Return bytes of the kernel's memory, or of another process's. Raises OSError."""
        memory = os.open(f"/proc/{pid or self.pid}/mem", os.O_RDONLY)
        try:
            return os.pread(memory, size, address)
        finally:
            os.close(memory)

    def _number(self, address: int) -> int | None:
        try:
            return int(struct.unpack("<Q", self.read(address, 8))[0])
        except (OSError, OverflowError, struct.error):
            return None

    def _at(self, address: int, field: str) -> int:
        """Return the 64-bit number in a field of the structure at an address."""
        return int(struct.unpack("<Q", self.read(address + self._offset(field), 8))[0])

    def _offset(self, field: str) -> int:
        if self._offsets is None:
            table = self.read(self.symbols.addresses["hourglass_watch"], 4 * len(FIELDS))
            self._offsets = dict(zip(FIELDS, struct.unpack(f"<{len(FIELDS)}I", table), strict=True))
        return self._offsets[field]

    def _text(self, address: int, field: str, size: int) -> str:
        return _until_nul(self.read(address + self._offset(field), size))

    def _program(self) -> GuestProgram | None:
        task = self._at(self.symbols.addresses["cpu_tasks"], "current")
        mm = self._at(task, "mm")
        if not mm:
            return None
        host = member(self.pid, self._at(mm, "context") & 0xFFFFFFFF)
        syscall = self._at(task, "syscall")
        node = ""
        if proxy := self._at(task, "nsproxy"):
            node = self._text(self._at(proxy, "uts_ns"), "nodename", _NODENAME)
        return GuestProgram(
            name=self._text(task, "comm", _COMM),
            pid=self._at(task, "tgid") & 0xFFFFFFFF,
            node="" if node in _NOT_NAMED else node,
            arguments=self._arguments(mm, host) if host else "",
            host=host,
            ip=self._at(task, "ip"),
            syscall=syscall if syscall < 1024 else None,
        )

    def _arguments(self, mm: int, host: int) -> str:
        """Return the command line, if the host permits reading its memory."""
        with contextlib.suppress(OSError):
            begin, end = self._at(mm, "arg_start"), self._at(mm, "arg_end")
            arguments = self.read(begin, min(end - begin, _ARGUMENTS), host).rstrip(b"\0").split(b"\0")
            return b" ".join(arguments).decode("utf-8", "replace")
        return ""


def member(guest: int, pid: int) -> int:
    """Return a process of a guest, or 0 for any other: the guest's memory may name one of the user's."""
    with contextlib.suppress(OSError, OverflowError):
        if pid and os.getsid(pid) == guest:
            return pid
    return 0


def signal_program(guest: int, pid: int, number: signal.Signals) -> None:
    """Send a signal to a process of a guest. A process that got the number of one that ended gets none. Raises
    OSError."""
    descriptor = os.pidfd_open(pid)
    try:
        if not member(guest, pid):
            raise ProcessLookupError
        signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _until_nul(text: bytes) -> str:
    return text.partition(b"\0")[0].decode("utf-8", "replace")
