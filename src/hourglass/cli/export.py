# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass export`: runs as files of other tools."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

import hourglass
from hourglass import files
from hourglass.cli import notice, output
from hourglass.cli.help import examples
from hourglass.cli.options import RUNS
from hourglass.errors import InputError, closest
from hourglass.flent.read import is_flent
from hourglass.flent.write import stem, write
from hourglass.results import sweeps, tidy
from hourglass.results.recording import Recording
from hourglass.results.run_files import TABLE_FILE, flent_stem


def _flent(run: Recording, folder: Path) -> list[Path]:
    return [write(run, folder)]


def _tables(run: Recording, folder: Path, kind: str) -> list[Path]:
    tables = {"figures": tidy.figures(run), "series": tidy.series(run)}
    return [_table(table, folder / f"{stem(run)}.{name}.{kind}") for name, table in tables.items()]


def _perfetto(run: Recording, folder: Path) -> list[Path]:
    from hourglass.exports import perfetto

    return [perfetto.write(run, folder / f"{stem(run)}.pftrace")]


def _qlog(run: Recording, folder: Path) -> list[Path]:
    from hourglass.exports import qlog

    return qlog.write(run, folder, stem(run))


def _wireshark(run: Recording, folder: Path) -> list[Path]:
    from hourglass.exports import wireshark

    return wireshark.write(run, folder)


def _table(table: pl.DataFrame, path: Path) -> Path:
    content = io.BytesIO()  # polars' own errors of a full disk differ by format
    if path.suffix == ".csv":
        table.write_csv(content)
    else:
        table.write_parquet(content)
    with files.output(path, "the table") as half:
        half.write_bytes(content.getbuffer())
    return path


TABLE_MAX = 2**30
"""Bytes of a sweep's table."""
TABLES = ("csv", "parquet")
VIEWERS = {"flent": _flent, "perfetto": _perfetto, "qlog": _qlog, "wireshark": _wireshark}
FORMATS = (*VIEWERS, *TABLES)


@examples("""\
hourglass export runs/A
hourglass export runs/A --format perfetto
hourglass export runs/A --format csv --out tables
hourglass export studies/queues --format csv""")
def export(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help=f"{RUNS}.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files; default: each run's directory.")
    ] = None,
    kind: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Format of the files.")] = "flent",
) -> None:
    """Write runs for other programs: Flent, Perfetto, qlog, Wireshark, CSV or Parquet.

    The files are Flent data (.flent.gz), traces for Perfetto (.pftrace), TCP as qlog (.sqlog), or a profile of
    Wireshark for captures. CSV and Parquet have figures and series; for a sweep, its table with a row per run.
    """
    if kind not in FORMATS:
        raise InputError("--format", kind, f"{closest(kind, FORMATS)}A format is one of {', '.join(FORMATS)}")
    _refuse_equal_names(paths, out, kind)
    for path in paths:
        if kind in TABLES and sweeps.is_sweep(path):
            name = _sweep_file(path, kind) if out else f"{Path(TABLE_FILE).stem}.{kind}"
            _write_files(kind, out or path, partial(_sweep, path, name))
            continue
        runs = hourglass.load_all([path])
        notice.report_doubts(runs)
        for run in runs:
            write_run = partial(VIEWERS[kind], run) if kind in VIEWERS else partial(_tables, run, kind=kind)
            _write_files(kind, out or (run.path if run.path.is_dir() else run.path.parent), write_run)


def _refuse_equal_names(paths: list[Path], out: Path | None, kind: str) -> None:
    """Raise `InputError` if two Flent files or two sweeps would be written to the same names."""
    sources: dict[Path, Path] = {}
    for path in paths:
        if is_flent(path):
            name = flent_stem(path)
        elif out and kind in TABLES and sweeps.is_sweep(path):
            name = _sweep_file(path, kind)
        else:
            continue
        source = sources.setdefault(((out or path.parent) / name).resolve(), path)
        if source.resolve() != path.resolve():
            raise InputError("RUN", str(path), f"has the name of {source}; export it to another --out")


def _sweep_file(path: Path, kind: str) -> str:
    """Return the name of a sweep's table in a folder of several."""
    return f"{path.resolve().name}.{kind}"


def _sweep(path: Path, name: str, folder: Path) -> list[Path]:
    stored, file = path / TABLE_FILE, folder / name
    if file.suffix != stored.suffix:
        return [_table(sweeps.table(path), file)]
    if file.resolve() != stored.resolve():
        with files.output(file, "the table") as half:
            half.write_bytes(files.regular(stored, TABLE_MAX))
    return [file]


def _write_files(kind: str, folder: Path, write: Callable[[Path], list[Path]]) -> None:
    """Create the folder, write the files and print their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        created = write(folder)
    except OSError as error:
        raise InputError("--out", str(folder), f"cannot be written ({error.strerror or error})") from error
    for file in created:
        output.show(f"{kind}  {file}", whole_lines=True)
