# SPDX-License-Identifier: Apache-2.0
"""What a kernel gave before: `NAME-KERNEL.json` in the folder `baselines` beside the suite's file.

    {"schema": 1, "suite": "fairness", "kernel": "6.12", "lines": {LINE: {CC: [value of each seed, ...]}}}

An update replaces what was run and keeps the rest: of other columns, and of what `--quick` leaves out. Its runs have
seeds of their own (`SEEDS`): a run that is judged by itself is never worse, and one seed has no spread.
"""

import json
from pathlib import Path

from hourglass import files
from hourglass.errors import InputError
from hourglass.suites.judge import Baseline
from hourglass.suites.study import Studied

SCHEMA = 1
SEEDS = tuple(range(101, 106))
"""Of a baseline, unless others are asked for. Suites' own begin with 1."""


def place(studied: Studied) -> Path:
    """Where the baseline of a suite and a kernel is."""
    return studied.suite.baselines / f"{studied.suite.name}-{studied.kernel}.json"


def read(path: Path, suite: str) -> Baseline | None:
    """The baseline; None when there is no such file. Raises `InputError` for a file that is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError("--baseline", str(path), f"cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("lines"), dict):
        raise InputError("--baseline", str(path), f"is no baseline of a suite, schema {SCHEMA}")
    if data.get("suite") != suite:
        raise InputError("--baseline", str(path), f"is of the suite {data.get('suite')}")
    lines: Baseline = data["lines"]
    return lines


def write(path: Path, studied: Studied, old: Baseline | None) -> None:
    """Writes the figures as the new baseline. Raises `HourglassError` when it cannot be written."""
    lines = {id: dict(cells) for id, cells in (old or {}).items()}
    for line in studied.lines:
        for cc, cell in line.cells.items():
            if cell.values:  # a run that failed says nothing
                lines.setdefault(line.id, {})[cc] = list(cell.values)
    head = json.dumps({"schema": SCHEMA, "suite": studied.suite.name, "kernel": studied.kernel})[:-1]
    rows = ",\n".join(f"{json.dumps(id)}: {json.dumps(cells)}" for id, cells in sorted(lines.items()))
    with files.writing(path, "the baseline"):
        files.write(path, f'{head}, "lines": {{\n{rows}\n}}}}\n'.encode())
