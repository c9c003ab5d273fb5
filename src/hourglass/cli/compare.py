# SPDX-License-Identifier: Apache-2.0
"""`hourglass compare`: runs side by side, as a table, a picture or JSON."""

from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType

import hourglass
from hourglass.cli import output, pictures, tables
from hourglass.errors import InputError
from hourglass.results.compare import Cell, Row, compare
from hourglass.results.groups import Group, compare_groups, groups, over_seeds
from hourglass.results.labels import labels
from hourglass.results.recording import Recording


def compare_runs(places: list[Path], out: Path | None, json: bool) -> None:
    """Holds the runs against the first of them; as means over their seeds where these alone repeat a setting."""
    runs = hourglass.load_all(places)
    if len(runs) < 2:
        raise InputError("RUN", str(places[0]), "is one run; two or more, or the folder of a sweep, can be compared")
    rows, names = compare(runs), labels(runs)
    if out is not None:
        pictures.plots().candlestick(runs, names, out)
    if json:
        output.show_json(
            {
                "schema": 1,
                "runs": [str(run.path) for run in runs],
                "labels": names,
                "figures": [row_data(row) for row in rows],
            }
        )
        return
    output.show(_table(rows, runs, names))
    if out is not None:
        output.show(f"picture  {out}", whole_lines=True)


def row_data(row: Row) -> dict[str, object]:
    """A figure of each run, as `--json` has it."""
    return {"figure": row.figure, "name": row.name, "unit": row.unit, "runs": [_cell(cell) for cell in row.cells]}


def _cell(cell: Cell) -> dict[str, object]:
    return asdict(cell) | {"significant": cell.significant}


def _table(rows: list[Row], runs: list[Recording], names: list[str]) -> RenderableType:
    found = groups(runs)
    if over_seeds(runs, found):
        rows, told, note = compare_groups(rows, found), [_group(one, runs) for one in found], tables.OF_SEEDS
        tests = [one.test for one in found]
    else:
        told = [_described(run, name, runs[0]) for run, name in zip(runs, names, strict=True)]
        tests, note = [run.test.name for run in runs], tables.OF_RUNS
    return tables.comparison(rows, told, output.screen().width, "\n".join(filter(None, (note, _other_tests(tests)))))


def _other_tests(tests: list[str]) -> str:
    """Why some have no *, if so."""
    others = [f"{tables.letter(place)} {test}" for place, test in enumerate(tests) if test != tests[0]]
    return f"no * where another test than A's {tests[0]} loads the path: {', '.join(others)}" if others else ""


def _group(one: Group, runs: list[Recording]) -> str:
    first = runs[one.members[0]]
    seeds = f"{len(one.members)} seeds" if len(one.members) > 1 else "1 seed"
    return f"{one.label} ({first.name}, {seeds}, Linux {first.info.kernel.release})"


def _described(run: Recording, name: str, first: Recording) -> str:
    same = ", the same records as A" if run is not first and run.info.digest == first.info.digest else ""
    label = "" if name in (run.name, run.path.resolve().name) else f"{name}  "
    return f"{label}{run.path} ({run.name}, Linux {run.info.kernel.release}{same})"
