# SPDX-License-Identifier: Apache-2.0
"""One CPU for each guest.

A guest kernel and its traced processes take turns and never run at the same time. Spread over two CPUs each turn wakes
an idle CPU, which costs more than the turn: on one CPU a run takes half the time. Runs side by side must not share
one, so each claims its own by a lock that goes away with its holder.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hourglass import locks
from hourglass.engine import paths


@contextmanager
def claim() -> Iterator[int]:
    """A CPU that no other guest of this user claims, while there is one; else one of those we may use."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)  # the first CPU has most of the machine's interrupts
    folder = paths.cache() / "cpus"
    with contextlib.ExitStack() as held:
        for cpu in allowed:
            try:
                held.enter_context(locks.held(folder / str(cpu), _claimed))
            except BlockingIOError:
                continue
            yield cpu
            return
        yield allowed[os.getpid() % len(allowed)]


def _claimed() -> None:
    raise BlockingIOError
