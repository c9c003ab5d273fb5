# SPDX-License-Identifier: Apache-2.0
"""Find the cache folder, and share its entries between processes. No other module reads the environment for folders.

An entry is a file or a folder. It is complete or absent, and no process replaces it. A guest may open only the file
that existed when its sandbox was prepared.

`platformdirs` would give the same answer on Linux, in no fewer lines."""

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from hourglass import files, locks
from hourglass.errors import MissingError

USE_NS = 3600 * 10**9
"""Nanoseconds after a use for which an entry is not deleted. A guest opens its files long before."""


def cache() -> Path:
    """Return the cache folder, created if missing: $HOURGLASS_CACHE, $XDG_CACHE_HOME/hourglass or ~/.cache/hourglass.
    If that is not writable, it is a private folder below the temporary one.

    Raises MissingError."""
    if named := os.environ.get("HOURGLASS_CACHE"):
        if not _is_writable(folder := Path(named).absolute()):
            raise MissingError(
                f"$HOURGLASS_CACHE, {folder}, cannot be written", "set HOURGLASS_CACHE to another folder"
            )
        return folder
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else home() / ".cache").absolute() / "hourglass"
    return folder if _is_writable(folder) else _private(temporary() / f"hourglass-{os.getuid()}")


def home() -> Path:
    """Return the user's home, or / without one."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def temporary() -> Path:
    """Return the folder for temporary files: $TMPDIR or /tmp, if writable."""
    try:
        return Path(tempfile.gettempdir()).absolute()
    except FileNotFoundError:
        return Path("/tmp")


def _is_writable(folder: Path) -> bool:
    """Create a folder if missing; return whether this user can write to it."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _private(folder: Path) -> Path:
    """Return a folder that only this user can write to, although everybody can write to its parent."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        status = folder.lstat()
    except OSError:
        status = None
    if status is None or not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        problem = f"no folder for the cache: neither home nor $XDG_CACHE_HOME is writable, and {folder} is not private"
        raise MissingError(problem, "set HOURGLASS_CACHE to a private folder")
    return folder


def entry(
    path: Path, count: int, build: Callable[[Path], object], waiting: Callable[[], object] = lambda: None
) -> Path:
    """Return an entry of the cache, marked as used. If it is missing, `build` makes it at the path that it receives,
    and the oldest entries beyond `count` are deleted. `waiting`: see `locks.exclusive`."""
    with locks.exclusive(path.with_name(f"{path.name}.lock"), waiting):
        if not mark_used(path):
            with files.replacing(path) as fresh:
                build(fresh)
            keep_newest(path.parent.glob("?" * len(path.name)), count)
    return path


def mark_used(path: Path) -> bool:
    """Mark an entry of the cache as used, so that no process deletes it soon. Return whether it exists."""
    try:
        with _uses():
            os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # nobody deletes an entry of a cache that is read-only
        return path.exists()
    return True


def keep_newest(entries: Iterable[Path], count: int) -> None:
    """Delete all but the last used entries of the cache, and those of the last hour. Each entry disappears at once."""
    ages, deleted, recent = [], [], time.time_ns() - USE_NS
    with _uses():
        for path in entries:
            with contextlib.suppress(FileNotFoundError):
                ages.append((path.stat().st_mtime_ns, path))
        for used, path in sorted(ages)[:-count]:
            with contextlib.suppress(OSError):  # an older version, which uses no lock, was faster
                if used < recent:
                    deleted.append(path.rename(path.with_name(f".{path.name}.{os.getpid()}")))
    for path in deleted:
        files.delete(path)


def _uses() -> AbstractContextManager[None]:
    """Lock the times at which entries were used."""
    return locks.exclusive(cache() / "uses.lock")
