# SPDX-License-Identifier: Apache-2.0
"""`hourglass search`: search bad conditions of a congestion control and print the findings."""

from pathlib import Path
from typing import Annotated

import typer

import hourglass
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.cli.options import Dask, Engine, Jobs, Json, Kernel, RequireSandbox, Seed, Settings, Source, integer
from hourglass.cli.progress import display
from hourglass.contract.capabilities import VIRTUAL
from hourglass.errors import InputError
from hourglass.results.stats import short
from hourglass.studies.finding_page import text
from hourglass.studies.findings import SearchResult
from hourglass.studies.search import FACTOR, RIVALS, TRIES
from hourglass.studies.shrink import TRIES as SHRINK


def _factor(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError("--factor", value, "must be a number above 1") from None


@examples("""\
hourglass search L10M --worst goodput --over testbed.link.1.loss=0%..2%
hourglass search L10M --worst=-queue --over testbed.link.1.delay=1ms..90ms
hourglass search two.toml --worst 'min(share, 1-share)' --over stack.qdisc""")
def search(
    scenario: Source,
    *,
    worst: Annotated[
        str, typer.Option(metavar="EXPR", help="A quantity whose small values are bad, like 'goodput / capacity'.")
    ],
    over: Annotated[
        list[str],
        typer.Option(metavar="KEY=VALUE", help="A condition: a range A..B, values A,B, or both; repeatable."),
    ],
    rivals: Annotated[
        str, typer.Option(metavar="KEY=A,B", help="The key of the judged value, and values to compare it with.")
    ] = RIVALS,
    factor: Annotated[
        float, typer.Option(metavar="X", parser=_factor, help="A finding is X times worse than the best rival.")
    ] = FACTOR,
    tries: Annotated[
        int, typer.Option(metavar="N", parser=integer("--tries"), help="The number of conditions.")
    ] = TRIES,
    shrink: Annotated[
        int, typer.Option(metavar="N", parser=integer("--shrink"), help="Maximum attempts to shrink a finding.")
    ] = SHRINK,
    settings: Settings = None,
    seed: Seed = None,
    kernel: Kernel = None,
    engine: Engine = VIRTUAL,
    jobs: Jobs = None,
    dask: Dask = None,
    require_sandbox: RequireSandbox = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the search; default: studies/search-NAME.")
    ] = None,
    json: Json = False,
) -> int:
    """Search conditions in which a control is much worse than another; shrink and explain them.

    An interrupted search continues with the same command.
    """
    with display(scenario) as progress:
        result = hourglass.search(
            scenario, worst, over, rivals=rivals, factor=factor, tries=tries, shrink=shrink, overrides=settings or [],
            seed=seed, kernel=kernel, engine=engine, jobs=jobs, dask=dask, out=out, progress=progress,
        )  # fmt: skip
    if json:
        output.show_json(result.data())
    else:
        show(result)
    return 0


def show(result: SearchResult) -> None:
    """Print a row for each finding, then the counts."""
    if result.findings:
        table = output.bare()
        for title in ("finding", result.control, "best rival", "times worse", "other seeds", "lines"):
            table.add_column(title, justify="left" if title in ("finding", "best rival") else "right")
        for finding in result.findings:
            first = finding.judgements[0]
            table.add_row(
                finding.path(result.out, ".md").name, text(first.value), f"{first.rival} {text(first.best)}",
                short(first.shortfall), f"{finding.held} of {len(finding.judgements) - 1}", str(finding.lines),
            )  # fmt: skip
        output.show(table, "")
    without = f", {len(result.refusals)} without a value (the first: {result.refusals[0]})" if result.refusals else ""
    output.show(f"{result.expression}: {result.tried} conditions, {result.runs} runs made{without}", whole_lines=True)
    output.show(f"folder {result.out}", whole_lines=True)
