# SPDX-License-Identifier: Apache-2.0
"""`python -m tests [test|quick|check]`: all parts of `make test`, `make quick` or `make check`, one after the other.

A part that fails does not hide the others. At the end a table has the costliest test files, the result and the time of
each part, and the reasons why tests were skipped. Exit status 1: a part failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests import tools

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "--color=auto"]
MAKE = ["make", "--no-print-directory", "--keep-going", "-j3"]
COSTLIEST = 20
"""Test files whose cost the table has."""
REAL_TIME = ["tests/native", "tests/ssh"]
"""Tests that measure in real time: nothing else may run meanwhile."""


@dataclass(frozen=True)
class Part:
    """A command in a folder. `linter`: cargo's command that it takes."""

    name: str
    command: list[str]
    folder: Path = ROOT
    linter: str = ""


@dataclass
class Result:
    """`result`: "passed", "FAILED (1)" or why the part was skipped. `skips`: reasons of skipped tests, counted.
    `costs`: seconds of each test file."""

    part: Part
    result: str
    seconds: float
    skips: Counter[str] = field(default_factory=Counter)
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.result.startswith("FAILED")


def cargo(*arguments: str) -> list[str]:
    return ["cargo", *arguments]


AGENT = ROOT / "agent"
PACKAGES = Part("Debian packages", [PYTHON, "-m", "tests.tools"])
SET_UP = Part("agent, guest root, kernel", [*MAKE, "ready", "developer"])
AGENTS_TESTS = Part("tests of the agent", cargo("test", "--locked", "--quiet"), AGENT)
COMMANDS = {
    "test": [
        PACKAGES,
        SET_UP,
        Part("kernels for tests", [PYTHON, "-m", "tests.kernels"]),
        AGENTS_TESTS,
        Part("tests against this machine's kernel", [*PYTEST, *REAL_TIME]),
        Part("tests", [*PYTEST, "-n", "auto", "--dist", "worksteal", *(f"--ignore={name}" for name in REAL_TIME)]),
    ],
    "quick": [
        PACKAGES,
        SET_UP,
        AGENTS_TESTS,
        Part("tests", [*PYTEST, "-n", "auto", "--dist", "worksteal", "-m", "not guest"]),
    ],
    "check": [
        PACKAGES,
        Part("ruff", [PYTHON, "-m", "ruff", "check"]),
        Part("ruff format", [PYTHON, "-m", "ruff", "format", "--check"]),
        Part("mypy", [PYTHON, "-m", "mypy"]),
        Part("rustfmt", cargo("fmt", "--check"), AGENT, linter="fmt"),
        Part("clippy", cargo("clippy", "--locked", "--quiet", "--all-targets", "--", "-D", "warnings"), AGENT,
             linter="clippy"),
        Part("checkpatch and sparse", [PYTHON, "-m", "hourglass.builders.kernel.static_checks"]),
    ],
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description="Runs all parts of a command of the Makefile.")
    parser.add_argument("command", choices=COMMANDS, nargs="?", default="test")
    try:
        return run(COMMANDS[parser.parse_args().command])
    except KeyboardInterrupt:
        return 130


def run(parts: list[Part]) -> int:
    """Run the parts in order, print the table, and return the exit status."""
    results: list[Result] = []
    for part in parts:
        print(f"--- {part.name}", flush=True)
        results.append(execute(part))
    print(table(results), flush=True)
    return 1 if any(result.failed for result in results) else 0


def execute(part: Part) -> Result:
    """Run a part with its output on the terminal."""
    if part.linter and part.linter in tools.lacking():
        reason = f"no {tools.LINTERS[part.linter]}"
        return Result(part, f"FAILED: {reason}" if os.environ.get("CI") else f"skipped: {reason}", 0.0)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "junit.xml"
        command = [*part.command, f"--junitxml={log}"] if part.command[: len(PYTEST)] == PYTEST else part.command
        started_s = time.monotonic()
        status = subprocess.run(command, cwd=part.folder, env=environment, check=False).returncode
        seconds = time.monotonic() - started_s
        skips, costs = (reasons(log), costs_of_files(log)) if log.is_file() else (Counter[str](), {})
    return Result(part, f"FAILED ({status})" if status else "passed", seconds, skips, costs)


def reasons(log: Path) -> Counter[str]:
    """Return why tests were skipped, from pytest's JUnit file."""
    marks = ElementTree.parse(log).iter("skipped")
    return Counter(mark.get("message", "") for mark in marks if mark.get("type") == "pytest.skip")


def costs_of_files(log: Path) -> dict[str, float]:
    """Return the seconds that the tests of each file took, from pytest's JUnit file."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(log).iter("testcase"):
        seconds[case.get("classname", "").replace(".", "/") + ".py"] += float(case.get("time", "0"))
    return seconds


def table(results: list[Result]) -> str:
    """Return the results of all parts as text; what was skipped, why and what helps are its last lines."""
    width = max(len(result.part.name) for result in results)
    costs = sorted(((seconds, name) for result in results for name, seconds in result.costs.items()), reverse=True)
    lines = ["", *(f"{seconds:8.1f} s  {name}" for seconds, name in costs[:COSTLIEST])]
    lines += ["", *(f"{result.part.name:{width}} {result.seconds:8.1f} s  {result.result}" for result in results)]
    lines.append(f"{'in all':{width}} {sum(result.seconds for result in results):8.1f} s")
    skips = sum((result.skips for result in results), Counter[str]())
    if skips:
        lines += ["", f"skipped: {skips.total()} tests"]
        lines += [f"{count:5}  {reason}" for reason, count in skips.most_common()]
    if packages := tools.missing():
        lines += ["", tools.line(packages)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
