# SPDX-License-Identifier: Apache-2.0
"""The grid of a study without parts."""

from pathlib import Path
from typing import Any

from hourglass.studies.grid import Grid
from hourglass.studies.reader import parse


def grid_of(data: dict[str, Any], name: str = "study", folder: Path = Path()) -> Grid:
    """Return the grid of a table."""
    study = parse(data, name, folder)
    return study.column_grid(study.parts[0], ("",)).grid
