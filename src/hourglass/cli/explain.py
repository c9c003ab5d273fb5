# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass explain`: where a run's latency comes from, and what would change it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import hourglass
from hourglass import scenario
from hourglass.cli import output
from hourglass.cli.apply import added_lines
from hourglass.cli.help import examples
from hourglass.cli.options import Force, Jobs, Json, RequireSandbox, Seeds, seed_list
from hourglass.cli.progress import display
from hourglass.cli.tables import NOTHING
from hourglass.results.stats import short
from hourglass.studies.what_if import Difference, RunAdvice, WhatIf

OF_CHANGES = (
    "p50 and p99 of the slowest ping, call or request; [95 % interval of the difference],\n"
    "bootstrapped over 1 s blocks of the seeds {}-{}"
)
NO_CHANGE = "none of these changes certainly lowers the latency by more than it costs in goodput"


@examples("""\
hourglass explain runs/L100M
hourglass explain runs/L100M --no-what-if
hourglass explain upload.flent.gz --json""")
def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory or a .flent.gz file.")],
    no_what_if: Annotated[bool, typer.Option("--no-what-if", help="Only explain the run; make no runs.")] = False,
    seeds: Seeds = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the what-if runs; default: that of studies.")
    ] = None,
    force: Force = False,
    jobs: Jobs = None,
    require_sandbox: RequireSandbox = False,
    json: Json = False,
) -> None:
    """Explain a run: what limits it, where its latency arises, and which changes help.

    Each sentence is computed from the records. The what-if runs change one key each, in a guest, with the run's seed
    and two more; intervals are of 95 %.
    """
    with display(str(run)) as progress:
        advice = hourglass.explain(
            run, what_if=not no_what_if, seeds=seed_list(seeds), out=out, jobs=jobs, force=force, progress=progress
        )
    if json:
        output.show_json(_data(advice, run))
        return
    _show(advice)


def _show(advice: RunAdvice) -> None:
    recorded = advice.run
    output.show(Text(f"{recorded.name}  {recorded.test.name}  Linux {recorded.info.kernel.release}\n", style="bold"))
    for sentence in advice.explanation.sentences:
        output.show(Text(f"* {sentence.text}."))
    for gap in advice.explanation.missing:
        output.show(Text(f"- {gap}"))
    if advice.reason:
        output.show(Text(f"\n{advice.reason}"))
    if advice.changes:
        output.show(Text(), _table(advice), Text())
        for number, change in enumerate(advice.changes, 1):
            about = f"not tried, {change.failure}" if change.failure else change.knob.reason
            output.show(f"{number}  {change.knob.name}  ({about})", whole_lines=True)
        output.show(Text(f"\n{OF_CHANGES.format(*advice.seeds[:1], *advice.seeds[-1:])}"))
        _show_best(advice)


def _table(advice: RunAdvice) -> Table:
    first = next((change for change in advice.changes if change.p50), None)
    table = output.grid("what if", "p50 ms", "p99 ms", "Mbit/s")
    if first is not None:
        table.add_row("now", *(NOTHING if each is None else short(each.before) for each in _figures(first)))
    for number, change in enumerate(advice.changes, 1):
        if not change.failure:
            table.add_row(str(number), *map(_cell, _figures(change)))
    return table


def _figures(change: WhatIf) -> tuple[Difference | None, ...]:
    return change.p50, change.p99, change.goodput


def _cell(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    if difference.interval is None:
        return short(difference.after)
    low, high = (f"{'-' if end < 0 else '+'}{short(abs(end))}" for end in difference.interval)
    return f"{short(difference.after)} [{low}, {high}]"


def _show_best(advice: RunAdvice) -> None:
    if advice.best is None:
        output.show(Text(f"\n{NO_CHANGE}"))
        return
    output.show(Text(f"\nbest: {advice.best.knob.name} ({advice.best.knob.reason})"))
    for node, commands in _commands(advice).items():
        output.show(f"on {node}:", *(f"  {line}" for line in commands), whole_lines=True)


def _commands(advice: RunAdvice) -> dict[str, list[str]]:
    """Return the lines of `hourglass show --apply NODE` that the best change adds, by node."""
    stored = advice.run.scenario
    if advice.best is None or stored is None:
        return {}
    changed = scenario.load(stored, list(advice.best.knob.settings.items()), folder=advice.run.path)
    return added_lines(stored, changed)


def _data(advice: RunAdvice, path: Path) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": str(path),
        "scenario": advice.run.name,
        **advice.explanation.data(),
        "seeds": list(advice.seeds),
        "what_if": [_change(change) for change in advice.changes],
        "best": advice.best.knob.name if advice.best else None,
        "commands": _commands(advice),
        "reason": advice.reason,
    }


def _change(change: WhatIf) -> dict[str, Any]:
    knob = change.knob
    about = {"settings": knob.settings, "place": knob.place, "reason": knob.reason, "gain": change.gain}
    figures = {
        name: asdict(each) if each else None
        for name, each in zip(("p50_ms", "p99_ms", "goodput_mbps"), _figures(change), strict=True)
    }
    return about | figures | {"helps": change.helps, "failure": change.failure}
