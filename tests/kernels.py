# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kernels`: builds the kernels that the tests run, each from the objects of the one before it.

A test builds what it needs by itself; together the kernels are built once, without others that wait for them.
"""

import resource
import sys
import time

from hourglass.contract.kernels import KERNELS
from hourglass.engine.kernel import store

VARIANTS = {"5.10": "alone", "6.1": "debug", "6.12": "kunit"}
"""KUnit's suites run on every kernel: without the probe, under lockdep and KASAN, and plain."""

WITHOUT = ("tsq",)
"""The hook that is held against kernels without it."""


def wanted() -> list[tuple[str, str | None, tuple[str, ...]]]:
    """Name, variant and hooks left out of each kernel; a variant after the kernel whose objects it begins with."""
    return [one for name in KERNELS for one in ((name, None, ()), (name, None, WITHOUT), (name, VARIANTS[name], ()))]


def cpu_s() -> float:
    """CPU seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    for name, variant, without in wanted():
        began, before = time.monotonic(), cpu_s()
        built = store.ensure(name, variant=variant, without=without)
        if (spent := time.monotonic() - began) > 1:
            print(f"kernel {built.name}: {spent:.0f} s, {cpu_s() - before:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
