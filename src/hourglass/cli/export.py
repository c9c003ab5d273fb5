# SPDX-License-Identifier: Apache-2.0
"""`hourglass export`: runs as files of other tools."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

import hourglass
from hourglass.cli import output
from hourglass.errors import InputError
from hourglass.flent.write import stem, write
from hourglass.results import sweeps, tidy
from hourglass.results.files import TABLE_FILE
from hourglass.results.recording import Recording


def _flent(run: Recording, folder: Path) -> list[Path]:
    return [write(run, folder)]


def _tables(run: Recording, folder: Path, kind: str) -> list[Path]:
    tables = {"figures": tidy.figures(run), "series": tidy.series(run)}
    return [_table(table, folder / f"{stem(run)}.{name}.{kind}") for name, table in tables.items()]


def _table(table: pl.DataFrame, place: Path) -> Path:
    if place.suffix == ".csv":
        table.write_csv(place)
    else:
        table.write_parquet(place)
    return place


FLENT, TABLES = "flent", ("csv", "parquet")
FORMATS = (FLENT, *TABLES)


def export_runs(places: list[Path], out: Path | None, kind: str) -> None:
    """Writes each run as files of a kind; a sweep as its table, or for Flent its runs one by one."""
    if kind not in FORMATS:
        raise InputError("--format", kind, f"is one of {', '.join(FORMATS)}")
    for place in places:
        if kind in TABLES and sweeps.is_sweep(place):
            name = f"{place.resolve().name}.{kind}" if out else f"{Path(TABLE_FILE).stem}.{kind}"
            _written(kind, out or place, partial(_sweep, place, name))
            continue
        for run in hourglass.load_all([place]):
            write_run = partial(_flent, run) if kind == FLENT else partial(_tables, run, kind=kind)
            _written(kind, out or (run.path if run.path.is_dir() else run.path.parent), write_run)


def _sweep(place: Path, name: str, folder: Path) -> list[Path]:
    there, file = place / TABLE_FILE, folder / name
    if file.suffix != there.suffix:
        return [_table(sweeps.table(place), file)]
    if file.resolve() != there.resolve():
        shutil.copyfile(there, file)
    return [file]


def _written(kind: str, folder: Path, write: Callable[[Path], list[Path]]) -> None:
    """Makes the folder, has the files written there, says which."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = write(folder)
    except OSError as error:
        raise InputError("--out", str(folder), f"cannot be written ({error.strerror})") from error
    for file in written:
        output.show(f"{kind}  {file}", whole_lines=True)
