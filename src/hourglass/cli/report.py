# SPDX-License-Identifier: Apache-2.0
"""`hourglass report`: runs as one HTML page."""

from pathlib import Path

import hourglass
from hourglass.cli import output
from hourglass.engine import paths
from hourglass.errors import InputError

SUFFIXES = (".html", ".htm")


def report_runs(places: list[Path], out: Path) -> None:
    """Writes the page about the runs."""
    if out.suffix.lower() not in SUFFIXES:
        raise InputError("out", str(out), f"the name must end in {' or '.join(SUFFIXES)}")
    from hourglass.report import write

    write(hourglass.load_all(places), out, paths.cache() / "report")
    output.show(f"report   {out}", whole_lines=True)
