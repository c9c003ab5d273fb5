# SPDX-License-Identifier: Apache-2.0
"""The command `suite` and its options; what it does is in `suite.py`."""

from pathlib import Path
from typing import Annotated

import typer

from hourglass.cli.options import Jobs, Json, Junit, Kernel

EXAMPLES = """\
hourglass suite fairness --quick
hourglass suite bbr --kernel 6.12
hourglass suite bbr --kernel 6.12 --update-baseline
hourglass suite robustness --cc cubic,bbr --junit verdicts.xml"""


def suite(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="bbr, fairness, l4s, responsiveness, rfc9743 or robustness; or a file."),
    ],
    ccs: Annotated[
        str | None,
        typer.Option(
            "--cc", metavar="A,B,...", help="The columns: congestion controls, or files of them; default: the suite's."
        ),
    ] = None,
    kernel: Kernel = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed, and fewer settings.")] = False,
    seeds: Annotated[
        str | None, typer.Option(metavar="A-B", help="These in place of the suite's; 101-105 of a baseline.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for runs and pages; default: suites.")] = None,
    jobs: Jobs = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What it is held against; default: the suite's for the kernel.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update-baseline", help="Make these figures the baseline; what is not run stays.")
    ] = False,
    junit: Junit = None,
    json: Json = False,
) -> None:
    """Examine congestion controls: a matrix of figures and verdicts, one page.

    Exits with 1 when a cell is worse than the baseline. Cached runs are reused, so an interrupted suite resumes.
    """
    from hourglass.cli.suite import run_suite

    raise typer.Exit(run_suite(name, ccs, kernel, quick, seeds, out, jobs, baseline, update, junit, json))
