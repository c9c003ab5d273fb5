# SPDX-License-Identifier: Apache-2.0
"""A command as an additional program of a scenario's run: its output as it comes, and its exit status."""

import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, BinaryIO, Self

from hourglass import runner, scenario
from hourglass.cli import progress
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError, InputError
from hourglass.results.apps import Program
from hourglass.results.recording import Recording
from hourglass.results.run_files import APPS_FOLDER
from hourglass.results.staging import refuse_another
from hourglass.scenario import Scenario
from hourglass.scenario.app_values import DEBIAN_ROOT
from hourglass.scenario.check_apps import END_S, NONE
from hourglass.scenario.check_streams import check_node
from hourglass.visible import visible

NAME = "exec"
KILLED = 128
"""The exit status of a program that a signal ended is this plus the signal's number, as in a shell."""
POLL_S = 0.02
"""Wall seconds between two looks at the output of a running command."""


def words(command: Sequence[str]) -> list[str]:
    """Return the command without the -- before it. Raises InputError if an option is in its place."""
    arguments = list(command[1:]) if command[:1] == ["--"] else list(command)
    if arguments[:1] and arguments[0].startswith("-"):
        raise InputError("COMMAND", arguments[0], "is not a program's name; options of hourglass come before it")
    return arguments


def run(
    resolved: Scenario,
    out: Path | None,
    staged: runner.Staged | None = None,
    ended: Callable[[Path], object] = lambda _: None,
) -> Recording:
    """Run the scenario: in the directory `out`, or in a temporary one. `ended` receives it before it is deleted."""
    if out is not None:
        refuse_another(out, resolved.unchecked().to_json(), Virtual.name)
    with progress.display() as display:
        prepared = runner.prepare(resolved, Virtual.name, display)
    with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary:
        try:
            recording = runner.make(prepared, out or Path(temporary) / "run", staged=staged)
        except GuestError as error:
            raise (error if out else error.with_log(None)) from None  # its log was deleted with the folder
        _ = recording.apps, recording.info
        ended(recording.path)
    return recording


class Echo:
    """Prints the output of a program while it runs, from the files of its run directory. `silent`: does not."""

    def __init__(self, name: str, silent: bool = False) -> None:
        self.name, self.silent = name, silent
        self._pipes: list[tuple[BinaryIO, BinaryIO]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print, daemon=True)

    def __enter__(self) -> Self:
        return self

    def begin(self, directory: Path) -> None:
        """Begin with the files of a run directory. The directory may be renamed; the files stay."""
        if self.silent:
            return
        folder = directory / APPS_FOLDER
        folder.mkdir(exist_ok=True)
        for stream, target in (("stdout", sys.stdout.buffer), ("stderr", sys.stderr.buffer)):
            path = folder / f"{self.name}.{stream}"
            path.touch()
            self._pipes.append((path.open("rb"), target))
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._copy()
        for source, _ in self._pipes:
            source.close()

    def _print(self) -> None:
        with suppress(BrokenPipeError):
            while not self._ended.wait(POLL_S):
                self._copy()

    def _copy(self) -> None:
        for source, target in self._pipes:
            if content := source.read():
                target.write(content)
                target.flush()


def report_warnings(recording: Recording) -> None:
    """Print a line for each warning of the run."""
    for text in recording.info.warnings:
        print(visible(f"hourglass: {text}"), file=sys.stderr)


def status(ended: Program) -> int:
    """Return the exit status of a program, as a shell does."""
    last = ended.last_start
    if last is None or (last["exit"] is None and last["signal"] is None):
        return KILLED
    return int(last["exit"]) if last["exit"] is not None else KILLED + int(last["signal"])


def with_command(
    base: Scenario,
    node: str,
    command: list[str],
    root: str | None,
    packages: Sequence[str],
    user: str | None,
    name: str = NAME,
    length_s: int = END_S,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Scenario:
    """Return the scenario with the command as an additional program called `name`, and as the whole test."""
    check_node("NODE", node, [item.name for item in base.testbed.node])
    data: dict[str, Any] = base.model_dump(mode="json")
    ready = [item["name"] for item in data["app"] if item["ready"]]
    app = {"name": name, "node": node, "command": command, "env": dict(env), "after": ready, "expect": "any"}
    if user is not None:
        app["user"] = user
    if root is not None:
        app["root"] = root if root.startswith(DEBIAN_ROOT) else str(Path(root).absolute())
    data["apps"]["packages"] = [*data["apps"]["packages"], *packages]
    data["app"] = [*(item for item in data["app"] if item["name"] != name), app]
    data["test"] = {
        "name": NONE,
        "length": length_s,
        "client": data["test"]["client"],
        "server": data["test"]["server"],
    }
    return scenario.load(data)
