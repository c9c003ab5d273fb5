# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass tune`: the settings that minimise a figure, their margin, a picture, and lines for tc and
sysctl."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import hourglass
from hourglass.cli import output, pictures
from hourglass.cli.apply import added_lines
from hourglass.cli.help import examples
from hourglass.cli.options import (
    Dask,
    Force,
    Jobs,
    Json,
    Kernel,
    NoPicture,
    RequireSandbox,
    Seeds,
    Settings,
    Source,
    seed_list,
)
from hourglass.cli.progress import display
from hourglass.contract.figures import plain
from hourglass.results.stats import short
from hourglass.studies.grid import text
from hourglass.studies.table import UNITS
from hourglass.studies.tune_goals import TunedFigure
from hourglass.studies.tuning import TuneMargin, TuneResult

MOST_ROWS = 20
"""The most settings of the front that are printed."""


@examples("""\
hourglass tune R10M --minimise ping.icmp.p99 --over stack.qdisc,stack.cc
hourglass tune R10M --minimise queue --keep 'goodput >= 9mbit' --over stack.cc
hourglass tune L100M --maximise goodput --over stack.tsq,stack.cc --near none""")
def tune(
    scenario: Source,
    *,
    over: Annotated[
        list[str] | None,
        typer.Option("--over", metavar="KEYS", help="Keys to vary: KEY,KEY, KEY=A,B or KEY=LOW..HIGH; repeatable."),
    ] = None,
    minimise: Annotated[str, typer.Option(metavar="FIGURE", help="The figure to minimise, like ping.icmp.p99.")] = "",
    maximise: Annotated[str, typer.Option(metavar="FIGURE", help="The figure to maximise, like goodput.")] = "",
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="LIMIT", help="A limit like 'goodput >= 95% of best'; repeatable."),
    ] = None,
    near: Annotated[
        list[str] | None,
        typer.Option(
            "--near",
            metavar="KEY=VALUES",
            help="Other conditions, each value one; none: only the scenario. Default: other rates and delays.",
        ),
    ] = None,
    settings: Settings = None,
    seeds: Seeds = None,
    kernel: Kernel = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Run all settings under all conditions with all seeds.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of picture and runs; default: studies/tune-NAME.")
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    require_sandbox: RequireSandbox = False,
    force: Force = False,
    no_picture: NoPicture = False,
    json: Json = False,
) -> None:
    """Tune a stack: find the settings that minimise a figure within limits, on a link and its neighbours.

    Prints the Pareto front, the chosen settings, their margin against the scenario's own with a 95 % interval, and the
    lines for tc and sysctl. Cached runs are reused.
    """
    with display(scenario) as progress:
        result = hourglass.tune(
            scenario, over=over or [], minimise=minimise, maximise=maximise, keep=keep or [], near=near or [],
            overrides=settings or [], seeds=seed_list(seeds), kernel=kernel, exhaustive=exhaustive, out=out, jobs=jobs,
            dask=dask, force=force, progress=progress,
        )  # fmt: skip
    picture = None if no_picture else draw(result)
    if json:
        output.show_json(data(result, picture))
    else:
        show(result, picture)


def show(result: TuneResult, picture: Path | None) -> None:
    """Print the front, the choice, its margins and the lines."""
    front = result.table.filter("front").sort(result.goal.name)
    table = output.bare()
    table.add_column("settings on the front", overflow="fold")
    figures = [margin.figure for margin in result.margins]
    for figure in figures:
        table.add_column(_title(figure), justify="right")
    for row in front.head(MOST_ROWS).iter_rows(named=True):
        table.add_row(row["setting"], *(short(row[figure.name]) for figure in figures))
    output.show(table, Text())
    for setting in (each for each in result.settings if each.failure):
        output.show(f"left out: {setting.name}: {setting.failure}", whole_lines=True)
    output.show(f"chosen   {result.chosen.name}", whole_lines=True)
    for margin in result.margins:
        output.show(f"margin   {_margin(margin)}", whole_lines=True)
    for limit in result.unmet:
        output.show(f"missed   {limit}, with the further seeds", whole_lines=True)
    seeds = f"seeds {_span(result.seeds)}, margin by {_span(result.further_seeds)}"
    about = f"{len(result.settings)} settings, {len(result.finalists)} in the last round; {seeds}; {result.runs} runs"
    output.show(f"race     {about}", whole_lines=True)
    output.show(f"links    {'; '.join(each.name for each in result.conditions)}", whole_lines=True)
    if picture is not None:
        output.show(f"picture  {picture}", whole_lines=True)
    for node, commands in added_lines(result.scenario, result.tuned).items():
        output.show(f"on {node}:", *(f"  {line}" for line in commands), whole_lines=True)


def _span(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def _margin(margin: TuneMargin) -> str:
    unit = f" {margin.figure.unit}" if margin.figure.unit else ""
    change = f"{short(margin.default)} to {short(margin.chosen)}{unit}"
    if margin.interval is None:
        return f"{margin.figure.name}: {change}"
    low, high = (f"{'-' if end < 0 else '+'}{short(abs(end))}" for end in margin.interval)
    return f"{margin.figure.name}: {change} [{low}, {high}]"


def _title(figure: TunedFigure) -> str:
    return f"{figure.name} {figure.unit}".strip()


def draw(result: TuneResult) -> Path:
    """Draw all settings, with the front, into the folder of the result."""
    goal, other = (margin.figure for margin in result.margins[:2])
    columns = {goal.name: _column(goal), other.name: _column(other)}
    points = result.table.rename(columns)
    alive = [each for each in result.settings if not each.failure]
    keys = dict.fromkeys(key for each in alive for key in each.changes)
    labels = {key: [text(each.changes.get(key, "default")) for each in alive] for key in keys}
    path = result.out / "front.png"
    title = f"{result.scenario.name}: {result.chosen.name}"
    pictures.plots().sweep(title, points, labels, (), columns[other.name], columns[goal.name], path)
    return path


def _column(figure: TunedFigure) -> str:
    """Return a column's name for the picture: ping.icmp.p99 → ping_icmp_p99_ms."""
    unit = UNITS.get(figure.unit, "")
    return "_".join(filter(None, (plain(figure.name).replace(".", "_"), unit)))


def data(result: TuneResult, picture: Path | None) -> dict[str, Any]:
    """Return the object of `--json`."""
    return {
        "schema": 1,
        "scenario": result.scenario.name,
        "goal": {"figure": result.goal.name, "better": result.goal.better, "unit": result.goal.unit},
        "keep": [limit.text for limit in result.limits],
        "conditions": [{"name": each.name, "changes": each.changes} for each in result.conditions],
        "chosen": result.chosen.changes,
        "margins": [
            {
                "figure": each.figure.name, "unit": each.figure.unit, "default": each.default, "chosen": each.chosen,
                "interval": each.interval, "certain": each.is_certain,
            }
            for each in result.margins
        ],
        "unmet": list(result.unmet),
        "front": result.table.filter("front").to_dicts(),
        "settings": [
            {"changes": each.changes, "values": each.values, "failure": each.failure,
             "finalist": any(each is finalist for finalist in result.finalists)}
            for each in result.settings
        ],
        "seeds": list(result.seeds),
        "further_seeds": list(result.further_seeds),
        "runs": result.runs,
        "picture": None if picture is None else str(picture),
        "commands": added_lines(result.scenario, result.tuned),
    }  # fmt: skip
