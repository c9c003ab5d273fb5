# SPDX-License-Identifier: Apache-2.0
"""An earlier revision, run beside this one: the same scenarios on the same machine in the same minutes.

The revision is checked out in the cache and called as a command with its own sources, so that its kernel, its agent
and its guest root are made by its own code. Of it only what is stable is relied on: `hourglass run FILE --set …
--no-picture --json --out DIR`, and `wall_s` in run.json. The two take turns, and change who is first; a case is
repeated until the interval of the median ratio is narrow.
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
from hourglass.contract.kernels import DEFAULT
from hourglass.engine import paths
from hourglass.engine.kernel import source, trees
from hourglass.errors import HourglassError, InputError

REFERENCE = Path(__file__).with_name("reference.json")
NONE = "none"

TOLERANCE = 0.03
"""What counts as a regression takes longer by more than this share, wherever in its interval the ratio is."""

NARROW, MOST = 0.04, 11
"""How narrow the interval has to be, and after how many pairs it may stay wider."""


class NoBaseError(Exception):
    """Why there is nothing to compare with, in one line."""


@dataclass(frozen=True)
class Compared:
    """A run of both. `command`: the whole command is timed, not its guest."""

    name: str
    scenario: Path
    settings: tuple[str, ...]
    command: bool = False

    @property
    def words(self) -> list[str]:
        return [str(self.scenario), *cases.options(self.settings), *WORDS]


WORDS = ("--kernel", DEFAULT, "--no-picture", "--json")


def of_line(flows: int, cc: str, rate: str, length_s: float, *further: str) -> Compared:
    """Of `cases.line`."""
    settings = (f"stack.cc={cc}", f"test.upload_streams={flows}", f"test.length={length_s}")
    name = cases.title(flows, cc, rate, cases.UNSAMPLED if further else "")
    return Compared(name, cases.LINE_FILE, (*settings, f"testbed.link.0.rate={rate}", *further))


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
    """How many times as long a case takes as it does in the base, pair by pair."""

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
        """Whether it is a regression."""
        return self.bounds[0] > 1 + TOLERANCE


def default() -> str:
    """The newest release before this commit; if there is none, the commit whose figures `reference.json` has."""
    words = ["tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname"]
    released = (git(*words) or "").split()
    return released[0] if released else str(json.loads(REFERENCE.read_text())["commit"]).removesuffix("-dirty")


def git(*words: str) -> str | None:
    """What git says of this checkout; None where there is no git, or no repository."""
    if shutil.which("git") is None:
        return None
    try:
        return source.git(measure.ROOT, *words).strip()
    except HourglassError:
        return None


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The sources of a revision, for as long as nobody else checks out another. Raises NoBaseError."""
    if shutil.which("git") is None:
        raise NoBaseError("there is no git")
    place = paths.cache() / "checkouts" / trees.slot(measure.ROOT)
    with locks.held(place.with_name(f"{place.name}.lock")):
        try:
            trees.check_out(measure.ROOT, revision, place)
        except InputError:
            raise NoBaseError("git knows no such revision here") from None
        except HourglassError as error:
            raise NoBaseError(str(error).splitlines()[0]) from None
        yield place


def prepare(base: Path) -> None:
    """Has a revision make its kernel, tuned, its agent and its guest root, by a run. Raises NoBaseError."""
    try:
        measure.shell("kernel", "tune", DEFAULT, source=base)
        measure.command(COMPARED[0].words, base)
    except subprocess.CalledProcessError as error:
        raise NoBaseError(f"it does not run here: {complaint(error)}") from None


def complaint(error: subprocess.CalledProcessError) -> str:
    """The last line that a command said."""
    said = error.stderr.decode(errors="replace").strip().splitlines()
    return str(said[-1] if said else error)


def took_s(case: Compared, sources: Path) -> float:
    done = measure.command(case.words, sources)
    return done.all_s if case.command else done.guest_s


def compare(case: Compared, base: Path) -> Compare:
    """Ours and the base's by turns. What seems to be a regression is measured anew, and only that counts: of many
    intervals one is wrong now and then."""

    def pair(number: int) -> float:
        order = (measure.ROOT, base) if number % 2 else (base, measure.ROOT)
        took = {sources: took_s(case, sources) for sources in order}
        return took[measure.ROOT] / took[base]

    found = Compare(case.name, spread.narrowed(pair, NARROW, MOST))
    return Compare(case.name, spread.narrowed(pair, NARROW, MOST)) if found.slower else found


def compared(revision: str, say: Say, only: str = "") -> list[Compare]:
    """The cases with `only` in their names against a revision. Raises NoBaseError."""
    with checked_out(revision) as base:
        say(f"{revision}: kernel, agent and root")
        prepare(base)
        made = []
        for case in (case for case in COMPARED if only in case.name):
            say(f"{case.name}, beside {revision}")
            try:
                made.append(compare(case, base))
            except subprocess.CalledProcessError as error:
                raise NoBaseError(f"{case.name}: {complaint(error)}") from None
        return made
