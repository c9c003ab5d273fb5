# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measures, compares with an earlier revision side by side, and keeps the figures as JSON.

Figures go to runs/bench/COMMIT.json. The exit status is 1 when something takes longer than in that revision.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from bench import base, figures, rows, table
from bench.cases import CASES
from hourglass.engine.kernel import store

KEPT = Path("runs/bench")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Hourglass's performance figures.")
    parser.add_argument("--quick", action="store_true", help="one round instead of three")
    parser.add_argument("--build", action="store_true", help="the build of a kernel from nothing too; minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--base", metavar="REVISION", help=f"compare with it; default: the last release; {base.NONE}: with nothing"
    )
    parser.add_argument("--only", metavar="TEXT", help="rows and cases with this in their names; figures are not kept")
    options = parser.parse_args()
    sys.exit(bench(options, Console(stderr=True), Console(width=None if sys.stdout.isatty() else 140)))


def bench(options: argparse.Namespace, aside: Console, console: Console) -> int:
    """Measures and compares; the exit status."""
    revision = options.base or base.default()
    wanted = [row for row in figures.rows(options.build) if options.only is None or options.only in row.by.name]
    found: list[base.Compare] = []
    why = ""
    with aside.status("") as status:
        say = status.update if aside.is_terminal else aside.print
        for kernel in sorted({case.kernel for case in CASES}):
            say(f"kernel {kernel}")
            store.ensure(kernel, tuned=True)
        if revision != base.NONE:
            try:
                found = base.compared(revision, say, options.only or "")
            except base.NoBaseError as error:
                why = f"not compared with {revision}: {error}"
        rounds = 1 if options.quick else 3
        samples = rows.carry_out(dict.fromkeys(row.by for row in wanted), rounds, say)
    data = table.data(wanted, samples, rounds) | {"base": table.of_base(revision, found) if found else None}
    kept = KEPT / f"{data['commit']}.json"
    text = json.dumps(data, indent=2)
    if options.only is None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(f"{text}\n")
    if options.json:
        print(text)
    else:
        table.show(data, wanted, console)
        console.print()
        if found:
            table.show_base(revision, found, console)
        if options.only is None:
            console.print(f"kept in {kept}")
    if why:
        aside.print(why, highlight=False, soft_wrap=True)
    slower = table.regressions(revision, found)
    for line in slower:
        aside.print(line, highlight=False, soft_wrap=True)
    return 1 if slower else 0


if __name__ == "__main__":
    main()
