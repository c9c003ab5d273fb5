# SPDX-License-Identifier: Apache-2.0
"""`hourglass compare`: runs side by side, as a table, a picture or JSON."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import hourglass
from hourglass.cli import output, tables
from hourglass.errors import InputError
from hourglass.results.compare import Cell, compare
from hourglass.results.run import Run


def compare_runs(places: list[Path], out: Path | None, json: bool) -> None:
    """Holds the runs against the first of them."""
    if len(places) < 2:
        raise InputError("RUN", str(places[0]), "two or more run directories are needed to compare")
    runs = [hourglass.load(place) for place in places]
    rows = compare(runs)
    if out is not None:
        from hourglass.plots import candlestick

        candlestick(runs, labels(runs), out)
    if json:
        figures = [
            {"figure": row.figure, "unit": row.unit, "runs": [_cell(cell) for cell in row.cells]} for row in rows
        ]
        output.show_json({"schema": 1, "runs": [str(run.path) for run in runs], "figures": figures})
        return
    output.show(tables.comparison(rows, [_described(run, runs[0]) for run in runs], output.screen().width))
    if out is not None:
        output.show(f"picture  {out}", whole_lines=True)


def labels(runs: list[Run]) -> list[str]:
    """What a run is called in a picture: its scenario's name, or its directory's where names repeat."""
    names = Counter(run.scenario["name"] for run in runs)
    return [run.scenario["name"] if names[run.scenario["name"]] == 1 else run.path.resolve().name for run in runs]


def _cell(cell: Cell) -> dict[str, object]:
    return asdict(cell) | {"significant": cell.significant}


def _described(run: Run, first: Run) -> str:
    same = ", the same records as A" if run is not first and run.info["digest"] == first.info["digest"] else ""
    return f"{run.path} ({run.scenario['name']}, Linux {run.info['kernel']['release']}, seed {run.info['seed']}{same})"
