# SPDX-License-Identifier: Apache-2.0
"""The earlier figures of a kernel: `NAME-KERNEL.json` in the folder `baselines` next to the study's file.

    {"schema": 1, "suite": "fairness", "kernel": "6.12", "lines": {LINE: {COLUMN: [value of each seed, ...]}}}

An update replaces the cells that were run and leaves the others: other columns, and settings that `--quick` omits. Its
runs have separate seeds (`SEEDS`): a run that is compared with itself is never worse, and one seed has no spread.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from hourglass import files
from hourglass.errors import InputError
from hourglass.studies.lines import FigureLine
from hourglass.studies.verdicts import Baseline

SCHEMA = 1
SEEDS = tuple(range(101, 106))
"""The default seeds of a baseline. Studies begin with 1."""


def read(path: Path, study: str) -> Baseline | None:
    """Read a baseline; None if there is no file. Raises `InputError` for a file that is not a baseline."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError("--baseline", str(path), f"cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("lines"), dict):
        raise InputError("--baseline", str(path), f"is not a baseline of a study, schema {SCHEMA}")
    if data.get("suite") != study:
        raise InputError("--baseline", str(path), f"is of the study {data.get('suite')}")
    lines: Baseline = data["lines"]
    return lines


def write(path: Path, study: str, kernel: str, new: Sequence[FigureLine], old: Baseline | None) -> None:
    """Write the figures as the new baseline. Raises `HourglassError` if it cannot be written."""
    lines = {id: dict(cells) for id, cells in (old or {}).items()}
    for line in new:
        for column, cell in line.cells.items():
            if cell.values:  # a failed run has none
                lines.setdefault(line.id, {})[column] = list(cell.values)
    head = json.dumps({"schema": SCHEMA, "suite": study, "kernel": kernel})[:-1]
    rows = ",\n".join(f"{json.dumps(id)}: {json.dumps(cells)}" for id, cells in sorted(lines.items()))
    with files.writing(path, "the baseline"):
        files.write(path, f'{head}, "lines": {{\n{rows}\n}}}}\n'.encode())
