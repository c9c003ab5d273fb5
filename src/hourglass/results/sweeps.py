# SPDX-License-Identifier: Apache-2.0
"""A sweep's folder as its runs, which the axes of its table distinguish."""

import contextlib
import json
import re
from pathlib import Path

import polars as pl

from hourglass.errors import InputError
from hourglass.results.labels import short_names, value_text
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.run_files import RECORDS_FILE, RUNS_FOLDER, TABLE_FILE

LABELS = "hourglass.labels"
"""The key of the table's metadata for the names that the sweep's file gives to values: {axis: {value: name}} as
JSON."""
RUN, STATUS, DONE = "run", "status", "done"
CONDITIONS = ("testbed", "test", "event", "scenario")
"""The tables of a scenario that are no choice: a slow line does not compete with a fast line."""


_KEY = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)
"""A run's folder in that of a sweep."""


def is_sweep(folder: Path) -> bool:
    """Return true if a folder is that of a sweep."""
    return (folder / TABLE_FILE).is_file()


def table(folder: Path) -> pl.DataFrame:
    """Return the table of a sweep. Raises `InputError`."""
    try:
        return pl.read_parquet(folder / TABLE_FILE)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("run", str(folder), f"lacks the table of a sweep: {' '.join(str(error).split())}") from error


def runs(folder: Path) -> list[Recording]:
    """Return the runs of the sweep, in the table's order; a run of several cells occurs once. Raises `InputError`."""
    axes_by_run = _axes(folder)
    if not axes_by_run:
        raise InputError("run", str(folder), "is a sweep without any run")
    return [open_run(_folder(folder, key), axes, folder.resolve().name) for key, axes in axes_by_run.items()]


def run(path: Path) -> Recording:
    """Return the run in a directory; the axes of a sweep's folder apply to it. Raises `InputError`."""
    run_folder = path.resolve()
    sweep_folder, axes = run_folder.parent.parent, {}
    if run_folder.parent.name == RUNS_FOLDER and is_sweep(sweep_folder):
        with contextlib.suppress(InputError):  # an unreadable table does not concern the run
            axes = _axes(sweep_folder).get(run_folder.name, {})
    return open_run(path, axes, sweep_folder.name if axes else "")


def _axes(folder: Path) -> dict[str, dict[str, str]]:
    """Return for each run the names of the values of its axes."""
    frame = table(folder)
    axes = frame.columns[: frame.columns.index(RUN)]
    done = frame.filter(pl.col(STATUS) == DONE).unique(RUN, keep="first", maintain_order=True)
    from pyarrow import parquet as pq  # a tenth of a second, which other readers of runs do not need

    labels = json.loads((pq.read_schema(folder / TABLE_FILE).metadata or {}).get(LABELS.encode(), b"{}"))
    names = short_names([tuple(axis.split(".")) for axis in axes])
    short = dict(zip(axes, names.values(), strict=True))

    def label(axis: str, value: object) -> str:
        return str(labels.get(axis, {}).get(value_text(value), f"{short[axis]}={value_text(value)}"))

    return {row[RUN]: {axis: label(axis, row[axis]) for axis in axes} for row in done.iter_rows(named=True)}


def _folder(sweep_folder: Path, key: str) -> Path:
    """Return the directory of a run: in the sweep's folder, or in the one that neighbouring sweeps share."""
    base = next(
        (candidate for candidate in (sweep_folder, sweep_folder.parent) if (candidate / RUNS_FOLDER / key).is_dir()),
        sweep_folder,
    )
    if not _KEY.fullmatch(key):
        raise InputError("run", str(sweep_folder), f"names a run with an invalid key: {key!r}")
    folder = base / RUNS_FOLDER / key
    if folder.is_dir() and not (folder / RECORDS_FILE).is_file():
        raise InputError(
            "run", str(sweep_folder), "holds summaries only (--keep summary); rerun the sweep with --keep records"
        )
    return folder
