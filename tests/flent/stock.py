# SPDX-License-Identifier: Apache-2.0
"""Stock Flent as the reference: its own environment in the cache, its example files, and a process that answers.

It is a separate tool, under the GPL. No file of it is part of this repository.
"""

import fcntl
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hourglass.host import directories

RELEASE = "flent==2.3.0"
TOOLS = (RELEASE, "matplotlib", "numpy")
SCRIPT = Path(__file__).with_name("stock_figures.py")


def environment() -> Path:
    """Return the folder of its environment. Skips the test if it cannot be installed, unless CI is set."""
    folder = directories.cache() / "tools" / RELEASE
    with _locked(folder):
        if not (folder / "bin" / "flent").is_file():
            _run(sys.executable, "-m", "venv", folder)
            _run(folder / "bin" / "pip", "install", "--quiet", *TOOLS)
    return folder


def example_files() -> dict[str, Path]:
    """Return the files that its own tests read, by name: of the versions 2, 3 and 4. They are in its source only."""
    folder = environment()
    examples, source = folder / "examples", folder / "source"
    with _locked(folder):
        if not examples.is_dir():
            pip: list[str | Path] = [folder / "bin" / "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            _run(*pip, "--dest", source, RELEASE)
            (archive,) = source.glob("*.tar.gz")
            _extract(archive, examples)
    return {path.name.removesuffix(".flent.gz"): path for path in sorted(examples.iterdir())}


def _extract(archive: Path, examples: Path) -> None:
    """Write the archive's Flent files into a new folder, which appears when it is complete."""
    partial = examples.with_name("examples.partial")
    partial.mkdir(exist_ok=True)
    with tarfile.open(archive) as files:
        for member in files:
            if "/test_data/" in member.name and member.name.endswith(".flent.gz"):
                content = files.extractfile(member)
                assert content is not None
                (partial / Path(member.name).name).write_bytes(content.read())
    partial.rename(examples)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{RELEASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str | Path) -> None:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode and os.environ.get("CI"):
        pytest.fail(result.stderr)
    if result.returncode:
        pytest.skip("stock Flent cannot be installed here")


class Stock:
    """Stock Flent, in one process for all files."""

    def __init__(self) -> None:
        command = [environment() / "bin" / "python", SCRIPT]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request: Any) -> Any:
        """Return the answer to a request (`stock_figures.py`)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"stock Flent stopped at {request}"
        return json.loads(line)

    def close(self) -> None:
        self.process.communicate()
