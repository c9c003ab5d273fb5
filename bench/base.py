# SPDX-License-Identifier: Apache-2.0
"""Compare with an earlier revision: the same scenarios on the same machine at the same time.

The revision is checked out in the cache and called as a command with its own sources. So its own code builds its
kernel, its agent and its guest root. Only stable interfaces are used: `hourglass run FILE --set … --no-picture --json
--out DIR`, and `wall_s` in run.json. The two revisions alternate, and so does the first of each pair. A case repeats
until the interval of the median ratio is narrow.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import cases, measure, spread
from bench.rows import Say
from hourglass import locks
from hourglass.builders.kernel import source_tree, tree_spec
from hourglass.contract.kernels import DEFAULT
from hourglass.errors import HourglassError, InputError
from hourglass.host import directories

REFERENCE = Path(__file__).with_name("reference.json")
NONE = "none"

TOLERANCE = 0.03
"""A regression takes longer by more than this share at every point of its interval."""

NARROW, MOST = 0.04, 11
"""The required width of the interval, and the number of pairs after which it may be wider."""


class NoBaseError(Exception):
    """The reason why the base cannot be compared, in one line."""


@dataclass(frozen=True)
class Compared:
    """A run for both revisions. `command`: the whole command is timed, not its guest."""

    name: str
    scenario: Path
    settings: tuple[str, ...]
    command: bool = False

    @property
    def arguments(self) -> list[str]:
        return [str(self.scenario), *cases.options(self.settings), *OPTIONS]


OPTIONS = ("--kernel", DEFAULT, "--no-picture", "--json")


def of_line(flows: int, cc: str, rate: str, length_s: float, *more: str) -> Compared:
    """Return the case for a scenario of `cases.line`."""
    settings = (f"stack.cc={cc}", f"test.upload_streams={flows}", f"test.length={length_s}")
    name = cases.title(flows, cc, rate, cases.UNSAMPLED if more else "")
    return Compared(name, cases.LINE_FILE, (*settings, f"testbed.link.0.rate={rate}", *more))


def of_built_in(name: str, length_s: float) -> Compared:
    return Compared(name, measure.ROOT / f"scenarios/{name}.toml", ("test.delay=0.2", f"test.length={length_s}"))


COMPARED = (
    Compared("1 s of pings, the command", measure.ROOT / "scenarios/L100M.toml", cases.PING, command=True),
    of_line(4, "cubic", "10mbit", 30),
    of_line(4, "cubic", "100mbit", 12),
    of_line(4, "cubic", "100mbit", 12, *cases.BARE),
    of_line(4, "bbr", "100mbit", 12),
    of_line(4, "cubic", "1gbit", 4),
    of_line(1000, "cubic", "100mbit", 4),
    of_built_in("L100M", 20),
    of_built_in("wifi-ath9k", 12),
)


@dataclass(frozen=True)
class Compare:
    """The durations of a case, as ratios to the base, pair by pair."""

    name: str
    ratios: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def bounds(self) -> tuple[float, float]:
        return spread.interval(self.ratios)

    @property
    def slower(self) -> bool:
        """Return whether it is a regression."""
        return self.bounds[0] > 1 + TOLERANCE


def default() -> str:
    """Return the newest release before this commit; without one, the commit of `reference.json`."""
    arguments = ["tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname"]
    released = (git(*arguments) or "").split()
    return released[0] if released else str(json.loads(REFERENCE.read_text())["commit"]).removesuffix("-dirty")


def git(*arguments: str) -> str | None:
    """Return git's output for this checkout; None without git or a repository."""
    if shutil.which("git") is None:
        return None
    try:
        return source_tree.git(measure.ROOT, *arguments).strip()
    except HourglassError:
        return None


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Provide the sources of a revision, locked against another checkout. Raises NoBaseError."""
    if shutil.which("git") is None:
        raise NoBaseError("there is no git")
    checkout = directories.cache() / "checkouts" / tree_spec.slot(measure.ROOT)
    with locks.exclusive(checkout.with_name(f"{checkout.name}.lock")):
        try:
            tree_spec.check_out(measure.ROOT, revision, checkout)
        except InputError:
            raise NoBaseError("git knows no such revision here") from None
        except HourglassError as error:
            raise NoBaseError(str(error).splitlines()[0]) from None
        yield checkout


def prepare(base: Path) -> None:
    """Let a revision build its kernel, tuned, its agent and its guest root, by a run. Raises NoBaseError."""
    try:
        measure.shell("kernel", "tune", DEFAULT, source=base)
        measure.command(COMPARED[0].arguments, base)
    except subprocess.CalledProcessError as error:
        raise NoBaseError(f"it does not run here: {complaint(error)}") from None


def complaint(error: subprocess.CalledProcessError) -> str:
    """Return the last line of a command's errors."""
    lines = error.stderr.decode(errors="replace").strip().splitlines()
    return str(lines[-1] if lines else error)


def took_s(case: Compared, sources: Path) -> float:
    done = measure.command(case.arguments, sources)
    return done.all_s if case.command else done.guest_s


def compare(case: Compared, base: Path) -> Compare:
    """Time both revisions in turns. An apparent regression is measured again, and only the second result counts,
    because one of many intervals is wrong by chance."""

    def pair(number: int) -> float:
        order = (measure.ROOT, base) if number % 2 else (base, measure.ROOT)
        took = {sources: took_s(case, sources) for sources in order}
        return took[measure.ROOT] / took[base]

    comparison = Compare(case.name, spread.narrowed(pair, NARROW, MOST))
    return Compare(case.name, spread.narrowed(pair, NARROW, MOST)) if comparison.slower else comparison


def compared(revision: str, say: Say, only: str = "") -> list[Compare]:
    """Compare the cases with `only` in their names with a revision. Raises NoBaseError."""
    with checked_out(revision) as base:
        say(f"{revision}: kernel, agent and root")
        prepare(base)
        comparisons = []
        for case in (case for case in COMPARED if only in case.name):
            say(f"{case.name}, compared with {revision}")
            try:
                comparisons.append(compare(case, base))
            except subprocess.CalledProcessError as error:
                raise NoBaseError(f"{case.name}: {complaint(error)}") from None
        return comparisons
