# SPDX-License-Identifier: Apache-2.0
"""Verdicts as Markdown: counts of each folder, then what did not pass, with the reason."""

import shlex
from collections import Counter
from collections.abc import Iterator

from hourglass.selftests.run import Selftests, Tested
from hourglass.selftests.verdict import Verdict

FOLDERS = "net/mptcp", "net/packetdrill", "net", "tc-testing"


def folder(test: Tested) -> str:
    """The folder of its Makefile."""
    return next(one for one in FOLDERS if test.name.startswith(f"{one}/"))


def word(test: Tested) -> str:
    """Its verdict; of several seeds that differ, each with its count."""
    counts = Counter(one.word for one in test.verdicts)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{many} {what}" for what, many in counts.items())


def first(test: Tested) -> Verdict:
    """The verdict that is told: the first that is not a pass, if there is one."""
    return next((one for one in test.verdicts if one.word != "pass"), test.verdicts[0])


def markdown(found: Selftests) -> str:
    """The page."""
    seeds = f", {found.seeds} seeds" if found.seeds > 1 else ""
    many = ["--seeds", str(found.seeds)] if found.seeds > 1 else []
    command = shlex.join(["hourglass", "kernel", "selftests", found.kernel, *found.asked, *many])
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"# Selftests of Linux {found.kernel}",
        "",
        f"Linux {found.release}{seeds}. Made by `{command}`.",
        "",
        *_counts(found),
    ]
    rest = [one for one in found.tests if word(one) != "pass"]
    if rest:
        lines += ["", "What did not pass:", "", "| test | verdict | cases | reason |", "|---|---|---|---|"]
        lines += [f"| {one.name} | {word(one)} | {_cases(first(one))} | {first(one).reason} |" for one in rest]
    passed = [one for one in found.tests if word(one) == "pass"]
    for name in FOLDERS:
        told = [f"{one.name.removeprefix(f'{name}/')}{_many(first(one))}" for one in passed if folder(one) == name]
        if told:
            lines += ["", f"Passed of {name} (with the cases that they count): {', '.join(told)}"]
    return "\n".join(lines) + "\n"


def _counts(found: Selftests) -> Iterator[str]:
    yield "| folder | pass | fail | skip | cases passed | failed |"
    yield "|---|---|---|---|---|---|"
    for name in FOLDERS:
        tests = [one for one in found.tests if folder(one) == name]
        if tests:
            words = Counter(first(one).word for one in tests)
            cases = [(first(one).passed, first(one).failed) for one in tests]
            totals = " | ".join(str(sum(column)) for column in zip(*cases, strict=True))
            yield f"| {name} | {words['pass']} | {words['fail']} | {words['skip']} | {totals} |"


def _cases(one: Verdict) -> str:
    return f"{one.passed} of {one.passed + one.failed}" if one.passed + one.failed else ""


def _many(one: Verdict) -> str:
    return f" {one.passed}" if one.passed else ""
