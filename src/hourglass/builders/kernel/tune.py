# SPDX-License-Identifier: Apache-2.0
"""Build the most used code of a kernel with PGO (gcc's -fprofile-use).

kernel/tuning/objects lists these objects. They are compiled with branch counters, the kernel runs the plans of
kernel/tuning, and the objects are compiled again with the counts. A taken branch then needs no jump. The kernel
computes the same, and a run takes up to a tenth less. All this happens in a temporary copy of the working tree, so the
plain tree does not change and earlier counts have no effect.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from hourglass import resources
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.contract.plan import Plan
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
"""Makes the kernel in the working tree with more targets and a description. Raises HourglassError."""


Trainer = Callable[[BuiltKernel, Plan, Path], object]
"""Runs a plan in a kernel, in an empty directory. Raises HourglassError."""


def tune(work: Path, kernel: BuiltKernel, make: Make, trainer: Trainer) -> None:
    """Turn the kernel of a working tree, which has the plain one's objects, into a tuned one.

    Raises the errors of `make`, and HourglassError if a training run fails.
    """
    make([*make_arguments(COUNT), LINK_COUNTERS], "compiling with counters")
    train(work, kernel, trainer)
    make(make_arguments(USE), "compiling by the profile")


def objects() -> list[str]:
    """Return the tuned objects, as make's patterns."""
    return [line for line in (TUNING / "objects").read_text().splitlines() if not line.startswith("#")]


def make_arguments(flags: str) -> list[str]:
    """Return make's arguments: the objects and the flags for these alone. ccache is disabled because it ignores the
    counts."""
    return [f"HOURGLASS_TUNED={' '.join(objects())}", f"HOURGLASS_FLAGS={flags}", "CCACHE_DISABLE=1"]


def train(work: Path, kernel: BuiltKernel, trainer: Trainer) -> None:
    """Write the counts of the training runs next to the objects."""
    for counts in work.rglob("*.gcda"):  # of an earlier training, copied with the tree
        counts.unlink()
    directory = work / _RUNS
    for plan in sorted(TUNING.glob("*.json")):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        trainer(kernel, Plan.model_validate_json(plan.read_bytes()), directory)
    shutil.rmtree(directory)
    if next(work.rglob("*.gcda"), None) is None:
        raise HourglassError("the training runs of PGO wrote no counts")
