# SPDX-License-Identifier: Apache-2.0
"""Run `python -m bench`: measure, compare with an earlier revision in turns, and store the figures as JSON.

Figures go to runs/bench/COMMIT.json. The exit status is 1 if a case takes longer than in that revision.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from bench import base, figures, rows, table
from bench.cases import CASES
from hourglass.builders.kernel import registry
from hourglass.engine.virtual import train
from hourglass.errors import program

RESULTS = Path("runs/bench")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Hourglass's performance figures.")
    parser.add_argument("--quick", action="store_true", help="one round instead of three")
    parser.add_argument("--build", action="store_true", help="the build of a kernel from nothing too; minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--base", metavar="REVISION", help=f"compare with it; default: the last release; {base.NONE}: with nothing"
    )
    parser.add_argument("--only", metavar="TEXT", help="rows and cases with this in their names; figures are not kept")
    options = parser.parse_args()
    return bench(options, Console(stderr=True), Console(width=None if sys.stdout.isatty() else 140))


def bench(options: argparse.Namespace, progress: Console, console: Console) -> int:
    """Measure and compare; return the exit status."""
    revision = options.base or base.default()
    selected = [row for row in figures.rows(options.build) if options.only is None or options.only in row.by.name]
    comparisons: list[base.Compare] = []
    no_comparison = ""
    with progress.status("") as status:
        say = status.update if progress.is_terminal else progress.print
        for kernel in sorted({case.kernel for case in CASES}):
            say(f"kernel {kernel}")
            registry.ensure(kernel, trainer=train)
        if revision != base.NONE:
            try:
                comparisons = base.compared(revision, say, options.only or "")
            except base.NoBaseError as error:
                no_comparison = f"not compared with {revision}: {error}"
        rounds = 1 if options.quick else 3
        samples = rows.carry_out(dict.fromkeys(row.by for row in selected), rounds, say)
    data = table.data(selected, samples, rounds) | {
        "base": table.of_base(revision, comparisons) if comparisons else None
    }
    path = RESULTS / f"{data['commit']}.json"
    text = json.dumps(data, indent=2)
    if options.only is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    if options.json:
        print(text)
    else:
        table.show(data, selected, console)
        console.print()
        if comparisons:
            table.show_base(revision, comparisons, console)
        if options.only is None:
            console.print(f"kept in {path}")
    if no_comparison:
        progress.print(no_comparison, highlight=False, soft_wrap=True)
    slower = table.regressions(revision, comparisons)
    for line in slower:
        progress.print(line, highlight=False, soft_wrap=True)
    return 1 if slower else 0


if __name__ == "__main__":
    program(main)
