# SPDX-License-Identifier: Apache-2.0
"""Reads and checks a Flent file of any version. A stranger may have written it, so sizes and figures are limited."""

import bz2
import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hourglass import files
from hourglass.errors import InputError
from hourglass.flent.document import NEWEST, Document
from hourglass.flent.versions import converted

FILE_MAX = 256 * 2**20
UNPACKED_MAX = 2**30
"""The most bytes of a file, and of its JSON: ten times those of a one-hour test with a hundred streams."""

CHUNK_BYTES = 2**20


def read_document(path: Path) -> tuple[Document, str]:
    """Return a file as version 4 has it, and its SHA-256. Raises `InputError` if it is not a readable Flent file."""
    try:
        content = _content(path)
        data = files.parsed(_decompressed(path, content))
    except FileNotFoundError:
        raise InputError("run", str(path), "no such file") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError("run", str(path), f"not a Flent file: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise InputError("run", str(path), "not a Flent file: it has no metadata")
    version = data.get("version", 1)
    if type(version) is not int or not 1 <= version <= NEWEST:
        raise InputError("run", str(path), f"format version {version} is not supported; the versions are 1 to {NEWEST}")
    try:
        document = converted(Document.model_validate(_without_nulls(data)))
        _check(document)
        return document, hashlib.sha256(content).hexdigest()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key_path = ".".join(map(str, first["loc"]))[:200]
        raise InputError("run", str(path), f"not a Flent file: {key_path}: {first['msg']}") from error
    except RecursionError:
        raise InputError("run", str(path), "not a Flent file: its JSON is nested too deeply") from None
    except ValueError as error:
        raise InputError("run", str(path), f"not a Flent file: {error}") from None


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")
    if path.stat().st_size > FILE_MAX:
        raise ValueError(f"it is larger than {FILE_MAX >> 20} MiB")
    return path.read_bytes()


def _decompressed(path: Path, content: bytes) -> bytes:
    """Return the JSON of a file. Compressed JSON can be a thousand times larger, so the size is limited."""
    if path.suffix not in (".gz", ".bz2", ".flnt"):
        return content
    packed = io.BytesIO(content)
    with gzip.GzipFile(fileobj=packed) if path.suffix == ".gz" else bz2.BZ2File(packed) as file:
        chunks, size = [], 0
        while chunk := file.read(CHUNK_BYTES):
            chunks.append(chunk)
            size += len(chunk)
            if size > UNPACKED_MAX:
                raise ValueError(f"its decompressed JSON is larger than {UNPACKED_MAX >> 20} MiB")
    return b"".join(chunks)


SECONDS_MAX = 10**6
EPOCH_MAX = 10**10
COUNT_MAX = 2**53
VALUE_MAX = 10.0**12
LOST_MAX = 10**6
STEPS_MAX = 10**6
"""Limits of times and figures. Within them every sum and every time in ns fits 64 bits."""


def _check(document: Document) -> None:
    """Raise `ValueError` for impossible times and figures."""
    meta = document.metadata
    for name in ("length", "total_length", "step_size"):
        if not 0 <= getattr(meta, name) <= SECONDS_MAX:
            raise ValueError(f"metadata.{name.upper()}: must be from 0 to {SECONDS_MAX} s")
    if any(not 0 <= x_s <= SECONDS_MAX for x_s in document.x_values):
        raise ValueError(f"x_values: must be from 0 to {SECONDS_MAX} s")
    span_s = max([meta.length, meta.total_length, *document.x_values])
    if meta.step_size and span_s / meta.step_size > STEPS_MAX:
        raise ValueError(f"metadata.STEP_SIZE: too small, it gives more than {STEPS_MAX} steps")
    for name, values in document.results.items():
        if any(value is not None and abs(value) > VALUE_MAX for value in values):
            raise ValueError(f"results.{name[:80]!r}: a value above {VALUE_MAX:g}")
    for name, points in document.raw_values.items():
        for point in points:
            if bad_key := next((key for key, value in vars(point).items() if not _is_plausible(key, value)), None):
                raise ValueError(f"raw_values.{name[:80]!r}: a point has an impossible {bad_key}")
        numbers = [point.seq for point in points if point.seq is not None]
        if numbers and max(numbers) - min(numbers) > LOST_MAX + len(numbers):
            raise ValueError(f"raw_values.{name[:80]!r}: packet numbers have gaps of more than {LOST_MAX}")
    for name, series in meta.series_meta.items():
        if not 0 <= (series.tcp_retransmit or 0) <= COUNT_MAX:
            raise ValueError(f"SERIES_META.{name[:80]!r}: TCP_RETRANSMIT must be from 0 to {COUNT_MAX}")
        if not 0 <= (series.mean_value or 0) <= VALUE_MAX:
            raise ValueError(f"SERIES_META.{name[:80]!r}: MEAN_VALUE must be from 0 to {VALUE_MAX:g}")
    if not 0 <= meta.failed_runners <= COUNT_MAX:
        raise ValueError(f"metadata.FAILED_RUNNERS: must be from 0 to {COUNT_MAX}")


def _is_plausible(key: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if key == "t":
        return bool(abs(value) <= EPOCH_MAX)
    if key in ("seq", "size", "bytes"):
        return bool(0 <= value <= COUNT_MAX)
    return bool(0 <= value <= SECONDS_MAX if key == "dur" else abs(value) <= VALUE_MAX)


def _without_nulls(table: dict[str, Any]) -> dict[str, Any]:
    """Return the table, at all levels, without keys whose value is null: Flent writes null for unknown values."""
    known_values = {key: value for key, value in table.items() if value is not None}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in known_values.items()}
