# SPDX-License-Identifier: Apache-2.0
"""Files that are complete or not there, and what stands for their content."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hourglass.errors import HourglassError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden place beside `path` to write to: a file, or a folder to be made. It takes the place of `path` when the
    block ends well, and is deleted otherwise. A folder does not replace one that has something in it."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield half
        half.replace(path)
    finally:
        if half.is_dir():
            shutil.rmtree(half, ignore_errors=True)
        else:
            half.unlink(missing_ok=True)


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """What cannot be written in the block is an `HourglassError` that says so of `what` at `path`."""
    try:
        yield
    except OSError as error:
        raise HourglassError(f"{path}: {what} cannot be written: {error.strerror or error}") from error


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, content: bytes) -> None:
    """Writes a file as a whole or not at all; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as half:
        half.write_bytes(content)
