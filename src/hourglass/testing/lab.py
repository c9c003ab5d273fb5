# SPDX-License-Identifier: Apache-2.0
"""What the fixture `lab` is: makes runs for a test, each once a session, and keeps them when the test fails.

The session's runs lie in one folder, by all that decides them, which the workers of pytest-xdist share: whoever asks
first makes a run, the others wait for it. They are deleted with the session, or kept for the next ones on request. A
test that fails gets its runs in a folder of its own.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from hourglass import files, runner, scenario
from hourglass.engine import engines
from hourglass.errors import GuestError, HourglassError, InputError
from hourglass.results.files import RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.results.recording import Recording
from hourglass.scenario import Scenario
from hourglass.testing.measured import Run

Keep = Literal["failed", "all", "none"]
LONGEST_NAME = 150


@dataclass
class Session:
    """What the tests of a process share. `folder`: of all runs; `kept`: where those of failed tests go."""

    folder: Path
    kept: Path
    keep: Keep
    recordings: dict[tuple[bytes, str], Recording] = field(default_factory=dict)

    def recording(self, wanted: Scenario, engine: str) -> Recording:
        """The run of a scenario, made if no test has asked for it; where time is real, always."""
        plain = wanted.unchecked()
        if not engines.chosen(engine).capabilities.virtual_time:
            return runner.run(plain, self.folder / f"{plain.name}-{os.getpid()}-{len(list(self.folder.iterdir()))}",
                              engine=engine)  # fmt: skip
        key = (plain.to_json(), engine)
        if key not in self.recordings:
            self.recordings[key] = runner.run_once(plain, self.folder, engine=engine)
        return self.recordings[key]


class Lab:
    """Runs scenarios for one test. `defaults`: what its marker says (scenario, kernel, seed, engine, set)."""

    def __init__(self, session: Session, test: str, folder: Path, defaults: Mapping[str, Any]) -> None:
        self._session, self._folder, self._defaults = session, folder, defaults
        self.place = session.kept / folder_name(test)
        self.runs: list[Run] = []

    def __repr__(self) -> str:
        return "<lab>"

    def run(
        self,
        source: str | Path | Mapping[str, Any] | Scenario | None = None,
        *sets: str,
        kernel: str | None = None,
        seed: int | None = None,
        engine: str | None = None,
        **overrides: Any,
    ) -> Run:
        """The run of a scenario: what `hourglass.scenario.load` takes, a file beside the test first; without one, the
        marker's. `sets`: "stack.tsq=off"; `overrides`: the same with two underscores for a dot, stack__tsq="off"."""
        __tracebackhide__ = True
        wanted = source if source is not None else self._defaults.get("scenario")
        if wanted is None:
            raise InputError("scenario", None, "lab.run takes a scenario where the test's marker names none")
        changes = [*self._defaults.get("set", ()), *sets]
        changes += [(key.replace("__", "."), value) for key, value in overrides.items()]
        kernel = kernel if kernel is not None else self._defaults.get("kernel")
        seed = seed if seed is not None else self._defaults.get("seed")
        engine = engine or self._defaults.get("engine") or engines.DEFAULT
        found: Scenario | None = None
        try:
            found = scenario.load(self._beside(wanted), changes, kernel=kernel, seed=seed)
            recording = self._session.recording(found, engine)
        except HourglassError as error:
            failure = self._kept_failure(found.name if found else "", error)
            raise failure.with_traceback(None) from None
        made = Run(recording, found, self._place_of(found.name))
        self.runs.append(made)
        return made

    def _beside(self, source: Any) -> Any:
        """A file of the test's folder goes before the current folder's."""
        if isinstance(source, str | Path) and (self._folder / source).is_file():
            return self._folder / source
        return source

    def _place_of(self, name: str) -> Path:
        """Where the run will lie if it is kept, as one would type it here."""
        taken = [one.scenario.name for one in self.runs].count(name)
        place = self.place / (f"{name}-{taken + 1}" if taken else name)
        return Path(os.path.relpath(place)) if place.is_relative_to(Path.cwd()) else place

    def _kept_failure(self, name: str, error: HourglassError) -> HourglassError:
        """The error of a run that failed, its log kept."""
        if not isinstance(error, GuestError) or error.log is None or self._session.keep == "none":
            return error
        place = self.place / f"{name}.failed"
        _copy(error.log.parent, place)
        return GuestError(error.reason, place / error.log.name, error.tail)

    def keep(self) -> list[str]:
        """Puts the runs in the test's own folder; in words, which and where."""
        for run in self.runs:
            _copy(run.recording.path, run.place)
            if run.scenario.check:
                (run.place / SUMMARY_FILE).unlink(missing_ok=True)  # it has no verdicts
                files.write(run.place / SCENARIO_FILE, run.scenario.to_json())
        return [f"{run.place}  ({run.told()[0].removeprefix('run: ')})" for run in self.runs]

    def discard(self) -> None:
        """Deletes what an earlier failure of the test has left."""
        if self.place.is_dir() and all((one / RUN_FILE).is_file() for one in self.place.iterdir()):
            shutil.rmtree(self.place, ignore_errors=True)


def folder_name(test: str) -> str:
    """A test's id as the name of a folder: "test_home.py-test_latency-6.1"."""
    name = re.sub(r"[^\w.=+-]+", "-", test, flags=re.ASCII).strip("-.")
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{sha256(test.encode()).hexdigest()[:8]}"


def _copy(source: Path, place: Path) -> None:
    """A copy, by links where that is possible; replaces an older one."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    with files.replacing(place) as half:
        shutil.copytree(source, half, copy_function=link)
