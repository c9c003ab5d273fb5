# SPDX-License-Identifier: Apache-2.0
"""One CPU for each guest.

A guest kernel and its traced processes take turns and never run at the same time. Spread over two CPUs each turn wakes
an idle CPU, which costs more than the turn: on one CPU a run takes half the time. Runs side by side must not share
one, so each claims its own by a lock that goes away with its holder.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hourglass.engine import paths


@contextmanager
def claim() -> Iterator[int]:
    """A CPU that no other guest of this user claims, while there is one; else one of those we may use."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)  # the first CPU has most of the machine's interrupts
    folder = paths.cache() / "cpus"
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as held:
        for cpu in allowed:
            lock = held.enter_context((folder / str(cpu)).open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield cpu
            return
        yield allowed[os.getpid() % len(allowed)]
