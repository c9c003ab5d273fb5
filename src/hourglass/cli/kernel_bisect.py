# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel bisect`: the commit from which on a bound is missed."""

from pathlib import Path

from rich.text import Text

from hourglass.cli import output
from hourglass.cli.progress import shown
from hourglass.errors import InputError
from hourglass.results.sections.checks import value
from hourglass.testing.bisect import Found, Step, bisect

SHORT = 12
"""Digits of a commit that the terminal shows."""


def find_commit(
    tree: Path,
    good: str,
    bad: str,
    within: list[str],
    scenario: str,
    bounds: list[str],
    settings: list[str],
    seed: int | None,
    json: bool,
) -> None:
    """Prints each step as it ends, then the commit."""
    if good == bad:
        raise InputError("BAD", bad, "is GOOD")

    def told(step: Step) -> None:
        if not json:
            output.show(Text(_line(step)), whole_lines=True)

    with shown() as progress:
        found = bisect(
            tree, good, bad, scenario, bounds,
            within=within, overrides=settings, seed=seed, progress=progress, told=told,
        )  # fmt: skip
    if json:
        output.show_json(_data(found))
    elif len(found.commits) == 1:
        output.show(Text(f"\nfirst bad commit: {found.commits[0]}\n{found.subject}"), whole_lines=True)
    else:
        output.show(Text("\none of these, which could not be tried, is the first bad commit:"))
        output.show(Text("\n".join(found.commits)), whole_lines=True)


def _line(step: Step) -> str:
    """ "good  0123456789ab  ping.icmp.p99 10.6 ms  tcp: a subject" """
    checks = step.verdict.checks if step.verdict else []
    figures = ", ".join(f"{one.figure} {value(one)}" for one in checks)
    why = step.why or (str(step.verdict.error).splitlines()[0] if step.verdict and step.verdict.error else figures)
    return f"{step.answer:4}  {step.commit[:SHORT]}  {why}  {step.subject}"


def _data(found: Found) -> dict[str, object]:
    return {
        "schema": 1,
        "first_bad": list(found.commits),
        "subject": found.subject,
        "steps": [
            {
                "commit": step.commit,
                "subject": step.subject,
                "answer": step.answer,
                "checks": [one.model_dump() for one in step.verdict.checks] if step.verdict else [],
                "why": step.why,
            }
            for step in found.steps
        ],
    }
