# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass report`: runs as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

import hourglass
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.cli.options import RUNS
from hourglass.errors import InputError

SUFFIXES = (".html", ".htm")


@examples("""\
hourglass report runs/A runs/B --page report.html""")
def report(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help=f"{RUNS}; the first is the baseline.")],
    out: Annotated[
        Path, typer.Option("--page", "--out", metavar="FILE", help="The HTML file; default: report.html.")
    ] = Path("report.html"),
) -> None:
    """Write an HTML report that works offline."""
    if out.suffix.lower() not in SUFFIXES:
        raise InputError("--page", str(out), f"the name must end in {' or '.join(SUFFIXES)}")
    from hourglass.report import write

    write(hourglass.load_all(paths), out)
    output.show(f"report   {out}", whole_lines=True)
