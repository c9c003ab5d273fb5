# SPDX-License-Identifier: Apache-2.0
"""What was worked out from files and holds until one of them changes: `known/KEY` in the cache, so that the next
command need not read them. KEY is over what it is and how the files are: path, inode, size and both times, of which no
program can set the last."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from hourglass.engine import paths
from hourglass.files import write

KEPT = 64
"""How many of them the cache keeps; each is a line."""

State = tuple[str, int, int, int, int]
"""A file, and what changes when it does."""


def state(path: Path) -> State:
    """How a file is now."""
    found = path.stat()
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def known(what: str, files: Iterable[Path], work: Callable[[], str]) -> str:
    """What `work` gives, which reads nothing but `files`. `what`: its name, and all else that it depends on."""
    about = repr((what, [state(path) for path in files]))
    folder = paths.cache() / "known"
    place = folder / hashlib.sha256(about.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError):
        return place.read_text()
    found = work()
    with contextlib.suppress(OSError):  # a full disk
        write(place, found.encode())
        paths.keep_newest(folder.iterdir(), KEPT)
    return found
