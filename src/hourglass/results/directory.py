# SPDX-License-Identifier: Apache-2.0
"""A run directory while it is made: staged in a hidden sibling, renamed when complete, kept as `.failed` when not.

Nothing half-made ever stands under the final name, and an older complete run there gives way only to a complete one;
`refuse_another` is for who wants it to be of the same scenario.
What is not a run directory is never touched.
"""

import contextlib
import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hourglass.errors import GuestError, HourglassError, InputError
from hourglass.results.files import APPS_FOLDER, CONSOLE_FILE, RUN_FILE, SCENARIO_FILE
from hourglass.results.flat import flat

DERIVED = (".json", ".arrows", ".log", ".png", ".svg", ".pdf", ".html", ".pcapng", ".gz")
"""Suffixes of what a run directory may hold; a directory with anything else in it is not replaced."""

MOST_TOLD = 3
"""Keys of another run that are named."""


class Staging:
    """The hidden directory `path` in which the run that will stand at `place` is made."""

    def __init__(self, out: Path) -> None:
        self.place = out.resolve()
        if not self.place.name:
            raise InputError("out", str(out), "must name a directory to be made")
        self.failed = self.place.with_name(f"{self.place.name}.failed")
        self.path = self.place.with_name(f".{self.place.name}.{os.getpid()}")

    def open(self) -> None:
        """Checks that the places may be taken, then makes the hidden directory."""
        for place in (self.place, self.failed):
            _check_free(place)
        with readable_errors(self.place):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._sweep()
            self.path.mkdir()

    def _sweep(self) -> None:
        """Deletes what commands that were killed have left of runs at this place, ours of an earlier life too."""
        for left in self.place.parent.glob(f".{glob.escape(self.place.name)}.*"):
            number = left.name.rpartition(".")[2]
            if number.isdecimal() and (int(number) == os.getpid() or not _runs(int(number))):
                shutil.rmtree(left, ignore_errors=True)

    def publish(self) -> None:
        """Puts the complete run in its place."""
        _swap(self.path, self.place)

    def keep_failed(self) -> None:
        """Keeps what there is beside the final place, so that the log can be read."""
        _swap(self.path, self.failed)

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def translate(self, error: HourglassError) -> HourglassError:
        """The same error with the paths as they are after `keep_failed`."""
        if isinstance(error, GuestError) and error.log is not None and error.log.is_relative_to(self.path):
            return GuestError(error.reason, self.failed / error.log.relative_to(self.path), error.tail)
        if str(self.path) in str(error) and not isinstance(error, InputError):
            return HourglassError(str(error).replace(str(self.path), str(self.failed)))
        return error


def _runs(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _check_free(place: Path) -> None:
    """Refuses to replace a file, or a directory that holds anything but a run."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise InputError("out", str(place), "is a file; name a directory to be made, or one of an older run")
    names = sorted(entry.name for entry in place.iterdir())
    if names and not {RUN_FILE, SCENARIO_FILE} & set(names):
        raise InputError("out", str(place), "exists and is not a run directory; nothing in it was touched")
    foreign = [name for name in names if not name.endswith(DERIVED) and name != APPS_FOLDER]
    if foreign:
        raise InputError("out", str(place), f"holds {foreign[0]!r}, which is not part of a run; move it away first")


def refuse_another(place: Path, scenario: bytes, engine: str) -> None:
    """Raises `InputError` when a run of another scenario, or by another engine, stands at the place; names what
    differs."""
    try:
        there, run = (json.loads((place / name).read_text("utf-8")) for name in (SCENARIO_FILE, RUN_FILE))
        there.pop("check", None)  # bounds decide nothing of a run
        old = dict(flat({**there, "engine": run["engine"]}))
    except (OSError, ValueError, TypeError, KeyError):
        return  # no run, or one that cannot be read; `_check_free` says what may not be replaced
    new = dict(flat({**json.loads(scenario), "engine": engine}))
    differing = [key for key in dict.fromkeys((*new, *old)) if new.get(key) != old.get(key)]
    if differing:
        told = ", ".join(f"{'.'.join(key)} = {old.get(key)} there" for key in differing[:MOST_TOLD])
        more = f" and {len(differing) - MOST_TOLD} more" if len(differing) > MOST_TOLD else ""
        raise InputError("out", str(place), f"holds another run ({told}{more}); --force replaces it")


def _swap(new: Path, place: Path) -> None:
    """Renames `new` to `place`; what was there is moved aside first and deleted last."""
    old = new.with_name(f"{new.name}.old")
    with contextlib.suppress(FileNotFoundError):
        place.rename(old)
    try:
        new.rename(place)
    except OSError:
        with contextlib.suppress(OSError):
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def readable_errors(place: Path) -> Iterator[None]:
    """Turns what the file system refuses into one clear line."""
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        raise InputError("out", str(place), f"cannot be written: {error.strerror}") from error
    except OSError as error:
        raise HourglassError(f"{error.filename or place}: {error.strerror or error}") from error


@contextmanager
def staging(out: Path) -> Iterator[Staging]:
    """Opens the staging directory for a run at `out`; whoever leaves normally must have published.

    An error keeps the directory as `<out>.failed` and is raised again; Ctrl-C keeps it only if a guest had begun to
    write its console log.
    """
    made = Staging(out)
    try:
        made.open()
        with _kept(made), readable_errors(out):
            yield made
    finally:
        made.discard()


@contextmanager
def _kept(made: Staging) -> Iterator[None]:
    """Keeps what an error leaves behind, if there is something to see."""
    try:
        yield
    except HourglassError as error:
        made.keep_failed()
        raise made.translate(error) from error
    except Exception:
        made.keep_failed()
        raise
    except KeyboardInterrupt:
        log = made.path / CONSOLE_FILE
        if log.is_file() and log.stat().st_size:
            made.keep_failed()
        raise
