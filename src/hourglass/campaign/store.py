# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep.

    runs/KEY/           a run directory, complete or not there at all
    runs/KEY.failed/    the last attempt failed: its log, and the reason in run.json
    table.parquet       one row per cell
    runs.lock           held while a sweep works here

A run's place follows from its scenario and its kernel, so a run that is there is never made again, whichever sweep file
asked for it first. Whatever dies leaves hidden folders at most, which the next sweep deletes.
"""

import contextlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from hourglass import locks
from hourglass.contract.run import SCHEMA, FailedRun
from hourglass.contract.summary import Summary
from hourglass.errors import InputError
from hourglass.files import replacing
from hourglass.results.directory import readable_errors
from hourglass.results.files import CONSOLE_FILE, RECORDS_FILE, RUN_FILE, RUNS_FOLDER, SUMMARY_FILE, TABLE_FILE

Keep = Literal["records", "summary"]
KEEPS: tuple[Keep, ...] = ("records", "summary")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class Store:
    """The folder `out` of a sweep; `keep` says what remains of each run."""

    def __init__(self, out: Path, keep: Keep, runs: Path | None = None) -> None:
        self.out, self.keep = out, keep
        self.runs = runs or out / RUNS_FOLDER
        self.table = out / TABLE_FILE

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder for one sweep and removes what an earlier one left half-made."""
        with readable_errors(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
            self.runs.mkdir(parents=True, exist_ok=True)
        with locks.held(self.runs.with_name(f"{self.runs.name}.lock"), self._busy):
            self.sweep_out()
            yield

    def _busy(self) -> None:
        raise InputError("out", str(self.out), "another sweep is at work in this folder")

    def sweep_out(self) -> None:
        """Deletes the hidden folders of runs that never became complete."""
        for left in self.runs.glob(".*"):
            shutil.rmtree(left, ignore_errors=True)

    def place(self, key: str) -> Path:
        return self.runs / key

    def done(self, key: str) -> bool:
        """Whether the run is there, with at least what is to be kept."""
        place = self.place(key)
        wanted = [SUMMARY_FILE, RUN_FILE] + ([RECORDS_FILE] if self.keep == "records" else [])
        return all((place / name).is_file() for name in wanted)

    def summary(self, key: str) -> Summary | None:
        """The run's summary, or None when it is not there."""
        try:
            return Summary.model_validate_json((self.place(key) / SUMMARY_FILE).read_bytes())
        except FileNotFoundError:
            return None

    def failure(self, key: str) -> str | None:
        """Why the last attempt failed, in one line; None when there is no such attempt."""
        failed = self.runs / f"{key}.failed" / RUN_FILE
        try:
            return str(json.loads(failed.read_text("utf-8")).get("error", "unknown reason")).splitlines()[0]
        except (FileNotFoundError, ValueError, IndexError):
            return None

    def log(self, key: str) -> Path:
        """Where the log of a failed attempt lies."""
        return self.runs / f"{key}.failed" / CONSOLE_FILE

    def settle(self, key: str) -> None:
        """After a complete run: an older failure has had its day."""
        shutil.rmtree(self.runs / f"{key}.failed", ignore_errors=True)

    def fail(self, key: str, reason: str) -> None:
        """Notes a failure that left no folder: the one who made the run is gone."""
        failed = self.runs / f"{key}.failed"
        failed.mkdir(exist_ok=True)
        told = FailedRun(schema=SCHEMA, status="failed", error=reason)
        (failed / RUN_FILE).write_text(told.model_dump_json(by_alias=True, exclude_unset=True) + "\n", "utf-8")


def prune(place: Path) -> None:
    """Deletes what `--keep summary` does not keep; `scenario.json` stays, which makes the same records again."""
    for path in place.iterdir():
        if path.suffix != ".json" or path.name == "plan.json":
            path.unlink()


def pack(place: Path) -> bytes:
    """A run directory as the bytes of a zip file; equal directories are equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(place.iterdir()):
            info = zipfile.ZipInfo(path.name, _ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()


def unpack(content: bytes, place: Path) -> None:
    """Puts a packed directory in its place: complete or not at all."""
    with replacing(place) as half, zipfile.ZipFile(io.BytesIO(content)) as archive:
        half.mkdir()
        for name in archive.namelist():
            (half / Path(name).name).write_bytes(archive.read(name))
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(place)
