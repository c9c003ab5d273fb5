# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass plot`: runs as a picture of one kind, or the list of the kinds."""

from pathlib import Path
from typing import Annotated

import typer

import hourglass
from hourglass.cli import notice, output, pictures
from hourglass.cli.help import examples
from hourglass.cli.options import RUNS
from hourglass.errors import InputError, closest

LIST = "list"


@examples("""\
hourglass plot timeseries runs/A --picture a.svg
hourglass plot box studies/queues""")
def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="One of the kinds below, or list.")],
    paths: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help=f"{RUNS}.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--picture", "--out", metavar="FILE", help="A .png, .svg or .pdf file; default: KIND.png."),
    ] = None,
) -> None:
    """Draw runs: time series, scatter, CDF, boxes, fairness and more."""
    plots = pictures.plots()
    if kind == LIST and not paths:
        output.show(output.listing((name, each.description) for name, each in plots.KINDS.items()))
        return
    if kind not in plots.KINDS:
        raise InputError("KIND", kind, f"{closest(kind, plots.KINDS)}A picture is one of {', '.join(plots.KINDS)}")
    if not paths:
        raise InputError("RUN", "", f"needs runs: hourglass plot {kind} RUN...")
    picture = out or Path(f"{kind}.png")
    runs = hourglass.load_all(paths)
    notice.report_doubts(runs)
    plots.draw(kind, runs, picture)
    output.show(f"picture  {picture}", whole_lines=True)
