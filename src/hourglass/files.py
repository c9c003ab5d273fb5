# SPDX-License-Identifier: Apache-2.0
"""Write files completely or not at all, read untrusted ones, and compute digests."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hourglass.errors import HourglassError, InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk or quota."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a hidden path next to `path` to write to: a file, or a folder to create. It replaces `path` if the block
    ends without an error, and is deleted otherwise. A folder does not replace one that has content."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield half
        half.replace(path)
    finally:
        delete(half)


def delete(path: Path) -> None:
    """Delete a file, or a folder as far as possible. A guest may nest folders deeper than Python recurses."""
    if not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", path.absolute()], stderr=subprocess.DEVNULL, check=False)


@contextmanager
def writing(path: Path, content: str) -> Iterator[None]:
    """Turn an OSError of the block into an `HourglassError` that names `content` and `path`."""
    try:
        yield
    except OSError as error:
        raise HourglassError(f"{path}: {content} cannot be written: {error.strerror or error}") from error


def regular(path: Path, most: int) -> bytes:
    """Return the content of a file that may be untrusted. Raises OSError for a link, a device or a FIFO, and for more
    than `most` bytes, without reading them."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "it is a link", str(path)) from None
        raise
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
        return opened.read(status.st_size)


_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""The beginning of an escaped surrogate."""


def parsed(content: bytes) -> Any:
    """Return the value of JSON that may be untrusted; NaN and Infinity are null. Raises ValueError if it is invalid, is
    nested too deeply, or has a lone surrogate, which no file and no terminal accepts."""
    try:
        value = json.loads(content, parse_constant=lambda _: None)
        if _HALVES.search(content):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it contains half a letter (a lone surrogate)") from None
    return value


@contextmanager
def output(path: Path, content: str) -> Iterator[Path]:
    """Yield a hidden path to write to. It replaces the file `path` if the block ends without an error; otherwise the
    old file stays. Raises like `output_errors`."""
    with output_errors(path, content), replacing(path) as half:  # replaces a link, does not follow it
        yield half


@contextmanager
def output_errors(path: Path, content: str) -> Iterator[None]:
    """Raise `InputError` instead of OSError if the path cannot be written, `HourglassError` if the disk is full."""
    try:
        yield
    except OSError as error:
        reason = f"{content} cannot be written: {error.strerror or error}"
        if error.errno is None or error.errno in FULL:
            raise HourglassError(f"{path}: {reason}") from error
        raise InputError("out", str(path), reason) from error


LOG_MAX = 16 << 20
"""Bytes of a log. A program of a guest can make its kernel print without end, a C file the compiler."""


class BoundedLog:
    """Writes lines to a log, and leaves out those beyond `LOG_MAX` bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self._written = file, 0

    def write(self, line: bytes) -> None:
        """Write a line, which has no line break."""
        if self._written > LOG_MAX:
            return
        self._written += len(line) + 1
        if self._written > LOG_MAX:
            line = b"the log is longer than %d MiB; the rest is left out" % (LOG_MAX >> 20)
        self.file.write(line + b"\n")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as half:
        half.write_bytes(content)
