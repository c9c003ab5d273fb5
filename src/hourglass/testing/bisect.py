# SPDX-License-Identifier: Apache-2.0
"""The commit of a kernel's history from which on a bound is missed: `git bisect`, with runs in the place of a person.

git chooses the revisions, in a bare clone in the cache: the user's repository stays as it is, in whatever way we
end. Each is built in one working tree, where only what differs from the revision before is compiled. A revision that
does not build, or does not take the hooks, is skipped.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hourglass import locks
from hourglass import scenario as scenarios
from hourglass.engine import paths
from hourglass.engine.kernel import trees
from hourglass.engine.kernel.build import BuildError, build
from hourglass.engine.kernel.hooks import HookError
from hourglass.engine.kernel.source import git
from hourglass.errors import HourglassError, InputError
from hourglass.runner import Progress
from hourglass.testing import judge
from hourglass.testing.judge import Verdict

Answer = Literal["good", "bad", "skip"]


@dataclass(frozen=True)
class Step:
    """A revision that was tried. `verdict`: of its run; None when it could not be built, and `why`."""

    commit: str
    subject: str
    answer: Answer
    verdict: Verdict | None
    why: str = ""


@dataclass(frozen=True)
class Found:
    """The first bad commit; several where those between them could not be tried."""

    commits: tuple[str, ...]
    subject: str
    steps: tuple[Step, ...]


def bisect(
    folder: Path,
    good: str,
    bad: str,
    scenario: str,
    bounds: Sequence[str],
    *,
    within: Sequence[str] = (),
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    told: Callable[[Step], None] = lambda _: None,
) -> Found:
    """Finds the first commit after `good` up to `bad` whose run misses a bound (or the scenario's own).

    `within`: only commits that touch these paths are asked, as with `git bisect start`. `told` hears of each step.
    Raises `InputError` for a `good` that misses a bound or a `bad` that keeps all, and for paths that no commit
    touches; what fails is bad."""
    if not folder.is_dir():
        raise InputError("DIR", str(folder), "there is no such folder")
    judge.parsed(bounds)
    scenarios.load(scenario, overrides, seed=seed)
    name = f"{trees.names(str(folder))}.bisect"
    steps: list[Step] = []

    def tried(commit: str) -> Step:
        subject = git(folder, "show", "--no-patch", "--format=%s", commit).strip()
        try:
            build(f"{folder}@{commit}", name, progress.kernel if progress else None)
        except (BuildError, HookError) as error:
            step = Step(commit, subject, "skip", None, str(error).splitlines()[0])
        else:
            (verdict,) = judge.check(
                scenario, bounds=bounds, overrides=overrides, seed=seed, kernel=name, progress=progress
            )
            step = Step(commit, subject, "good" if verdict.ok else "bad", verdict)
        steps.append(step)
        told(step)
        return step

    ends = {"GOOD": trees.commit(folder, good), "BAD": trees.commit(folder, bad)}
    with _clone(folder) as own:
        if within and not git(own, "rev-list", "-1", f"{ends['GOOD']}..{ends['BAD']}", "--", *within):
            raise InputError("PATH", " ".join(within), "no commit between GOOD and BAD touches it")
        for what, expected in (("GOOD", "good"), ("BAD", "bad")):
            step = tried(ends[what])
            if step.answer != expected:
                given = good if what == "GOOD" else bad
                raise InputError(what, given, f"is {step.answer}, not {expected}{_because(step)}")
        said = git(own, "bisect", "start", "--no-checkout", ends["BAD"], ends["GOOD"], "--", *within)
        while (commits := _ended(said)) is None:
            step = tried(git(own, "rev-parse", "BISECT_HEAD").strip())
            said = _answered(own, step.answer)
    subject = git(folder, "show", "--no-patch", "--format=%s", commits[0]).strip() if len(commits) == 1 else ""
    return Found(commits, subject, tuple(steps))


@contextmanager
def _clone(folder: Path) -> Iterator[Path]:
    """A bare clone, for as long as it is used; one bisect of a repository at a time."""
    place = paths.cache() / "bisects" / trees.slot(folder)

    def busy() -> None:
        raise InputError("DIR", str(folder), "another bisect of this repository goes on")

    with locks.held(place.with_name(f"{place.name}.lock"), busy):
        shutil.rmtree(place, ignore_errors=True)
        try:
            trees.clone(folder, place, "--bare")
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _because(step: Step) -> str:
    if step.verdict is None:
        return f": {step.why}"
    if step.verdict.error is not None:
        return f": {str(step.verdict.error).splitlines()[0]}"
    return "".join(f"; {one.figure} is {one.value} {one.unit}" for one in step.verdict.checks[:1])


def _answered(own: Path, answer: Answer) -> str:
    """What git says to an answer; it ends with a status of its own when only skipped revisions are left."""
    try:
        return git(own, "bisect", answer)
    except HourglassError:
        return git(own, "bisect", "log")


def _ended(said: str) -> tuple[str, ...] | None:
    """The first bad commit, or those among which it is, once git knows."""
    if first := re.search(r"^([0-9a-f]{40}) is the first bad commit", said, re.MULTILINE):
        return (first[1],)
    possible = re.findall(r"^# possible first bad commit: \[([0-9a-f]{40})\]", said, re.MULTILINE)
    return tuple(possible) or None
