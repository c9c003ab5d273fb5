# SPDX-License-Identifier: Apache-2.0
"""Loads what draws. Matplotlib keeps a list of the fonts it found: in our cache, not in the user's home.

As a program, `python -m hourglass.cli.pictures`, it is the process that a `Beside` starts.
"""

import contextlib
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Self

from hourglass.cli import look_seldom_for_cycles
from hourglass.engine import paths
from hourglass.engine.process import ONE_THREAD
from hourglass.results.files import PICTURE_FILE

if TYPE_CHECKING:
    from hourglass.results.recording import Recording


def plots() -> ModuleType:
    """The package that draws; to load it takes a second the first time."""
    os.environ.setdefault("MPLCONFIGDIR", str(paths.cache() / "matplotlib"))
    return import_module("hourglass.plots")


class Beside:
    """Draws the picture of a run in a process beside ours: it loads what draws while the run is made, and draws while
    we make the table. What it does not do we do. However the block is left, it is gone then, and if we are killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._recorded: int | None = None  # the run's directory, open
        self._over = False  # the run, so that it is too late to start
        self._lock = Lock()  # `load` is called from another thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
        if self._process is not None:
            self._process.kill()
            with self._process:
                pass
        if self._recorded is not None:
            os.close(self._recorded)

    def load(self) -> None:
        """Starts the process; where there is but one CPU, or the run has ended already, loads what draws here."""
        with self._lock, contextlib.suppress(OSError):
            if not self._over and len(os.sched_getaffinity(0)) > 1:
                self._process = _start()
                return
        plots()

    def begin(self, directory: Path) -> None:
        """The records are in this directory, whatever its name will be."""
        with self._lock:
            self._over = True
        if self._process is not None and self._process.stdin is not None:
            self._recorded = os.open(directory, os.O_RDONLY)
            with contextlib.suppress(BrokenPipeError):  # it died: `finish` sees that
                self._process.stdin.write(f"/proc/{os.getpid()}/fd/{self._recorded}".encode())
                self._process.stdin.close()

    def finish(self, run: "Recording") -> Path:
        """Where the picture of the run is, once it is there. Raises what makes that impossible."""
        picture = run.path / PICTURE_FILE
        if self._process is None or self._process.wait() != 0:
            plots().timeseries(run, picture)
        return picture


def _start() -> subprocess.Popen[bytes]:
    """In a session of its own, so that a Ctrl-C reaches only us. It listens for the end of its input, as the kernel's
    word to die with us (`engine/process.py`) goes by threads, and that of `load` ends early. -P: no module comes from
    the current directory."""
    argv = [sys.executable, "-P", "-m", "hourglass.cli.pictures"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(argv, stdin=pipe, stdout=nothing, start_new_session=True, env=ONE_THREAD | os.environ)


def main() -> None:
    """Draws the run in the directory that standard input names; ends at once when that ends without."""
    told: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(told,), daemon=True).start()
    look_seldom_for_cycles()
    draw, opening = plots().timeseries, import_module("hourglass.results.opening")
    status = 1
    with contextlib.suppress(Exception):  # the command tries it too, and says what is wrong
        os.chdir(told.get())
        draw(opening.open_run(Path()), Path(PICTURE_FILE))
        status = 0
    os._exit(status)  # what was imported is not taken apart


def _listen(told: "SimpleQueue[bytes]") -> None:
    if directory := os.read(0, 1 << 10):
        told.put(directory)
    else:
        os._exit(1)


if __name__ == "__main__":
    main()
