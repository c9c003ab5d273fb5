# SPDX-License-Identifier: Apache-2.0
"""`hourglass export`: runs as files of other tools."""

from collections.abc import Callable
from pathlib import Path

import hourglass
from hourglass.cli import output
from hourglass.errors import InputError
from hourglass.flent.write import stem, write
from hourglass.results import tidy
from hourglass.results.recording import Recording


def _flent(run: Recording, folder: Path) -> list[Path]:
    return [write(run, folder)]


def _csv(run: Recording, folder: Path) -> list[Path]:
    places = [folder / f"{stem(run)}.{kind}.csv" for kind in ("figures", "series")]
    for place, table in zip(places, (tidy.figures(run), tidy.series(run)), strict=True):
        table.write_csv(place)
    return places


def _parquet(run: Recording, folder: Path) -> list[Path]:
    places = [folder / f"{stem(run)}.{kind}.parquet" for kind in ("figures", "series")]
    for place, table in zip(places, (tidy.figures(run), tidy.series(run)), strict=True):
        table.write_parquet(place)
    return places


FORMATS: dict[str, Callable[[Recording, Path], list[Path]]] = {"flent": _flent, "csv": _csv, "parquet": _parquet}


def export_runs(places: list[Path], out: Path | None, kind: str) -> None:
    """Writes each run as files of a kind."""
    if kind not in FORMATS:
        raise InputError("--format", kind, f"is one of {', '.join(FORMATS)}")
    for run in hourglass.load_all(places):
        folder = out or (run.path if run.path.is_dir() else run.path.parent)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = FORMATS[kind](run, folder)
        except OSError as error:
            raise InputError("--out", str(folder), f"cannot be written ({error.strerror})") from error
        for file in written:
            output.show(f"{kind}  {file}", whole_lines=True)
