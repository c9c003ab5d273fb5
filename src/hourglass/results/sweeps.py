# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep as its runs, told apart by the axes of its table."""

import contextlib
import json
from pathlib import Path

import polars as pl

from hourglass.errors import InputError
from hourglass.results.files import RECORDS_FILE, RUNS_FOLDER, TABLE_FILE
from hourglass.results.labels import short_names, written
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording

LABELS = "hourglass.labels"
"""What the table's metadata call the names that the sweep's file gives to values: {axis: {value: name}} as JSON."""
RUN, STATUS, DONE = "run", "status", "done"


def is_sweep(place: Path) -> bool:
    """Whether a folder is that of a sweep."""
    return (place / TABLE_FILE).is_file()


def table(place: Path) -> pl.DataFrame:
    """The table of a sweep. Raises `InputError`."""
    try:
        return pl.read_parquet(place / TABLE_FILE)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("run", str(place), f"holds no table of a sweep: {' '.join(str(error).split())}") from error


def runs(place: Path) -> list[Recording]:
    """The runs that were made, in the table's order; one that stands for several cells is there once. Raises
    `InputError`."""
    found = _axes(place)
    if not found:
        raise InputError("run", str(place), "is a sweep of which no run was made")
    return [open_run(_folder(place, key), axes, place.resolve().name) for key, axes in found.items()]


def run(path: Path) -> Recording:
    """The run in a directory; in that of a sweep, told apart by its axes as well. Raises `InputError`."""
    there = path.resolve()
    place, axes = there.parent.parent, {}
    if there.parent.name == RUNS_FOLDER and is_sweep(place):
        with contextlib.suppress(InputError):  # a table that cannot be read does not concern the run
            axes = _axes(place).get(there.name, {})
    return open_run(path, axes, place.name if axes else "")


def _axes(place: Path) -> dict[str, dict[str, str]]:
    """Of each run that was made, what the values of its axes are called."""
    found = table(place)
    axes = found.columns[: found.columns.index(RUN)]
    done = found.filter(pl.col(STATUS) == DONE).unique(RUN, keep="first", maintain_order=True)
    from pyarrow import parquet as pq  # a tenth of a second, which other readers of runs need not wait for

    labels = json.loads((pq.read_schema(place / TABLE_FILE).metadata or {}).get(LABELS.encode(), b"{}"))
    names = short_names([tuple(axis.split(".")) for axis in axes])
    short = dict(zip(axes, names.values(), strict=True))

    def called(axis: str, value: object) -> str:
        return str(labels.get(axis, {}).get(written(value), f"{short[axis]}={written(value)}"))

    return {row[RUN]: {axis: called(axis, row[axis]) for axis in axes} for row in done.iter_rows(named=True)}


def _folder(place: Path, key: str) -> Path:
    """The directory of a run: in the sweep's folder, or in that which sweeps beside each other share."""
    found = next((one for one in (place, place.parent) if (one / RUNS_FOLDER / key).is_dir()), place)
    folder = found / RUNS_FOLDER / key
    if folder.is_dir() and not (folder / RECORDS_FILE).is_file():
        raise InputError("run", str(place), "holds summaries only (--keep summary); sweep again with --keep records")
    return folder
