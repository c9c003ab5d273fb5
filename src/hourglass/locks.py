# SPDX-License-Identifier: Apache-2.0
"""Files as locks between processes. A lock goes away with its holder, however that ends.

`filelock` does the same, but loading it takes 30 ms of every start.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Holds the lock. `waiting` is called once if another process holds it; it may raise instead of letting us wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
