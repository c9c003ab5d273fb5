# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel selftests`: a kernel tree's own tests of the network, in its guest."""

from collections import Counter
from pathlib import Path
from typing import Any

from hourglass import files
from hourglass.cli import output
from hourglass.cli.errors import MISSED
from hourglass.cli.progress import shown
from hourglass.selftests import page
from hourglass.selftests.run import OUT, Selftests, selftests


def run_selftests(kernel: str, tests: list[str], seeds: int, out: Path | None, jobs: int | None, json: bool) -> int:
    """Runs them, writes the page, prints what did not pass; 1 when a test failed."""
    folder = out or OUT
    with shown() as progress:
        found = selftests(kernel, tests, seeds=seeds, out=folder, jobs=jobs, progress=progress)
    written = folder / f"{found.kernel}.md"
    with files.writing(written, "the page"):
        files.write(written, page.markdown(found).encode())
    if json:
        output.show_json(_data(found))
    else:
        _show(found, written)
    return MISSED if any(one.word == "fail" for test in found.tests for one in test.verdicts) else 0


def _show(found: Selftests, written: Path) -> None:
    for test in found.tests:
        if page.word(test) != "pass":
            output.show(f"{page.word(test):5} {test.name}: {page.first(test).reason}", whole_lines=True)
    counts = Counter(page.first(one).word for one in found.tests)
    told = ", ".join(f"{counts[word]} {word}" for word in ("pass", "fail", "skip"))
    output.show("", f"Linux {found.release}: {told}", f"page  {written}", whole_lines=True)
    if found.seeds > 1:
        steady = sum(one.steady for one in found.tests)
        output.show(f"{steady} of {len(found.tests)} gave the same verdict with all {found.seeds} seeds")


def _data(found: Selftests) -> dict[str, Any]:
    return {
        "schema": 1,
        "kernel": found.kernel,
        "release": found.release,
        "tests": [
            {
                "name": one.name,
                "verdicts": [
                    {"verdict": v.word, "reason": v.reason, "passed": v.passed, "failed": v.failed,
                     "run": str(run) if run else None}
                    for v, run in zip(one.verdicts, one.runs, strict=True)
                ],
            }
            for one in found.tests
        ],
    }  # fmt: skip
