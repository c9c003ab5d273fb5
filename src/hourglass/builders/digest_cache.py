# SPDX-License-Identifier: Apache-2.0
"""Cache results that are derived from files: `known/KEY` in the cache, so that the next command need not read them.

KEY covers the result's name and the state of its files: path, inode, size and both times. No program can set the
last."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from hourglass.files import write
from hourglass.host import directories

CACHED_MAX = 64
"""Entries in the cache. Each is one line."""

State = tuple[str, int, int, int, int]
"""A file and the properties that change with its content."""


def state(path: Path) -> State:
    """Return the state of a file."""
    status = path.stat()
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def cached(name: str, files: Iterable[Path], compute: Callable[[], str]) -> str:
    """Return the result of `compute`, which reads only `files`. `name`: the result and its other inputs."""
    about = repr((name, [state(path) for path in files]))
    folder = directories.cache() / "known"
    entry = folder / hashlib.sha256(about.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError):
        return entry.read_text()
    result = compute()
    with contextlib.suppress(OSError):  # a full disk
        write(entry, result.encode())
        directories.keep_newest(folder.iterdir(), CACHED_MAX)
    return result
