# SPDX-License-Identifier: Apache-2.0
"""Make the folder of a sweep with synthetic runs."""

import pathlib
from typing import Any

from studies.grids import grid_of

from hourglass.studies import table
from results.synthetic import Flow, Recipe, make

SWEEP: dict[str, Any] = {
    "scenario": "L100M",
    "axes": {"stack.tsq": ["off", "default"], "test.length": [10], "seed": [1, 2]},
    "labels": {"stack.tsq": {"default": "as in Linux"}},
}


def folder(path: pathlib.Path, data: dict[str, Any] | None = None, states: str = "ab!b") -> pathlib.Path:
    """A sweep's folder; `states`: the name of each cell's run, "!" for one that failed."""
    grid = grid_of(data or SWEEP, path.name, path)
    for number, name in enumerate(dict.fromkeys(states.replace("!", ""))):
        make(path / "runs" / name, Recipe(flows=[Flow(rtt_us=lambda t, number=number: 2000 + 500 * number)]))
    rows = [
        (cell, {"run": name, "status": "failed" if name == "!" else "done"}, {} if name == "!" else {"fairness": 1.0})
        for cell, name in zip(grid.cells, states, strict=True)
    ]
    table.write(table.build(grid, rows), path / "table.parquet")
    return path
