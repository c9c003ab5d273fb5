# SPDX-License-Identifier: Apache-2.0
"""Find the commit of a kernel's history from which on a check fails: `git bisect` with built kernels.

git chooses the revisions, in a bare clone in the cache, so the user's repository never changes. Each revision is built
in the same working tree, where only the changed files are compiled. A revision that does not build, or that does not
match the hooks, is skipped.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from hourglass import locks
from hourglass.builders.kernel import tree_spec
from hourglass.builders.kernel.builder import BuildError, Report, build
from hourglass.builders.kernel.hooks import HookError
from hourglass.builders.kernel.source_tree import git
from hourglass.errors import HourglassError, InputError
from hourglass.host import directories

Answer = Literal["good", "bad", "skip"]


class KernelVerdict(Protocol):
    """The verdict on a kernel, with the reason if it is bad."""

    @property
    def ok(self) -> bool: ...

    @property
    def reason(self) -> str: ...


V = TypeVar("V", bound=KernelVerdict)


@dataclass(frozen=True)
class Step(Generic[V]):
    """A tested revision. `verdict`: None if the build failed; `why` is then the reason."""

    commit: str
    subject: str
    answer: Answer
    verdict: V | None
    why: str = ""


@dataclass(frozen=True)
class Bisection(Generic[V]):
    """The first bad commit; several if those between them could not be tested."""

    commits: tuple[str, ...]
    subject: str
    steps: tuple[Step[V], ...]


def bisect(
    folder: Path,
    good: str,
    bad: str,
    check: Callable[[str], V],
    *,
    within: Sequence[str] = (),
    progress: Report | None = None,
    on_step: Callable[[Step[V]], None] = lambda _: None,
) -> Bisection[V]:
    """Find the first commit after `good`, up to `bad`, whose kernel fails the check, which receives its name.

    `within`: only commits that touch these paths are tested, as with `git bisect start`. `on_step` receives each step.
    Raises `InputError` if `good` fails, `bad` passes, or no commit touches the paths.
    """
    if not folder.is_dir():
        raise InputError("DIR", str(folder), "is not a folder")
    name = f"{tree_spec.default_name(str(folder))}.bisect"
    steps: list[Step[V]] = []

    def test(commit: str) -> Step[V]:
        subject = git(folder, "show", "--no-patch", "--format=%s", commit).strip()
        try:
            build(f"{folder}@{commit}", name, progress)
        except (BuildError, HookError) as error:
            step = Step[V](commit, subject, "skip", None, str(error).splitlines()[0])
        else:
            verdict = check(name)
            step = Step(commit, subject, "good" if verdict.ok else "bad", verdict)
        steps.append(step)
        on_step(step)
        return step

    ends = {"GOOD": tree_spec.commit(folder, good), "BAD": tree_spec.commit(folder, bad)}
    with _clone(folder) as clone:
        if within and not git(clone, "rev-list", "-1", f"{ends['GOOD']}..{ends['BAD']}", "--", *within):
            raise InputError("PATH", " ".join(within), "no commit between GOOD and BAD touches this path")
        for argument, revision, expected in (("GOOD", good, "good"), ("BAD", bad, "bad")):
            step = test(ends[argument])
            if step.answer != expected:
                reason = step.verdict.reason if step.verdict else step.why
                raise InputError(argument, revision, f"is {step.answer}, not {expected}{reason and f': {reason}'}")
        output = git(clone, "bisect", "start", "--no-checkout", ends["BAD"], ends["GOOD"], "--", *within)
        while (commits := _first_bad(output)) is None:
            step = test(git(clone, "rev-parse", "BISECT_HEAD").strip())
            output = _mark(clone, step.answer)
    subject = git(folder, "show", "--no-patch", "--format=%s", commits[0]).strip() if len(commits) == 1 else ""
    return Bisection(commits, subject, tuple(steps))


@contextmanager
def _clone(folder: Path) -> Iterator[Path]:
    """Provide a temporary bare clone. A repository can have one bisection at a time."""
    clone = directories.cache() / "bisects" / tree_spec.slot(folder)

    def busy() -> None:
        raise InputError("DIR", str(folder), "another bisect of this repository is running; wait for its end")

    with locks.exclusive(clone.with_name(f"{clone.name}.lock"), busy):
        shutil.rmtree(clone, ignore_errors=True)
        try:
            tree_spec.clone(folder, clone, "--bare")
            yield clone
        finally:
            shutil.rmtree(clone, ignore_errors=True)


def _mark(clone: Path, answer: Answer) -> str:
    """Mark the tested revision and return git's output. git fails if all remaining revisions are skipped."""
    try:
        return git(clone, "bisect", answer)
    except HourglassError:
        return git(clone, "bisect", "log")


def _first_bad(output: str) -> tuple[str, ...] | None:
    """Return the first bad commit, or the candidates for it; None while the bisection continues."""
    if first := re.search(r"^([0-9a-f]{40}) is the first bad commit", output, re.MULTILINE):
        return (first[1],)
    possible = re.findall(r"^# possible first bad commit: \[([0-9a-f]{40})\]", output, re.MULTILINE)
    return tuple(possible) or None
