# SPDX-License-Identifier: Apache-2.0
"""`hourglass export`: runs as files of other tools."""

from pathlib import Path

import hourglass
from hourglass.cli import output
from hourglass.errors import InputError
from hourglass.flent.write import write


def export_runs(places: list[Path], out: Path | None) -> None:
    """Writes a `.flent.gz` of each run."""
    if out is not None and not out.is_dir():
        raise InputError("--out", str(out), "there is no such directory")
    for place in places:
        try:
            written = write(hourglass.load(place), out or place)
        except OSError as error:
            raise InputError("--out", str(out or place), f"cannot be written ({error.strerror})") from error
        output.show(f"flent  {written}", whole_lines=True)
