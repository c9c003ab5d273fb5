# SPDX-License-Identifier: Apache-2.0
"""A run directory during its run: staged in a hidden sibling, renamed when complete, stored as `.failed` otherwise.

The final name never holds an incomplete run, and only a complete run replaces an older complete one. `refuse_another`
is for callers that require the same scenario. A directory that is not a run directory is never touched.
"""

import contextlib
import glob
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hourglass import files
from hourglass.errors import GuestError, HourglassError, InputError, ProgramError
from hourglass.files import output_errors
from hourglass.results.flat import flat
from hourglass.results.run_files import APPS_FOLDER, CONSOLE_FILE, RUN_FILE, SCENARIO_FILE

DERIVED = (".json", ".arrows", ".log", ".png", ".svg", ".pdf", ".html", ".pcapng", ".gz")
"""Suffixes of files in a run directory; a directory with any other file is not replaced."""

NAMED_KEYS_MAX = 3
"""The most differing keys in the message about another run."""


class Staging:
    """The hidden directory `path` of a run whose final directory is `place`."""

    def __init__(self, out: Path) -> None:
        self.target = out.resolve()
        if not self.target.name:
            raise InputError("out", str(out), "must name the run's new directory")
        self.failed = self.target.with_name(f"{self.target.name}.failed")
        self.path = self.target.with_name(f".{self.target.name}.{os.getpid()}")

    def open(self) -> None:
        """Check that the places are free, then make the hidden directory."""
        for path in (self.target, self.failed):
            _check_free(path)
        with output_errors(self.target, "the run"):
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._delete_leftovers()
            self.path.mkdir()

    def _delete_leftovers(self) -> None:
        """Delete the leftovers of killed commands at this place, including those of an earlier process with this id."""
        for leftover in self.target.parent.glob(f".{glob.escape(self.target.name)}.*"):
            pid_text = leftover.name.rpartition(".")[2]
            if pid_text.isdecimal() and (int(pid_text) == os.getpid() or not _process_exists(int(pid_text))):
                files.delete(leftover)

    def publish(self) -> None:
        """Rename the complete run to its place."""
        _swap(self.path, self.target)

    def keep_failed(self) -> None:
        """Store the incomplete run next to the final place, so that the log can be read."""
        _swap(self.path, self.failed)

    def discard(self) -> None:
        files.delete(self.path)

    def translate(self, error: HourglassError) -> HourglassError:
        """Return the same error with the paths as they are after `keep_failed`."""
        if isinstance(error, GuestError) and error.log is not None and error.log.is_relative_to(self.path):
            return error.with_log(self.failed / error.log.relative_to(self.path))
        if isinstance(error, ProgramError) and error.output is not None:
            return error.with_output(self.failed / error.output.relative_to(self.path))
        if str(self.path) in str(error) and not isinstance(error, InputError):
            text = str(error).replace(str(self.path), str(self.failed))
            return HourglassError(text, code=error.code, fields=error.fields)
        return error


def _process_exists(pid: int) -> bool:
    """Return true if the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _check_free(path: Path) -> None:
    """Refuse to replace a file, or a directory that holds anything but a run."""
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError("out", str(path), "is a file; name a new directory, or that of an older run")
    names = sorted(entry.name for entry in path.iterdir())
    if names and not {RUN_FILE, SCENARIO_FILE} & set(names):
        raise InputError("out", str(path), "exists and is not a run directory; nothing in it was touched")
    foreign = [name for name in names if not name.endswith(DERIVED) and name != APPS_FOLDER]
    if foreign:
        raise InputError("out", str(path), f"contains {foreign[0]!r}, which is not part of a run; move it elsewhere")


def refuse_another(path: Path, scenario: bytes, engine: str) -> None:
    """Refuse a place with a run of another scenario or engine; name the differences. Raises `InputError`."""
    try:
        stored, run = (json.loads((path / name).read_text("utf-8")) for name in (SCENARIO_FILE, RUN_FILE))
        stored.pop("check", None)  # bounds do not affect a run
        old = dict(flat({**stored, "engine": run["engine"]}))
    except (OSError, ValueError, TypeError, KeyError):
        return  # not a run, or an unreadable one; `_check_free` names what may not be replaced
    new = dict(flat({**json.loads(scenario), "engine": engine}))
    differing = [key for key in dict.fromkeys((*new, *old)) if new.get(key) != old.get(key)]
    if differing:
        listed = ", ".join(f"{'.'.join(key)} = {old.get(key)} there" for key in differing[:NAMED_KEYS_MAX])
        more = f" and {len(differing) - NAMED_KEYS_MAX} more" if len(differing) > NAMED_KEYS_MAX else ""
        raise InputError("out", str(path), f"contains another run ({listed}{more}); --force replaces it")


def _swap(new: Path, target: Path) -> None:
    """Rename `new` to `place`; the old content is moved aside first and deleted last."""
    old = new.with_name(f"{new.name}.old")
    with contextlib.suppress(FileNotFoundError):
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        with contextlib.suppress(OSError):
            old.rename(target)
        raise
    files.delete(old)


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into one clear line."""
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        if error.filename is not None and not Path(error.filename).absolute().is_relative_to(path.absolute().parent):
            raise HourglassError(f"{error.filename}: {error.strerror}") from error
        raise InputError("out", str(path), f"cannot be written: {error.strerror}") from error
    except OSError as error:
        raise HourglassError(f"{error.filename or path}: {error.strerror or error}") from error


@contextmanager
def staging(out: Path) -> Iterator[Staging]:
    """Open the staging directory for a run at `out`; a caller that leaves without an error must have published.

    An error stores the directory as `<out>.failed` and is raised again; Ctrl-C stores it only if a guest had begun its
    console log.
    """
    stage = Staging(out)
    try:
        stage.open()
        with _keep_after_error(stage), readable_errors(out):
            yield stage
    finally:
        stage.discard()


@contextmanager
def _keep_after_error(stage: Staging) -> Iterator[None]:
    """Store the leftovers of an error, if any."""
    try:
        yield
    except HourglassError as error:
        stage.keep_failed()
        raise stage.translate(error) from error
    except Exception:
        stage.keep_failed()
        raise
    except KeyboardInterrupt:
        log = stage.path / CONSOLE_FILE
        if log.is_file() and log.stat().st_size:
            stage.keep_failed()
        raise
