# SPDX-License-Identifier: Apache-2.0
"""Verdicts as Markdown: the counts of each folder, then the failed and skipped tests with their reasons."""

import shlex
from collections import Counter
from collections.abc import Iterator

from hourglass.selftests.selftest_runs import SelftestResult, Selftests
from hourglass.selftests.verdict import SelftestVerdict

FOLDERS = "net/mptcp", "net/packetdrill", "net", "tc-testing"


def folder(test: SelftestResult) -> str:
    """Return the folder of the Makefile of a test."""
    return next(name for name in FOLDERS if test.name.startswith(f"{name}/"))


def word(test: SelftestResult) -> str:
    """Return the verdict of a test. If its seeds differ, return each verdict with its count."""
    counts = Counter(verdict.word for verdict in test.verdicts)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{count} {label}" for label, count in counts.items())


def main_verdict(test: SelftestResult) -> SelftestVerdict:
    """Return the verdict to print: the first that is not ok, otherwise the first."""
    return next((verdict for verdict in test.verdicts if verdict.word != "ok"), test.verdicts[0])


def markdown(results: Selftests) -> str:
    """Return the page."""
    number = len(results.seeds)
    seeds = f", {number} seeds" if number > 1 else ""
    options = ["--seeds", f"{results.seeds[0]}-{results.seeds[-1]}"] if number > 1 else []
    command = shlex.join(["hourglass", "kernel", "selftests", results.kernel, *results.patterns, *options])
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"# Selftests of Linux {results.kernel}",
        "",
        f"Linux {results.release}{seeds}. Made by `{command}`.",
        "",
        *_counts(results),
    ]
    not_passed = [test for test in results.tests if word(test) != "ok"]
    if not_passed:
        lines += ["", "Missed and skipped:", "", "| test | verdict | cases | reason |", "|---|---|---|---|"]
        lines += [
            f"| {test.name} | {word(test)} | {_cases(main_verdict(test))} | {main_verdict(test).reason} |"
            for test in not_passed
        ]
    passed = [test for test in results.tests if word(test) == "ok"]
    for name in FOLDERS:
        tests = [
            f"{test.name.removeprefix(f'{name}/')}{_passed_cases(main_verdict(test))}"
            for test in passed
            if folder(test) == name
        ]
        if tests:
            lines += ["", f"Ok of {name} (with the cases that they count): {', '.join(tests)}"]
    return "\n".join(lines) + "\n"


def _counts(results: Selftests) -> Iterator[str]:
    yield "| folder | ok | missed | skipped | cases passed | failed |"
    yield "|---|---|---|---|---|---|"
    for name in FOLDERS:
        tests = [test for test in results.tests if folder(test) == name]
        if tests:
            verdicts = Counter(main_verdict(test).word for test in tests)
            cases = [(main_verdict(test).passed, main_verdict(test).failed) for test in tests]
            totals = " | ".join(str(sum(column)) for column in zip(*cases, strict=True))
            words = (verdicts["ok"], verdicts["missed"] + verdicts["failed"], verdicts["skipped"])
            yield f"| {name} | {' | '.join(map(str, words))} | {totals} |"


def _cases(verdict: SelftestVerdict) -> str:
    return f"{verdict.passed} of {verdict.passed + verdict.failed}" if verdict.passed + verdict.failed else ""


def _passed_cases(verdict: SelftestVerdict) -> str:
    return f" {verdict.passed}" if verdict.passed else ""
