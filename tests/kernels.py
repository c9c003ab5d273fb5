# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kernels`: builds the kernels that the tests run, each from the objects of the one before it.

A test builds what it needs by itself; together the kernels are built once, without others that wait for them.
"""

import resource
import sys
import time

from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine.kernel import store
from hourglass.engine.kernel.obtain import SourceGone

VARIANTS = {"5.10": "alone", "6.1": "debug", "7.3": "kunit"}
"""KUnit's suites run on the oldest kernel, without the probe, on the default one, under lockdep and KASAN, and on the
newest. A variant with KUnit compiles most of a kernel anew; the arithmetic that it tests is the same on all, and what
lies between two that pass compiles the same files plain."""

WITHOUT = ("tsq@tcp_output.c",)
"""The code that is held against kernels without it. What else the hook has are settings, which all other files would
have to be compiled for."""


def wanted() -> list[tuple[str, str | None, tuple[str, ...]]]:
    """Name, variant and hooks left out of each kernel; a variant after the kernel whose objects it begins with."""
    return [
        (name, variant, without)
        for name in KERNELS
        for variant, without in ((None, ()), (None, WITHOUT), *([(VARIANTS[name], ())] if name in VARIANTS else []))
    ]


def cpu_s() -> float:
    """CPU seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    for name, variant, without in wanted():
        began, before = time.monotonic(), cpu_s()
        try:
            built = store.ensure(name, variant=variant, without=without)
        except SourceGone as gone:
            if name == DEFAULT:
                raise
            print(f"kernel {name} is left out: {gone}", file=sys.stderr)
            continue
        if (spent := time.monotonic() - began) > 1:
            print(f"kernel {built.name}: {spent:.0f} s, {cpu_s() - before:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
