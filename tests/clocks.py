# SPDX-License-Identifier: Apache-2.0
"""Use this machine's clocks safely: `until` waits for an event, `at_least` and `limited_cpu` check a cost.

No verdict may depend on the machine's other load, so tests read no clock themselves (`tests/test_tidy.py`). Modules
that import this one have the marker `real_time`. `make loaded` repeats them next to four processes that spin.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")

HANG_S = 120.0
"""The limit of every wait. Only what hangs takes so long, even on a busy machine."""


def until(condition: Callable[[], T], problem: str | Callable[[], str] = "it does not happen") -> T:
    """Wait until a condition is true, and return its value. If it never is, the test fails with the problem."""
    end = time.monotonic() + HANG_S
    while not (value := condition()):
        if time.monotonic() > end:
            pytest.fail(f"after {HANG_S:g} s: {problem() if callable(problem) else problem}")
        time.sleep(0.01)
    return value


@contextmanager
def at_least(seconds: float) -> Iterator[None]:
    """Fail if the block takes less of the wall's time. On a busy machine it takes only longer."""
    start_s = time.monotonic()
    yield
    assert time.monotonic() - start_s >= seconds


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    """Fail if the block takes this process more CPU time. A tenth of the limit is usual: a busy machine may double it,
    and a defect, such as a quadratic search, takes minutes."""
    start_s = time.process_time()
    try:
        yield
    finally:
        assert time.process_time() - start_s < seconds
