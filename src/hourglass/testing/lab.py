# SPDX-License-Identifier: Apache-2.0
"""Provide the fixture `lab`: it makes runs for a test, each once a session, and stores them if the test fails.

The session's runs are in one folder, by key, which the workers of pytest-xdist share. The first one to need a run makes
it, the others wait. They are deleted with the session, or stored for later sessions on request. A failed test gets its
runs in a separate folder.
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
from hourglass.results.recording import Recording
from hourglass.results.run_files import RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.scenario import Scenario
from hourglass.testing.measured import Run

Keep = Literal["failed", "all", "none"]
LONGEST_NAME = 150


@dataclass
class Session:
    """The shared state of a process's tests. `folder`: all runs; `stored`: the folder for those of failed tests."""

    folder: Path
    stored: Path
    keep: Keep
    recordings: dict[tuple[bytes, str], Recording] = field(default_factory=dict)

    def recording(self, source: Scenario, engine: str) -> Recording:
        """Return the run of a scenario, made on its first use; in real time, made at each use."""
        plain = source.unchecked()
        if not engines.get(engine).capabilities.virtual_time:
            return runner.run(plain, self.folder / f"{plain.name}-{os.getpid()}-{len(list(self.folder.iterdir()))}",
                              engine=engine)  # fmt: skip
        key = (plain.to_json(), engine)
        if key not in self.recordings:
            self.recordings[key] = runner.run_once(plain, self.folder, engine=engine)
        return self.recordings[key]


class Lab:
    """Runs scenarios for a test. `defaults`: the arguments of its marker (scenario, kernel, seed, engine, set)."""

    def __init__(self, session: Session, test: str, folder: Path, defaults: Mapping[str, Any]) -> None:
        self._session, self._folder, self._defaults = session, folder, defaults
        self.stored = session.stored / folder_name(test)
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
        """Return the run of a scenario that `hourglass.scenario.load` accepts. A file next to the test takes
        precedence; without a scenario, the marker's is used. `sets`: "stack.tsq=off"; `overrides`: the same with two
        underscores for a dot, stack__tsq="off".

        Raises `AssertionError` if a program ends otherwise than its `expect` says.
        """
        __tracebackhide__ = True
        name = source if source is not None else self._defaults.get("scenario")
        if name is None:
            raise InputError("scenario", None, "lab.run needs a scenario: pass one, or name one in the test's marker")
        changes = [*self._defaults.get("set", ()), *sets]
        changes += [(key.replace("__", "."), value) for key, value in overrides.items()]
        kernel = kernel if kernel is not None else self._defaults.get("kernel")
        seed = seed if seed is not None else self._defaults.get("seed")
        engine = engine or self._defaults.get("engine") or engines.DEFAULT
        loaded: Scenario | None = None
        try:
            loaded = scenario.load(self._resolve(name), changes, kernel=kernel, seed=seed)
            recording = self._session.recording(loaded, engine)
        except HourglassError as error:
            failure = self._store_log(loaded.name if loaded else "", error)
            raise failure.with_traceback(None) from None
        run = Run(recording, loaded, self._stored_path(loaded.name))
        self.runs.append(run)
        run.check_programs()
        return run

    def _resolve(self, source: Any) -> Any:
        """Return the path of a file in the test's folder, which takes precedence over the current folder."""
        if isinstance(source, str | Path) and (self._folder / source).is_file():
            return self._folder / source
        return source

    def _stored_path(self, name: str) -> Path:
        """Return the path of a stored run, relative to the current folder if possible."""
        earlier = [run.scenario.name for run in self.runs].count(name)
        path = self.stored / (f"{name}-{earlier + 1}" if earlier else name)
        return Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path

    def _store_log(self, name: str, error: HourglassError) -> HourglassError:
        """Return the error of a failed run, and store its log."""
        if not isinstance(error, GuestError) or error.log is None or self._session.keep == "none":
            return error
        target = self.stored / f"{name}.failed"
        _copy(error.log.parent, target)
        return error.with_log(target / error.log.name)

    def keep(self) -> list[str]:
        """Copy the runs to the test's folder and return a line about each."""
        for run in self.runs:
            _copy(run.recording.path, run.directory)
            if run.scenario.check:
                (run.directory / SUMMARY_FILE).unlink(missing_ok=True)  # it has no verdicts
                files.write(run.directory / SCENARIO_FILE, run.scenario.to_json())
        return [f"{run.directory}  ({run.description()[0].removeprefix('run: ')})" for run in self.runs]

    def discard(self) -> None:
        """Delete the runs of an earlier failure of the test."""
        if self.stored.is_dir() and all((run / RUN_FILE).is_file() for run in self.stored.iterdir()):
            files.delete(self.stored)


def folder_name(test: str) -> str:
    """Return a test's id as the name of a folder: "test_home.py-test_latency-6.1"."""
    name = re.sub(r"[^\w.=+-]+", "-", test, flags=re.ASCII).strip("-.")
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{sha256(test.encode()).hexdigest()[:8]}"


def _copy(source: Path, target: Path) -> None:
    """Copy a folder, with hard links if possible, and replace an older copy."""

    def link(original: str, copy: str) -> None:
        try:
            os.link(original, copy)
        except OSError:
            shutil.copy2(original, copy)

    target.parent.mkdir(parents=True, exist_ok=True)
    files.delete(target)
    with files.replacing(target) as half:
        shutil.copytree(source, half, copy_function=link)
