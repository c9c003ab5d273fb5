# SPDX-License-Identifier: Apache-2.0
"""Reserve one CPU for each guest.

A guest kernel and its traced processes take turns and never run at the same time. On two CPUs, each turn wakes an idle
CPU, which costs more than the turn: on one CPU a run takes half the time. Parallel runs must not share a CPU, so each
locks one. The lock disappears with its holder."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hourglass import locks
from hourglass.host import directories


@contextmanager
def claim() -> Iterator[int]:
    """Yield a CPU that no other guest of this user has reserved, or one of the allowed CPUs if all are."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)  # the first CPU has most of the machine's interrupts
    folder = directories.cache() / "cpus"
    with contextlib.ExitStack() as stack:
        for cpu in allowed:
            try:
                stack.enter_context(locks.exclusive(folder / str(cpu), _skip))
            except BlockingIOError:
                continue
            yield cpu
            return
        yield allowed[os.getpid() % len(allowed)]


def _skip() -> None:
    raise BlockingIOError
