# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass box`: a program tree as root of a fresh guest, in virtual time. No scenario is needed.

The guest has one node with a loopback device. The programs see this machine's root, or one of Debian's packages, and
the current folder. The files that they write stay in the guest's memory, except the collected ones.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hourglass import scenario
from hourglass.cli import output
from hourglass.cli.guest_command import Echo, report_warnings, run, status, words
from hourglass.cli.help import examples
from hourglass.cli.options import KeptRun, Kernel, Packages, RequireSandbox, Seed, Settings
from hourglass.errors import HourglassError, InputError
from hourglass.results.recording import Recording
from hourglass.results.run_files import APPS_FOLDER
from hourglass.scenario import Scenario
from hourglass.scenario.app_values import DEBIAN_ROOT, HOST_ROOT
from hourglass.scenario.check_apps import NONE

NAME = "box"
TIMED_OUT = 124
"""The exit status of timeout(1) for a command that it ended."""
TIMEOUT_S = 3600.0
DEBIAN = f"{DEBIAN_ROOT}12"
ROOT_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
TEMPORARY = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Folders of this machine that a box does not show."""
OUTPUT_MAX = "1024MiB"
"""The most that is stored of each output."""


@dataclass(frozen=True)
class Options:
    """The options of `hourglass box`. `root`: None means this machine's, or Debian's if there are packages."""

    settings: Sequence[str] = ()
    seed: int | None = None
    kernel: str | None = None
    root: str | None = None
    packages: Sequence[str] = ()
    collect: Sequence[str] = ()
    stdin: bool = False
    timeout_s: float = TIMEOUT_S
    wall_timeout_s: float | None = None
    out: Path | None = None
    json: bool = False


@examples(
    """\
hourglass box -- sh -c 'ip link set lo up; ping -c 3 127.0.0.1'
hourglass box --package mininet --package bash -- ./my-mininet-test.py
hourglass box --collect results -- ./run-tests.sh""",
    allow_interspersed_args=False,
)
def box_command(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.")],
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="ROOT",
            help="Root of the program: /, debian:12, a folder or an image; default: /, this machine's, or debian:12"
            " with --package.",
        ),
    ] = None,
    packages: Packages = None,
    collect: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="File or folder to bring back into the current folder; repeatable."),
    ] = None,
    stdin: Annotated[bool, typer.Option("--stdin", help="Pass standard input, up to its end, to the command.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=86_400, help="End the command after this virtual time.")
    ] = TIMEOUT_S,
    wall_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="End the guest after this time on your clock.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: exit status, output, virtual and CPU time, digest.")
    ] = False,
    require_sandbox: RequireSandbox = False,
    out: KeptRun = None,
) -> int:
    """Run any Linux program as root of a fresh guest, in virtual time.

    The program sees this machine's files and the current folder. Its writes stay in the guest. The exit status is the
    command's; 124 if a timeout ended it.
    """
    options = Options(
        settings or [], seed, kernel, root, packages or [], collect or [], stdin, timeout, wall_timeout, out, json
    )
    return box(command, options)


def box(command: Sequence[str], options: Options) -> int:
    """Run the command and return its exit status, or 124 if a timeout ended it."""
    resolved = box_scenario(words(command), options, sys.stdin.buffer.read().decode() if options.stdin else "")
    try:
        with _wall_timeout(options.wall_timeout_s), Echo(NAME, silent=options.json) as echo:
            recording = run(resolved, options.out, echo.begin, lambda path: _bring_back(path, Path.cwd()))
    except TimeoutError:
        print(f"hourglass: ended after {options.wall_timeout_s:g} s of wall time", file=sys.stderr)
        return TIMED_OUT
    report_warnings(recording)
    program = recording.apps[NAME]
    late = program.outlasted_test
    if late:
        print(f"hourglass: ended after {options.timeout_s:g} s of virtual time; see --timeout", file=sys.stderr)
    exit_status = TIMED_OUT if late else status(program)
    if options.json:
        output.show_json(_report(recording, exit_status))
    return exit_status


def box_scenario(command: Sequence[str], options: Options, stdin: str = "") -> Scenario:
    """Return the scenario of a box. Raises InputError."""
    folder = Path.cwd()
    root = options.root or (DEBIAN if options.packages else HOST_ROOT)
    root = root if root.startswith(DEBIAN_ROOT) else str(Path(root).absolute())
    app = {
        "name": NAME,
        "node": NAME,
        "command": list(command),
        "env": _environment(own_root=root == HOST_ROOT),
        "folder": str(folder),
        "mounts": {path: path for path in map(str, _visible(folder, command[0])) if path != "/"},
        "user": "root",
        "stdin": stdin,
        "expect": "any",
        "collect": [str(_within(folder, path)) for path in options.collect],
    }
    data = {
        "name": NAME,
        "testbed": {"node": [{"name": NAME}]},
        "test": {"name": NONE, "length": options.timeout_s},
        "apps": {"root": root, "packages": list(options.packages), "output": OUTPUT_MAX},
        "app": [app],
    }
    return scenario.load(data, options.settings, seed=options.seed, kernel=options.kernel)


def _visible(folder: Path, program: str) -> list[Path]:
    """Return the folders that a box shows in addition to its root: the current one, and that of a program in /tmp.
    Go puts its test binaries there. The box has its own /tmp."""
    path = Path(program)
    hidden = path.is_absolute() and path.is_file() and any(map(path.is_relative_to, TEMPORARY))
    return [folder, path.parent] if hidden and not path.is_relative_to(folder) else [folder]


def _environment(own_root: bool) -> dict[str, str]:
    """Return the environment of this process; with another root without the paths of this machine's. The program is
    root of its guest, so the search path has root's folders, which a user's may lack."""
    other = () if own_root else ("PATH", "HOME", "SHELL", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD")
    variables = {name: text for name, text in os.environ.items() if name not in other}
    if "PATH" in variables:
        folders = variables["PATH"].split(":")
        variables["PATH"] = ":".join([*folders, *(name for name in ROOT_FOLDERS if name not in folders)])
    return {name: text for name, text in variables.items() if name.isidentifier() and _is_utf8(name + text)}


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _within(folder: Path, name: str) -> Path:
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder) or path == folder:
        raise InputError("--collect", name, "must be a file, a folder or a pattern below the current folder")
    return path


def _bring_back(directory: Path, folder: Path) -> None:
    """Copy the collected files to their places in the folder."""
    collected = directory / APPS_FOLDER / NAME
    source = collected / folder.relative_to("/")
    if not source.is_dir():
        return
    try:
        shutil.copytree(source, folder, dirs_exist_ok=True)
    except (OSError, shutil.Error, RecursionError) as error:  # a C file in the guest's kernel may nest folders
        raise HourglassError(f"{folder}: the collected files cannot be written: {error}") from error


@contextmanager
def _wall_timeout(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError after this wall time."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, lambda: signal.raise_signal(signal.SIGALRM))
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if timer.finished.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


def _report(recording: Recording, exit_status: int) -> dict[str, Any]:
    """Return the object of `--json`."""
    program, info = recording.apps[NAME], recording.info
    return {
        "exit": exit_status,
        "virtual_s": info.virtual_s,
        "wall_s": info.wall_s,
        "cpu_s": program.cpu_s,
        "digest": info.digest,
        "kernel": info.kernel.release,
        "seed": info.seed,
        "stdout": program.stdout,
        "stderr": program.stderr,
    }
