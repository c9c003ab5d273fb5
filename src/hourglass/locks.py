# SPDX-License-Identifier: Apache-2.0
"""Use files as locks between processes. The kernel releases a lock when its holder ends for any reason.

`filelock` does the same, but loading it takes 30 ms at every start.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock during the block. `waiting` is called once if another process holds it. It may raise to avoid the
    wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
