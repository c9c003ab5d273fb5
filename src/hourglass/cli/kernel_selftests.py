# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass kernel selftests`: run a kernel tree's own network tests in its guest."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from hourglass import files
from hourglass.cli import output
from hourglass.cli.exit_status import MISSED
from hourglass.cli.help import examples
from hourglass.cli.options import TREES, Jobs, Json, RequireSandbox, seed_list
from hourglass.cli.progress import display
from hourglass.selftests import page
from hourglass.selftests.selftest_runs import OUT, Selftests, selftests


@examples("""\
hourglass kernel selftests 6.1
hourglass kernel selftests 7.3 'net/mptcp/*' --seeds 1-20
hourglass kernel selftests ~/linux@HEAD 'tc-testing/qdiscs/*'""")
def run_selftests(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=TREES)],
    tests: Annotated[
        list[str] | None, typer.Argument(metavar="[TEST...]", help="Names, or patterns of names; default: all.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="A-B", help="The seeds of the runs of each test.")] = "1",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for runs and pages; default: selftests.")
    ] = None,
    jobs: Jobs = None,
    require_sandbox: RequireSandbox = False,
    json: Json = False,
) -> int:
    """Run the network selftests of a kernel tree: net, net/mptcp, net/packetdrill, tc-testing.

    Each runs in a separate guest, in virtual time. Exits with 1 if one fails. Cached runs are reused.
    """
    folder = out or OUT
    with display() as progress:
        results = selftests(kernel, tests or [], seeds=seed_list(seeds), out=folder, jobs=jobs, progress=progress)
    path = folder / f"{results.kernel}.md"
    with files.writing(path, "the page"):
        files.write(path, page.markdown(results).encode())
    if json:
        output.show_json(_data(results))
    else:
        _show(results, path)
    return (
        MISSED
        if any(verdict.word in ("missed", "failed") for test in results.tests for verdict in test.verdicts)
        else 0
    )


def _show(results: Selftests, path: Path) -> None:
    for test in results.tests:
        if page.word(test) != "ok":
            output.show(f"{page.word(test):9} {test.name}: {page.main_verdict(test).reason}", whole_lines=True)
    counts = Counter(page.main_verdict(test).word for test in results.tests)
    summary = ", ".join(f"{counts[word]} {word}" for word in ("ok", "missed", "failed", "skipped"))
    output.show("", f"Linux {results.release}: {summary}", f"page  {path}", whole_lines=True)
    if len(results.seeds) > 1:
        steady = sum(test.steady for test in results.tests)
        output.show(f"{steady} of {len(results.tests)} have the same verdict with all {len(results.seeds)} seeds")


def _data(results: Selftests) -> dict[str, Any]:
    return {
        "schema": 1,
        "kernel": results.kernel,
        "release": results.release,
        "tests": [
            {
                "name": test.name,
                "verdicts": [
                    {"verdict": v.word, "reason": v.reason, "passed": v.passed, "failed": v.failed,
                     "run": str(run) if run else None}
                    for v, run in zip(test.verdicts, test.runs, strict=True)
                ],
            }
            for test in results.tests
        ],
    }  # fmt: skip
