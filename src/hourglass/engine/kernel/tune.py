# SPDX-License-Identifier: Apache-2.0
"""Compiles what a run spends its time in once more, with a profile of training runs (gcc's -fprofile-use).

The kernel is built; kernel/tuning/objects says which of its objects matter. They are compiled to count their branches,
that kernel runs the plans of kernel/tuning, and they are compiled again by what it counted: what is taken stands in a
row, what is not out of the way. What the kernel computes is the same (tests/guest/test_tuning.py); a run takes a fifth
to a quarter less. The counts stay in the working tree: after a change only what make compiled is tuned again.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hourglass.engine import paths, virtual
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.errors import HourglassError

TUNING = paths.KERNEL / "tuning"
_PROFILE = ".hourglass-profile"
_TUNED = ".hourglass-tuned"
_RUNS = ".hourglass-training"

COUNT = "-fprofile-arcs -fprofile-update=single"
USE = "-fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile -Wno-coverage-mismatch"

LINK_COUNTERS = [
    "LINK_WRAPS=-Wl,--wrap,malloc -Wl,--wrap,free -Wl,--wrap,calloc"  # UML's own
    " -fprofile-arcs -Wl,--allow-multiple-definition"  # libgcov, which has a mangle_path() as the kernel has
    " -Wl,-u,__gcov_dump -Wl,-fini=__gcov_dump"
]
"""Words for make: the kernel writes its counts as it ends."""

Make = Callable[[list[str], str], None]
"""Runs make in the working tree, with words and a text that says what for. Raises HourglassError."""


def tune(work: Path, kernel: BuiltKernel, compiler: str, make: Make) -> None:
    """Tunes the objects of a built working tree that are not, and links it again; `kernel` is what it holds now.

    Raises HourglassError when a training run failed; `recover` has then to be called.
    """
    objects = hot(work)
    if not (work / _PROFILE).is_file() or (work / _PROFILE).read_text() != compiler:
        train(work, kernel, objects, make)
        (work / _PROFILE).write_text(compiler)
    state = work / _TUNED
    before: dict[str, int] = json.loads(state.read_text()) if state.is_file() else {}
    changed = [name for name in objects if before.get(name) != (work / name).stat().st_mtime_ns]
    if not changed:
        return
    compile_again(changed, USE, "compiling by the profile", make)
    make(["linux"], "linking")
    shutil.rmtree(work / _RUNS, ignore_errors=True)
    state.write_text(json.dumps({name: (work / name).stat().st_mtime_ns for name in objects}))


def hot(work: Path) -> list[str]:
    """The objects of a built tree that are worth it."""
    words = [line for line in (TUNING / "objects").read_text().splitlines() if not line.startswith("#")]
    return sorted({str(path.relative_to(work)) for word in words for path in work.glob(word)})


def train(work: Path, kernel: BuiltKernel, objects: list[str], make: Make) -> None:
    """Leaves the counts of the training runs beside the objects, which are then to be compiled again."""
    for counts in work.rglob("*.gcda"):
        counts.unlink()
    (work / _TUNED).unlink(missing_ok=True)
    (work / _RUNS).mkdir()
    compile_again(objects, COUNT, "compiling for training", make)
    make([*LINK_COUNTERS, "linux"], "linking for training")
    for plan in sorted(TUNING.glob("*.json")):
        run(plan, work, kernel)
    if not (work / objects[0]).with_suffix(".gcda").is_file():
        raise HourglassError("the training runs left no counts")


def recover(work: Path) -> None:
    """Leaves nothing of a tuning that failed or was killed: its objects would not even link."""
    if (work / _RUNS).exists():
        forget(work)
        shutil.rmtree(work / _RUNS)


def forget(work: Path) -> None:
    """To make, the objects are still to be compiled."""
    for name in hot(work):
        (work / name).unlink()


def run(plan: Path, work: Path, kernel: BuiltKernel) -> None:
    """One training run."""
    directory = work / _RUNS / plan.stem
    directory.mkdir()
    virtual.run(plan.read_bytes(), replace(kernel, linux=work / "linux"), directory, seed=1)


def compile_again(objects: list[str], flags: str, why: str, make: Make) -> None:
    """Compiles objects as make did, with further flags."""
    make(["-f", str(TUNING / "tune.mk"), f"OBJECTS={' '.join(objects)}", f"FLAGS={flags}", "all"], why)
