# SPDX-License-Identifier: Apache-2.0
"""Where the cache is. Nothing else looks at the environment for folders.

`platformdirs` would say the same of Linux, in no fewer lines.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hourglass.errors import MissingError


def cache() -> Path:
    """The cache folder, made if it is not there: $HOURGLASS_CACHE, $XDG_CACHE_HOME/hourglass or ~/.cache/hourglass;
    where that cannot be written, a private one below the folder for temporary files.

    Raises MissingError.
    """
    if named := os.environ.get("HOURGLASS_CACHE"):
        if not _writable(folder := Path(named).absolute()):
            raise MissingError(
                f"$HOURGLASS_CACHE, {folder}, cannot be written", "set HOURGLASS_CACHE to another folder"
            )
        return folder
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else home() / ".cache").absolute() / "hourglass"
    return folder if _writable(folder) else _private(temporary() / f"hourglass-{os.getuid()}")


def home() -> Path:
    """The user's home; / of one who has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def temporary() -> Path:
    """The folder for temporary files: $TMPDIR or /tmp, if it can be written."""
    try:
        return Path(tempfile.gettempdir()).absolute()
    except FileNotFoundError:
        return Path("/tmp")


def _writable(folder: Path) -> bool:
    """Whether a folder is there, or can be made, and is ours to write to."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _private(folder: Path) -> Path:
    """A folder that nobody else can write to, though everybody can write to the one above it."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        found = folder.lstat()
    except OSError:
        found = None
    if found is None or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        what = (
            f"no folder for the cache: neither home nor $XDG_CACHE_HOME can be written, and {folder} is not ours alone"
        )
        raise MissingError(what, "set HOURGLASS_CACHE to a folder of yours")
    return folder


def keep_newest(entries: Iterable[Path], count: int) -> None:
    """Deletes all but the last used of some files or folders of the cache; whoever uses one touches it."""
    ages = []
    for path in entries:
        with contextlib.suppress(FileNotFoundError):
            ages.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(ages)[:-count]:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
