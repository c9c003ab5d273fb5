# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass kernel bisect`: find the commit from which on a bound is missed."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from hourglass.builders.kernel.bisect import Bisection, Step, bisect
from hourglass.cli import notice, output
from hourglass.cli.help import examples
from hourglass.cli.options import Bounds, Json, RequireSandbox, Seed, Settings
from hourglass.cli.progress import display
from hourglass.contract.bounds import read_all
from hourglass.errors import InputError
from hourglass.results.sections.check_sections import value
from hourglass.scenario import load
from hourglass.studies.run_check import RunVerdict
from hourglass.studies.run_check import check as check_runs

SHORT = 12
"""Digits of a commit on the terminal."""


@examples("""\
hourglass kernel bisect ~/linux v6.1 v6.12 --bound 'ping.icmp.p50 < 9ms'
hourglass kernel bisect ~/linux v6.1 v6.12 net lib --bound 'tcp_rtt.p99 < 9ms'""")
def find_commit(
    tree: Annotated[Path, typer.Argument(metavar="DIR", help="A git repository of Linux; it is not changed.")],
    good: Annotated[str, typer.Argument(metavar="GOOD", help="A revision that meets the bounds.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="A revision that misses a bound.")],
    within: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH...]", help="Test only commits that touch these paths; default: all."),
    ] = None,
    scenario: Annotated[str, typer.Option(metavar="SCENARIO", help="The scenario to run.")] = "L100M",
    bounds: Bounds = None,
    settings: Settings = None,
    seed: Seed = None,
    require_sandbox: RequireSandbox = False,
    json: Json = False,
) -> None:
    """Find the first commit with a missed bound.

    Revisions that do not build are skipped. For `git bisect run`: hourglass check SCENARIO --tree DIR.
    """
    if good == bad:
        raise InputError("BAD", bad, "is also GOOD; give two different revisions")

    read_all(bounds or [])
    notice.warn(scenario, load(scenario, settings or [], seed=seed))

    def check(kernel: str) -> RunVerdict:
        (verdict,) = check_runs(
            scenario, bounds=bounds or [], overrides=settings or [], seed=seed, kernel=kernel, progress=progress
        )
        return verdict

    def show_step(step: Step[RunVerdict]) -> None:
        if not json:
            output.show(Text(_line(step)), whole_lines=True)

    with display() as progress:
        bisection = bisect(tree, good, bad, check, within=within or [], progress=progress.kernel, on_step=show_step)
    if json:
        output.show_json(_data(bisection))
    elif len(bisection.commits) == 1:
        output.show(Text(f"\nfirst bad commit: {bisection.commits[0]}\n{bisection.subject}"), whole_lines=True)
    else:
        output.show(Text("\none of these, which could not be tested, is the first bad commit:"))
        output.show(Text("\n".join(bisection.commits)), whole_lines=True)


def _line(step: Step[RunVerdict]) -> str:
    """Return "good  0123456789ab  ping.icmp.p99 10.6 ms  tcp: a subject"."""
    checks = step.verdict.checks if step.verdict else []
    figures = ", ".join(f"{check.figure} {value(check)}" for check in checks)
    result = step.why or (str(step.verdict.error).splitlines()[0] if step.verdict and step.verdict.error else figures)
    return f"{step.answer:4}  {step.commit[:SHORT]}  {result}  {step.subject}"


def _data(bisection: Bisection[RunVerdict]) -> dict[str, object]:
    return {
        "schema": 1,
        "first_bad": list(bisection.commits),
        "subject": bisection.subject,
        "steps": [
            {
                "commit": step.commit,
                "subject": step.subject,
                "answer": step.answer,
                "checks": [check.model_dump() for check in step.verdict.checks] if step.verdict else [],
                "why": step.why,
            }
            for step in bisection.steps
        ],
    }
