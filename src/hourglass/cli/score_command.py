# SPDX-License-Identifier: Apache-2.0
"""`hourglass score`: make the runs of a candidate and print its score."""

from pathlib import Path
from typing import Annotated

import typer

import hourglass
from hourglass.cli import output
from hourglass.cli.help import examples
from hourglass.cli.options import Jobs, Json, Kernel, RequireSandbox, Seeds, seed_list
from hourglass.cli.progress import display
from hourglass.errors import InputError
from hourglass.results.stats import short
from hourglass.studies.score import LIMIT_S, STUDY, Score


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError("--limit", text, "must be seconds, above 0")
    return seconds


@examples("""\
hourglass score my_cc.c
hourglass score my_cc.c --held-out --json
hourglass score bbr --study mine.toml --keep runs/bbr""")
def score(
    candidate: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="C file or folder of a congestion control, or a built-in one.")
    ],
    study: Annotated[str, typer.Option(metavar="FILE|NAME", help="A study with weights.")] = STUDY,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Score the held-out settings instead of those for training.")
    ] = False,
    kernel: Kernel = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    require_sandbox: RequireSandbox = False,
    limit: Annotated[float, typer.Option(metavar="S", parser=_seconds, help="Wall time in s for the runs.")] = LIMIT_S,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Store the candidate's runs in this folder.")] = None,
    json: Json = False,
) -> int:
    """Score a congestion control from 0 to 100 by the runs of a study, with an interval and its parts.

    A candidate that does not compile, crashes, hangs or takes too long has the score 0, with the reason.
    """
    with display(study) as progress:
        result = hourglass.score(
            candidate, study, held_out=held_out, kernel=kernel, seeds=seed_list(seeds), jobs=jobs, limit_s=limit,
            keep=keep, progress=progress,
        )  # fmt: skip
    if json:
        output.show_json(result.data())
    else:
        show(result)
    return 0


def show(result: Score) -> None:
    """Print the score and its parts, or the failure."""
    about = f"study {result.study}{', held out' if result.held_out else ''}, Linux {result.kernel}"
    if (failure := result.failure) is not None:
        cell = f" (in {failure.cell})" if failure.cell else ""
        output.show(f"{result.candidate}  score 0  {failure.code}: {failure.reason}{cell}", whole_lines=True)
        output.show("\n".join(f"  | {line}" for line in failure.log), whole_lines=True)
        return
    table = output.bare()
    for title in ("part", "value", "95 %", "weight"):
        table.add_column(title, justify="left" if title == "part" else "right")
    for name, part in result.parts.items():
        table.add_row(name, short(part.value), _interval(part.interval), f"{part.weight:g}")
    table.add_row("score", short(result.value), _interval(result.interval), "")
    output.show(table)
    output.show("", f"{result.candidate}: {about}, {result.runs} runs", whole_lines=True)


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else " to ".join(map(short, interval))
