# SPDX-License-Identifier: Apache-2.0
"""Attempts to leave a node. This file runs inside the guest, in Python without packages.

Each attempt runs in a separate process. It returns evidence of a success, or it returns None or raises OSError.
`python3 attempts.py` prints a line of JSON for each: its name and the evidence, or "refused: " and the reason.
"""

import ctypes
import importlib
import json
import os
import struct
import sys
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

NEWNS, NEWCGROUP, NEWUSER, NEWPID, NEWNET = 0x20000, 0x2000000, 0x10000000, 0x20000000, 0x40000000
BIND, MOVE, RECURSIVE, PRIVATE, REMOUNT, DETACH = 4096, 8192, 16384, 1 << 18, 32, 2
MODULES = ("mounts", "namespaces", "processes", "devices", "machine_code")
AGENTS = ("out", "init", "room")
"""Entries of the agent's file system. No node has them."""

ATTEMPTS: dict[str, Callable[[], str | None]] = {}


def attempt(function: Callable[[], str | None]) -> Callable[[], str | None]:
    """Register a function as an attempt."""
    ATTEMPTS[function.__name__] = function
    return function


def call(number: int, *arguments: object) -> int:
    """Make a system call by its number. Raises OSError."""
    plain = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *plain)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    call(165, source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)


def unmount(target: str, flags: int = 0) -> None:
    call(166, target.encode(), flags)


def unshare(flags: int) -> None:
    call(272, flags)


def enter(namespace: int) -> None:
    call(308, namespace, 0)


def folder(name: str) -> str:
    path = f"/tmp/{name}-{os.getpid()}"
    os.makedirs(path, exist_ok=True)
    return path


def agents_files(top: str = "/") -> str | None:
    """Return the entries of the agent's file system that `top` shows."""
    entries = sorted(set(AGENTS) & set(os.listdir(top)))
    return f"{top} shows {entries}" if entries else None


def opened_handle(at: int, kind: int, handle: bytes, flags: int = os.O_RDONLY) -> int:
    buffer = ctypes.create_string_buffer(struct.pack("Ii", len(handle), kind) + handle)
    return call(304, at, buffer, flags)


def main() -> None:
    """Run each attempt in a separate process."""
    for module in MODULES:
        importlib.import_module(module)
    for name in sys.argv[1:] or ATTEMPTS:
        out, into = os.pipe()
        if os.fork() == 0:
            try:
                outcome = ATTEMPTS[name]() or "refused: no effect"
            except OSError as error:
                outcome = f"refused: {error.strerror}"
            except BaseException as error:
                outcome = f"broken: {type(error).__name__}: {error}"
            os.write(into, outcome.encode()[:4000])
            os._exit(0)
        os.close(into)
        outcome, (_, status) = os.read(out, 4096).decode() or "refused: killed", os.wait()
        os.close(out)
        print(json.dumps({"name": name, "outcome": outcome, "status": status}), flush=True)


if __name__ == "__main__":
    from attempts import main as begin  # the module that the others import, not this copy

    begin()
