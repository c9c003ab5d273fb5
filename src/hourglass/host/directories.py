# SPDX-License-Identifier: Apache-2.0
"""Find the cache folder. No other module reads the environment for folders.

`platformdirs` would give the same answer on Linux, in no fewer lines."""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hourglass.errors import MissingError


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


def keep_newest(entries: Iterable[Path], count: int) -> None:
    """Delete all but the last used entries of the cache; each use touches an entry."""
    ages = []
    for path in entries:
        with contextlib.suppress(FileNotFoundError):
            ages.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(ages)[:-count]:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
