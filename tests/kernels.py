# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kernels`: builds the kernels that the tests run, each from the objects of the one before it.

A test builds the kernels that it needs. This builds all of them once, so that no test waits for another.
"""

import resource
import sys
import time

from hourglass.builders.kernel import registry
from hourglass.builders.kernel.obtain import SourceGone
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.errors import MissingError, program

VARIANTS = {"5.10": ("alone",), "6.1": ("debug",), "7.3": ("kunit", "bpf")}
"""The variants that tests run: the one with KUnit's suites, then the one that loads congestion controls in BPF."""

KUNIT = {name: variants[0] for name, variants in VARIANTS.items()}
"""KUnit's suites run on the oldest kernel, without the probe, on the default one, under lockdep and KASAN, and on the
newest. A variant with KUnit compiles most of a kernel again. The arithmetic that it tests is the same on all, and
those between two that pass compile the same files without KUnit."""

WITHOUT = ("tsq@tcp_output.c",)
"""The code that is compared with kernels without it. The hook's other edits are settings, for which all other files
would have to be compiled."""


def variants() -> list[tuple[str, str | None, tuple[str, ...]]]:
    """Return name, variant and omitted hooks of each kernel; a variant follows the kernel whose objects it reuses."""
    return [
        (name, variant, without)
        for name in KERNELS
        for variant, without in ((None, ()), (None, WITHOUT), *((variant, ()) for variant in VARIANTS.get(name, ())))
    ]


def cpu_s() -> float:
    """Return the CPU seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    for name, variant, without in variants():
        began, before = time.monotonic(), cpu_s()
        try:
            built = registry.ensure(name, variant=variant, without=without)
        except SourceGone as gone:
            if name == DEFAULT:
                raise
            print(f"kernel {name} is left out: {gone}", file=sys.stderr)
            continue
        except MissingError as missing:
            if variant is None:
                raise
            print(f"kernel {name}+{variant} is left out: {missing}", file=sys.stderr)
            continue
        if (spent := time.monotonic() - began) > 1:
            print(f"kernel {built.name}: {spent:.0f} s, {cpu_s() - before:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    program(main)
