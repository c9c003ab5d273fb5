# SPDX-License-Identifier: Apache-2.0
"""`hourglass check`: runs, or scenarios whose runs are made on the spot, against bounds."""

import sys
from pathlib import Path
from typing import Any

from rich.text import Text

import hourglass
from hourglass.cli import output, progress, tables
from hourglass.cli.errors import MISSED
from hourglass.engine.kernel import trees
from hourglass.engine.kernel.build import BuildError, build
from hourglass.engine.kernel.hooks import HookError
from hourglass.errors import InputError
from hourglass.results.sections.checks import judged
from hourglass.testing.judge import Verdict

UNTESTABLE = 125
"""The exit status by which `git bisect run` skips a revision."""


def check_runs(
    targets: list[str],
    bounds: list[str],
    settings: list[str],
    seed: int | None,
    kernel: str | None,
    engine: str,
    junit: Path | None,
    json: bool,
    tree: str | None = None,
) -> int:
    """Judges and prints the verdicts. The exit status: 1 when a bound is missed, the error's when a run failed, 125
    when the tree does not build, or does not take the hooks: what `git bisect run` passes over."""
    if tree is not None:
        if kernel is not None:
            raise InputError("--tree", tree, "goes without --kernel: it is the kernel")
        kernel = trees.names(tree)
        try:
            with progress.shown() as shown:
                build(tree, kernel, shown.kernel)
        except (BuildError, HookError) as error:
            print(f"hourglass: error: {error}", file=sys.stderr)
            return UNTESTABLE
    with progress.shown() as shown:
        verdicts = hourglass.check(
            *targets, bounds=bounds, overrides=settings, seed=seed, kernel=kernel, engine=engine, progress=shown
        )
    if junit is not None:
        from hourglass.testing import junit as form

        form.write(junit, verdicts)
    if json:
        output.show_json({"schema": 1, "ok": all(one.ok for one in verdicts), "runs": list(map(_data, verdicts))})
    else:
        for verdict in verdicts:
            _show(verdict)
        print(_conclusion(verdicts))
    for one in verdicts:
        if one.error is not None:
            print(f"hourglass: error: {one.name}: {one.error}", file=sys.stderr)
    failed = [one.error.status for one in verdicts if one.error is not None]
    return failed[0] if failed else 0 if all(one.ok for one in verdicts) else MISSED


def _show(verdict: Verdict) -> None:
    run = verdict.run
    if run is None:
        output.show(Text(f"{verdict.name}  failed", style="bold"), Text())
        return
    seed = "" if run.info.elsewhere else f"  seed {run.info.seed}"
    output.show(Text(f"{verdict.name}  Linux {run.info.kernel.release}{seed}", style="bold"), Text())
    output.show(tables.drawn(judged(verdict.checks)), Text())
    output.show(Text(f"run      {run.path}\n"), whole_lines=True)


def _conclusion(verdicts: list[Verdict]) -> str:
    """ "2 of 5 bounds missed" """
    missed, failed = sum(len(one.missed) for one in verdicts), sum(one.error is not None for one in verdicts)
    total = sum(len(one.checks) for one in verdicts)
    kept = f"{missed} of {total} bounds missed" if missed else f"{total} bound{'s' * (total != 1)} kept"
    return kept + (f"; {failed} run{'s' * (failed != 1)} failed" if failed else "")


def _data(verdict: Verdict) -> dict[str, Any]:
    run = verdict.run
    about = {} if run is None else {"kernel": run.info.kernel.release, "seed": run.info.seed, "digest": run.info.digest}
    return {
        "scenario": verdict.name,
        "run": None if run is None else str(run.path),
        **about,
        "ok": verdict.ok,
        "error": None if verdict.error is None else str(verdict.error),
        "checks": [one.model_dump() for one in verdict.checks],
    }
