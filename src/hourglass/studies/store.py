# SPDX-License-Identifier: Apache-2.0
"""The folder of a study.

    runs/KEY/           a complete run directory, or none
    runs/KEY.failed/    the last attempt failed: its log, and the reason in run.json
    table.parquet       one row per cell, of a study without parts
    NAME.html, NAME.md  the verdicts
    runs.lock           locked while a study works here

A run's directory follows from its scenario and its kernel, so a complete run is never repeated, even for another study.
A process that dies leaves hidden folders at most, which the next study deletes.
"""

import contextlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from hourglass import locks
from hourglass.contract.run_json import SCHEMA, FailedRun
from hourglass.contract.summary import Summary
from hourglass.errors import InputError
from hourglass.files import delete, replacing
from hourglass.results.run_files import CONSOLE_FILE, RECORDS_FILE, RUN_FILE, RUNS_FOLDER, SUMMARY_FILE, TABLE_FILE
from hourglass.results.staging import readable_errors

Keep = Literal["records", "summary"]
KEEPS: tuple[Keep, ...] = ("records", "summary")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class Store:
    """The folder `out` of a study. `keep`: the part of each run that stays. `runs`: the folder of the runs, which
    studies may share."""

    def __init__(self, out: Path, keep: Keep, runs: Path | None = None) -> None:
        self.out, self.keep = out, keep
        self.runs = runs or out / RUNS_FOLDER
        self.table = out / TABLE_FILE

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one study and remove unfinished runs of an earlier one."""
        with readable_errors(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
            self.runs.mkdir(parents=True, exist_ok=True)
        with locks.exclusive(self.runs.with_name(f"{self.runs.name}.lock"), self._busy):
            self.remove_unfinished()
            yield

    def _busy(self) -> None:
        raise InputError("out", str(self.out), "another study is running in this folder; wait for its end")

    def remove_unfinished(self) -> None:
        """Delete the hidden folders of runs that were never completed."""
        for folder in self.runs.glob(".*"):
            delete(folder)

    def directory(self, key: str) -> Path:
        """Return the directory of a run."""
        return self.runs / key

    def done(self, key: str) -> bool:
        """Tell if the run is complete, with at least the files that stay."""
        names = [SUMMARY_FILE, RUN_FILE] + ([RECORDS_FILE] if self.keep == "records" else [])
        return all((self.directory(key) / name).is_file() for name in names)

    def summary(self, key: str) -> Summary | None:
        """Return the run's summary; None without a run."""
        try:
            return Summary.model_validate_json((self.directory(key) / SUMMARY_FILE).read_bytes())
        except FileNotFoundError:
            return None

    def failure(self, key: str) -> str | None:
        """Return the reason of the last failed attempt, in one line; None if there is none."""
        failed = self._failed(key)
        return next(iter(str(failed.get("error", "unknown reason")).splitlines()), None) if failed else None

    def failure_code(self, key: str) -> str:
        """Return the code of the last failed attempt; "" if there is none."""
        return str(self._failed(key).get("code", ""))

    def _failed(self, key: str) -> dict[str, Any]:
        """Return run.json of the last failed attempt; empty if there is none, or none that can be read."""
        try:
            about = json.loads((self.runs / f"{key}.failed" / RUN_FILE).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return about if isinstance(about, dict) else {}

    def log(self, key: str) -> Path:
        """Return the log of a failed attempt."""
        return self.runs / f"{key}.failed" / CONSOLE_FILE

    def settle(self, key: str) -> None:
        """Delete an earlier failure of a run that is complete."""
        delete(self.runs / f"{key}.failed")

    def fail(self, key: str, reason: str) -> None:
        """Note a failure that left no folder, because its worker died."""
        failed = self.runs / f"{key}.failed"
        failed.mkdir(exist_ok=True)
        about = FailedRun(schema=SCHEMA, status="failed", error=reason, code="worker")
        (failed / RUN_FILE).write_text(about.model_dump_json(by_alias=True, exclude_unset=True) + "\n", "utf-8")


def prune(directory: Path) -> None:
    """Delete the files that `--keep summary` does not keep; `scenario.json` stays, which makes the same records
    again."""
    for path in directory.iterdir():
        if path.suffix != ".json" or path.name == "plan.json":
            path.unlink()


def pack(directory: Path) -> bytes:
    """Return a run directory as the bytes of a zip file; equal directories are equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(directory.iterdir()):
            info = zipfile.ZipInfo(path.name, _ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()


def unpack(content: bytes, directory: Path) -> None:
    """Write a packed directory: complete or not at all."""
    with replacing(directory) as half, zipfile.ZipFile(io.BytesIO(content)) as archive:
        half.mkdir()
        for name in archive.namelist():
            (half / Path(name).name).write_bytes(archive.read(name))
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)
