# SPDX-License-Identifier: Apache-2.0
"""Builds the code in which a run spends its time with PGO (gcc's -fprofile-use).

kernel/tuning/objects says which objects of a kernel that is. They are compiled to count their branches, that kernel
runs the plans of kernel/tuning, and they are compiled again by what it counted: what is taken stands in a row, what is
not out of the way. What the kernel computes is the same; a run takes a tenth to a fifth less. The counts stay in the
working tree, so that after a change only what changed is compiled again; kbuild knows what that is.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hourglass import resources
from hourglass.contract.plan import Plan
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.virtual import Virtual
from hourglass.errors import HourglassError

TUNING = resources.KERNEL / "tuning"
_PROFILE = ".hourglass-profile"
_RUNS = ".hourglass-training"

COUNT = "-fprofile-arcs -fprofile-update=single"
USE = "-fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile -Wno-coverage-mismatch"

LINK_COUNTERS = (
    "LINK_WRAPS=-Wl,--wrap,malloc -Wl,--wrap,free -Wl,--wrap,calloc"  # UML's own
    " -fprofile-arcs -Wl,--allow-multiple-definition"  # libgcov, which has a mangle_path() as the kernel has
    " -Wl,-u,__gcov_dump -Wl,-fini=__gcov_dump"  # the kernel writes its counts as it ends
)

Make = Callable[[list[str], str], None]
"""Makes the kernel in the working tree, with further words and a text that says what for. Raises HourglassError."""


def make_tuned(work: Path, describe: Callable[[], BuiltKernel], compiler: str, make: Make) -> str:
    """Makes a tuned kernel, or a plain one and gives the reason: what a training run failed of.

    `describe` gives the kernel that the tree holds. Raises what `make` raises.
    """
    profile = work / _PROFILE
    if not profile.is_file() or profile.read_text() != compiler:
        make([*further(COUNT), LINK_COUNTERS], "compiling")
        try:
            train(work, describe())
        except HourglassError as error:
            make([], "compiling")
            return str(error)
        profile.write_text(compiler)
    make(further(USE), "compiling by the profile")
    return ""


def further(flags: str) -> list[str]:
    """Words for make: the objects and the flags that only they are compiled with."""
    lines = (TUNING / "objects").read_text().splitlines()
    objects = [line for line in lines if not line.startswith("#")]
    return [f"HOURGLASS_TUNED={' '.join(objects)}", f"HOURGLASS_FLAGS={flags}"]


def train(work: Path, kernel: BuiltKernel) -> None:
    """Leaves the counts of the training runs beside the objects."""
    for counts in work.rglob("*.gcda"):
        counts.unlink()
    directory, guest = work / _RUNS, Virtual(replace(kernel, linux=work / "linux"))
    for plan in sorted(TUNING.glob("*.json")):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        guest.run(Plan.model_validate_json(plan.read_bytes()), directory)
    shutil.rmtree(directory)
    if next(work.rglob("*.gcda"), None) is None:
        raise HourglassError("the training runs left no counts")
