# SPDX-License-Identifier: Apache-2.0
"""The form of a Flent file: the keys that are read or written here. What else a file has is left alone."""

import bz2
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError

from hourglass.errors import InputError

NEWEST = 4
OLDEST = 2
"""Versions of the format with points (`raw_values`) in them."""


class Part(BaseModel):
    """A part of a file."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    def told(self) -> dict[str, Any]:
        """As JSON: the keys that were set."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Point(Part):
    """A sample at `t`, s since 1970, of `val` in the series' unit. Delays are in ms.

    Of a TCP series `dur` is how long it is the mean of, s. Of packets `seq` is the number, and those that are `lost`
    have no value. `bytes`: of a fetch, in our own files only. `tcp_…`: what ss told, packets, ms and Mbit/s."""

    t: float
    val: float | None = None
    dur: float | None = None
    seq: int | None = None
    lost: bool = False
    owd_up: float | None = None
    owd_down: float | None = None
    ipdv_up: float | None = None
    ipdv_down: float | None = None
    bytes: int | None = None
    tcp_cwnd: float | None = None
    tcp_rtt: float | None = None
    tcp_rtt_var: float | None = None
    tcp_pacing_rate: float | None = None
    tcp_delivery_rate: float | None = None


class Words(Part):
    """A table whose keys Flent writes in capitals."""

    model_config = ConfigDict(alias_generator=str.upper, populate_by_name=True)


class SeriesMeta(Words):
    """What Flent says of a series; further keys are kept as they are."""

    model_config = ConfigDict(extra="allow")

    cong_control: str = ""
    tcp_retransmit: int | None = None
    computed_late: bool = False


class Metadata(Words):
    """What Flent says of the test. Lengths are in s."""

    name: str = ""
    title: str = ""
    note: str | None = None
    host: str = ""
    hosts: tuple[str, ...] = ()
    local_host: str = ""
    time: str = ""
    t0: str = ""
    length: float = 0
    total_length: float = 0
    step_size: float = 0
    test_parameters: dict[str, str] = Field(default_factory=dict)
    kernel_release: str = ""
    failed_runners: int = 0
    series_meta: dict[str, SeriesMeta] = Field(default_factory=dict)


class Document(Part):
    """A file. `results` has a value for each of `x_values`, s; `raw_values` the samples as they were taken."""

    version: int
    x_values: list[float] = Field(default_factory=list)
    results: dict[str, list[float | None]] = Field(default_factory=dict)
    raw_values: dict[str, list[Point]] = Field(default_factory=dict)
    metadata: SerializeAsAny[Metadata]


def read(path: Path) -> tuple[Document, str]:
    """A file and its SHA-256. Raises `InputError` when it is none that can be read."""
    try:
        content = path.read_bytes()
        packed = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".flnt": bz2.decompress}.get(path.suffix)
        data = json.loads(packed(content) if packed else content)
    except FileNotFoundError:
        raise InputError("run", str(path), "there is no such file") from None
    except (OSError, EOFError, ValueError) as error:
        raise InputError("run", str(path), f"is no Flent file: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise InputError("run", str(path), "is no Flent file: it has no metadata")
    version = data.get("version")
    if not isinstance(version, int) or not OLDEST <= version <= NEWEST:
        raise InputError("run", str(path), f"has version {version}; versions {OLDEST} to {NEWEST} are read")
    try:
        return Document.model_validate(_without_nulls(data)), hashlib.sha256(content).hexdigest()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError("run", str(path), f"is no Flent file: {where}: {first['msg']}") from error


def _without_nulls(table: dict[str, Any]) -> dict[str, Any]:
    """Without the keys whose value is null, in tables within it too: Flent writes what it does not know so."""
    told = {key: value for key, value in table.items() if value is not None}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in told.items()}
