# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass check`: compare runs, or the runs of scenarios, with bounds."""

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

import hourglass
from hourglass.builders.kernel import tree_spec
from hourglass.builders.kernel.builder import BuildError, build
from hourglass.builders.kernel.hooks import HookError
from hourglass.cli import notice, output, progress, tables
from hourglass.cli.exit_status import MISSED
from hourglass.cli.help import examples
from hourglass.cli.options import RUNS, Bounds, ManyRuns
from hourglass.errors import InputError
from hourglass.results.sections.check_sections import verdict_section
from hourglass.studies import junit
from hourglass.studies.run_check import RunVerdict
from hourglass.visible import visible

UNTESTABLE = 125
"""The exit status for which `git bisect run` skips a revision."""


@examples("""\
hourglass check runs/L100M-1234567890 --bound 'ping.icmp.p99 < 20ms'
hourglass check my-office.toml --seeds 1-5 --junit verdicts.xml""")
def check(
    targets: Annotated[
        list[str], typer.Argument(metavar="RUN|SCENARIO...", help=f"{RUNS}; or scenarios, which are run first.")
    ],
    *,
    bounds: Bounds = None,
    runs: ManyRuns,
    tree: Annotated[
        str | None,
        typer.Option(metavar="TREE", help="Build this kernel first; exit with 125 if it does not build (git bisect)."),
    ] = None,
) -> int:
    """Judge runs by bounds on their figures; exit with 1 if one is missed.

    A scenario is run first, once with each seed, unless its run exists. Its bounds, [check], come before those of the
    command line.
    """
    if tree is not None:
        if runs.kernel is not None:
            raise InputError("--tree", tree, "cannot be combined with --kernel; the tree is the kernel")
        runs = replace(runs, kernel=tree_spec.default_name(tree))
        try:
            with progress.display() as display:
                build(tree, str(runs.kernel), display.kernel)
        except (BuildError, HookError) as error:
            print(visible(f"hourglass: error: {error}"), file=sys.stderr)
            return UNTESTABLE
    notice.warn_all(targets, runs.settings or [])
    with progress.display() as display:
        verdicts = hourglass.check(*targets, bounds=bounds or [], progress=display, **runs.making)
    notice.report_doubts(verdict.run for verdict in verdicts if verdict.run is not None)
    if runs.junit is not None:
        junit.write(runs.junit, verdicts)
    if runs.json:
        output.show_json(
            {"schema": 1, "ok": all(verdict.ok for verdict in verdicts), "runs": list(map(_data, verdicts))}
        )
    else:
        for verdict in verdicts:
            _show(verdict)
        print(_conclusion(verdicts))
    for verdict in verdicts:
        if verdict.error is not None:
            print(visible(f"hourglass: error: {verdict.name}: {verdict.error}"), file=sys.stderr)
    failed = [verdict.error.status for verdict in verdicts if verdict.error is not None]
    return failed[0] if failed else 0 if all(verdict.ok for verdict in verdicts) else MISSED


def _show(verdict: RunVerdict) -> None:
    run, seed = verdict.run, "" if verdict.seed is None else f"  seed {verdict.seed}"
    if run is None:
        output.show(Text(f"{verdict.name}{seed}  failed", style="bold"), Text())
        return
    output.show(Text(f"{verdict.name}  Linux {run.info.kernel.release}{seed}", style="bold"), Text())
    output.show(tables.drawn(verdict_section(verdict.checks)), Text())
    output.show(Text(f"run      {run.path}\n"), whole_lines=True)


def _conclusion(verdicts: list[RunVerdict]) -> str:
    """Return "2 of 5 bounds missed"."""
    missed = sum(len(verdict.missed) for verdict in verdicts)
    failed = sum(verdict.error is not None for verdict in verdicts)
    total = sum(len(verdict.checks) for verdict in verdicts)
    text = f"{missed} of {total} bounds missed" if missed else f"{total} bound{'s' * (total != 1)} met"
    return text + (f"; {failed} run{'s' * (failed != 1)} failed" if failed else "")


def _data(verdict: RunVerdict) -> dict[str, Any]:
    run = verdict.run
    info = None if run is None else run.info
    details = {} if info is None else {"kernel": info.kernel.release, "digest": info.digest}
    return {
        "scenario": verdict.name,
        "run": None if run is None else str(run.path),
        "seed": verdict.seed,
        **details,
        "ok": verdict.ok,
        "error": None if verdict.error is None else str(verdict.error),
        "code": None if verdict.error is None else verdict.error.code,
        "checks": [check.model_dump() for check in verdict.checks],
    }
