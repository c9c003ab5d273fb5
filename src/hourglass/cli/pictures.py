# SPDX-License-Identifier: Apache-2.0
"""Load the drawing package. Matplotlib's list of fonts is stored in Hourglass's cache, not in the user's home.

`PictureProcess` starts this module as a program, `python -m hourglass.cli.pictures`.
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

from hourglass.cli.startup import collect_cycles_rarely
from hourglass.host import directories, hardware
from hourglass.host.process import ONE_THREAD
from hourglass.results.run_files import PICTURE_FILE

if TYPE_CHECKING:
    from hourglass.results.recording import Recording


def plots() -> ModuleType:
    """Return the package that draws. Its first import takes a second."""
    os.environ.setdefault("MPLCONFIGDIR", str(directories.cache() / "matplotlib"))
    return import_module("hourglass.plots")


class PictureProcess:
    """Draws the picture of a run in a separate process. The process loads the drawing package during the run, and draws
    while this one prints the table. If it fails, this one draws. It ends with the block, and with this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._recorded: int | None = None  # the run's directory, open
        self._over = False  # the run ended, so it is too late to start
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
        """Start the process. With a single CPU, or after the end of the run, load the drawing package here."""
        with self._lock, contextlib.suppress(OSError):
            if not self._over and hardware.cpus() > 1 and Path("/proc/self/fd").exists():
                self._process = _start()
                return
        plots()

    def begin(self, directory: Path) -> None:
        """Send the directory of the records, which is renamed later."""
        with self._lock:
            self._over = True
        if self._process is not None and self._process.stdin is not None:
            self._recorded = os.open(directory, os.O_RDONLY)
            with contextlib.suppress(BrokenPipeError):  # it died, which `finish` handles
                self._process.stdin.write(f"/proc/{os.getpid()}/fd/{self._recorded}".encode())
                self._process.stdin.close()

    def finish(self, run: "Recording") -> Path:
        """Return the path of the finished picture. Raises the errors of drawing."""
        picture = run.path / PICTURE_FILE
        if self._process is None or self._process.wait() != 0:
            plots().timeseries(run, picture)
        return picture


def _start() -> subprocess.Popen[bytes]:
    """Start the process in a separate session, so Ctrl-C reaches only this one. It ends at the end of its input. The
    kernel's signal at a parent's death (`host/process.py`) comes when a thread ends, and the thread of `load` ends
    early. -P: no module is imported from the current directory. Its errors are discarded: the command draws again."""
    argv = [sys.executable, "-P", "-m", "hourglass.cli.pictures"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(argv, stdin=pipe, stdout=nothing, stderr=nothing, start_new_session=True,
                            env=ONE_THREAD | os.environ)  # fmt: skip


def main() -> None:
    """Draw the run in the directory on stdin. End at once if stdin ends without one."""
    queue: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(queue,), daemon=True).start()
    collect_cycles_rarely()
    draw, run_directory = plots().timeseries, import_module("hourglass.results.run_directory")
    status = 1
    with contextlib.suppress(Exception):  # the command draws again and reports the error
        os.chdir(queue.get())
        draw(run_directory.open_run(Path()), Path(PICTURE_FILE))
        status = 0
    os._exit(status)  # skips the teardown of modules


def _listen(queue: "SimpleQueue[bytes]") -> None:
    if directory := os.read(0, 1 << 10):
        queue.put(directory)
    else:
        os._exit(1)


if __name__ == "__main__":
    main()
