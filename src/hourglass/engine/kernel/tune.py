# SPDX-License-Identifier: Apache-2.0
"""Builds the code in which a run spends its time with PGO (gcc's -fprofile-use).

kernel/tuning/objects says which objects of a kernel that is. They are compiled to count their branches, that kernel
runs the plans of kernel/tuning, and they are compiled again by what it counted: what is taken stands in a row, what is
not out of the way. What the kernel computes is the same; a run takes up to a tenth less. It happens in a copy of
the working tree that is deleted afterwards: the plain tree stays as it is, and no earlier counts have a say.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from hourglass import resources
from hourglass.contract.plan import Plan
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.virtual import Virtual
from hourglass.errors import HourglassError

TUNING = resources.KERNEL / "tuning"
_RUNS = ".hourglass-training"

COUNT = "-fprofile-arcs -fprofile-update=single"
USE = "-fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile -Wno-coverage-mismatch"

LINK_COUNTERS = (
    "LINK_WRAPS=-Wl,--wrap,malloc -Wl,--wrap,free -Wl,--wrap,calloc"  # UML's own
    " -fprofile-arcs -Wl,--allow-multiple-definition"  # libgcov, which has a mangle_path() as the kernel has
    " -Wl,-u,__gcov_dump -Wl,--defsym,_fini=__gcov_dump"  # the kernel writes its counts as it ends, linked statically
)

Make = Callable[[list[str], str], object]
"""Makes the kernel in the working tree, with further words and a text that says what for. Raises HourglassError."""


def tune(work: Path, kernel: BuiltKernel, make: Make) -> None:
    """Makes the kernel of a working tree, which holds the plain one's objects, into a tuned one.

    Raises what `make` raises, and HourglassError when a training run failed.
    """
    make([*further(COUNT), LINK_COUNTERS], "compiling with counters")
    train(work, kernel)
    make(further(USE), "compiling by the profile")


def objects() -> list[str]:
    """The objects that are tuned, as make's patterns."""
    return [line for line in (TUNING / "objects").read_text().splitlines() if not line.startswith("#")]


def further(flags: str) -> list[str]:
    """Words for make: the objects and the flags that only they are compiled with. ccache would have to know of the
    counts."""
    return [f"HOURGLASS_TUNED={' '.join(objects())}", f"HOURGLASS_FLAGS={flags}", "CCACHE_DISABLE=1"]


def train(work: Path, kernel: BuiltKernel) -> None:
    """Leaves the counts of the training runs beside the objects."""
    for counts in work.rglob("*.gcda"):  # of an earlier training, copied with the tree
        counts.unlink()
    directory, guest = work / _RUNS, Virtual(kernel)
    for plan in sorted(TUNING.glob("*.json")):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        guest.run(Plan.model_validate_json(plan.read_bytes()), directory)
    shutil.rmtree(directory)
    if next(work.rglob("*.gcda"), None) is None:
        raise HourglassError("the training runs left no counts")
