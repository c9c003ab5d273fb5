# SPDX-License-Identifier: Apache-2.0
"""`hourglass compare`: runs side by side, as a table, a picture or JSON."""

from dataclasses import asdict
from pathlib import Path

import hourglass
from hourglass.cli import output, pictures, tables
from hourglass.errors import InputError
from hourglass.results.compare import Cell, Row, compare
from hourglass.results.labels import labels
from hourglass.results.recording import Recording


def compare_runs(places: list[Path], out: Path | None, json: bool) -> None:
    """Holds the runs against the first of them."""
    if len(places) < 2:
        raise InputError("RUN", str(places[0]), "two or more run directories are needed to compare")
    runs = hourglass.load_all(places)
    rows, names = compare(runs), labels(runs)
    if out is not None:
        pictures.plots().candlestick(runs, names, out)
    if json:
        output.show_json({"schema": 1, "runs": [str(run.path) for run in runs], "figures": [_row(row) for row in rows]})
        return
    output.show(
        tables.comparison(
            rows, [_described(run, name, runs[0]) for run, name in zip(runs, names, strict=True)], output.screen().width
        )
    )
    if out is not None:
        output.show(f"picture  {out}", whole_lines=True)


def _row(row: Row) -> dict[str, object]:
    return {"figure": row.figure, "name": row.name, "unit": row.unit, "runs": [_cell(cell) for cell in row.cells]}


def _cell(cell: Cell) -> dict[str, object]:
    return asdict(cell) | {"significant": cell.significant}


def _described(run: Recording, name: str, first: Recording) -> str:
    same = ", the same records as A" if run is not first and run.info.digest == first.info.digest else ""
    label = "" if name in (run.name, run.path.resolve().name) else f", {name}"
    return f"{run.path} ({run.name}{label}, Linux {run.info.kernel.release}{same})"
