# SPDX-License-Identifier: Apache-2.0
"""`python -m tests [quick|test|test-all|check]`: all parts of a command of the Makefile, one after the other.

`quick` takes the tests that boot no guest, `test` also those on the default kernel, `test-all` all. The markers
`guest`, `kernels` and `slow` decide (`pyproject.toml`).

A part that fails does not hide the others. At the end a table has the costliest test files, and the result and the time
of each part. It has the reasons why tests were skipped, and a command that repeats each failed test. Exit status 1: a
part failed.
"""

import argparse
import contextlib
import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from hourglass.errors import program
from hourglass.host import process
from tests import tools

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "--color=auto"]
CARGO_TEST = ["cargo", "test", "--locked", "--quiet"]
MAKE = ["make", "--no-print-directory", "--keep-going", "-j3"]
TIDY_S = 30.0
"""Time that interrupted tests have to tidy up."""
COSTLIEST = 20
"""The number of test files in the table of costs."""
REAL_TIME = ["tests/native", "tests/ssh"]
"""Tests that measure in real time: no other test may run meanwhile."""
TEE = ["bash", "-o", "pipefail", "-c", '"${@:2}" 2>&1 | tee "$1"', "tee"]
"""Runs a command that has its output on the terminal and in a file, which is the first argument."""
SHORT = "not slow and not kernels"
"""Selects the tests that `make test` takes."""


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
    `costs`: seconds of each test file. `failures`: commands that repeat a failed test."""

    part: Part
    result: str
    seconds: float
    skips: Counter[str] = field(default_factory=Counter)
    costs: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.result.startswith("FAILED")


def cargo(*arguments: str) -> list[str]:
    return ["cargo", *arguments]


AGENT = ROOT / "agent"
PACKAGES = Part("Debian packages", [PYTHON, "-m", "tests.tools"])
SET_UP = Part("agent, guest root, kernel", [*MAKE, "ready", "developer"])
KERNELS = Part("kernels for tests", [PYTHON, "-m", "tests.kernels"])


def agent(*arguments: str) -> Part:
    """Return the part with the tests in Rust."""
    return Part("tests of the agent", [*CARGO_TEST, *arguments], AGENT)


def real_time(selection: str) -> Part:
    """Return the part that measures in real time. `selection`: an expression of markers; "" selects all tests."""
    return Part("tests against this machine's kernel", [*PYTEST, "-m", selection, *REAL_TIME])


def parallel(selection: str) -> Part:
    """Return the part with all other tests."""
    ignored = [f"--ignore={name}" for name in REAL_TIME]
    return Part("tests", [*PYTEST, "-m", selection, "-n", "auto", "--dist", "worksteal", *ignored])


COMMANDS = {
    "quick": [PACKAGES, SET_UP, agent("--bins"), parallel(f"{SHORT} and not guest")],
    "test": [PACKAGES, SET_UP, agent(), real_time(SHORT), parallel(SHORT)],
    "test-all": [PACKAGES, SET_UP, KERNELS, agent("--", "--include-ignored"), real_time(""), parallel("")],
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
    return run(COMMANDS[parser.parse_args().command])


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
        log = Path(folder) / "log"
        command, pytest, rust = part.command, starts(part, PYTEST), starts(part, CARGO_TEST)
        if pytest:
            command = [*command, f"--junitxml={log}"]
        elif rust:
            command = [*TEE, str(log), *command]
        started_s = time.monotonic()
        status = run_to_its_end(command, part.folder, environment)
        result = Result(part, f"FAILED ({status})" if status else "passed", time.monotonic() - started_s)
        if pytest and log.is_file():
            result.skips, result.costs, result.failures = reasons(log), costs_of_files(log), failed_tests(log)
        elif rust and status:
            result.failures = failed_tests_of_the_agent(part, log.read_text())
    if status and not result.failures:
        result.failures = [shell_line(part.command, part.folder)]
    return result


def run_to_its_end(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Run a command with its output on the terminal, and return its exit status. If this process is interrupted, so is
    the command with all processes of its group: tests tidy up after themselves. A signal that arrives while the
    command starts takes effect when it has started."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    unblock = functools.partial(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
    try:
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=unblock
        )
    except BaseException:
        unblock()
        raise
    try:
        unblock()
        return child.wait()
    except KeyboardInterrupt:
        process.kill_group(child, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(TIDY_S)
        raise
    finally:
        process.kill_group(child, signal.SIGKILL)


def starts(part: Part, words: list[str]) -> bool:
    """Tell whether a part's command starts with these words."""
    return part.command[: len(words)] == words


def shell_line(command: list[str], folder: Path = ROOT) -> str:
    """Return a command as a line for the shell in the project's root."""
    program, *words = command
    change = "" if folder == ROOT else f"cd {folder.relative_to(ROOT)} && "
    return change + shlex.join([os.path.relpath(program, ROOT) if program == PYTHON else program, *words])


def failed_tests(log: Path) -> list[str]:
    """Return a command for each failed test of pytest's JUnit file."""
    cases = [case for case in ElementTree.parse(log).iter("testcase") if {"failure", "error"} & {e.tag for e in case}]
    names = dict.fromkeys((case.get("classname", ""), case.get("name", "")) for case in cases)
    nodes = [f"{_file(module)}::{name}" if module else _file(name) for module, name in names]
    return [shell_line([PYTHON, "-m", "pytest", node]) for node in nodes]


def failed_tests_of_the_agent(part: Part, output: str) -> list[str]:
    """Return a command for each failed test that cargo's output names."""
    lists = re.findall(r"^failures:\n((?: {4}\S+\n)+)", output, re.MULTILINE)
    return [shell_line([*part.command, name], part.folder) for name in dict.fromkeys("".join(lists).split())]


def _file(module: str) -> str:
    return module.replace(".", "/") + ".py"


def reasons(log: Path) -> Counter[str]:
    """Return why tests were skipped, from pytest's JUnit file."""
    marks = ElementTree.parse(log).iter("skipped")
    return Counter(mark.get("message", "") for mark in marks if mark.get("type") == "pytest.skip")


def costs_of_files(log: Path) -> dict[str, float]:
    """Return the seconds that the tests of each file took, from pytest's JUnit file."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(log).iter("testcase"):
        seconds[_file(case.get("classname", ""))] += float(case.get("time", "0"))
    return seconds


def table(results: list[Result]) -> str:
    """Return the results of all parts as text. Its last lines are the skipped and the failed tests."""
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
    if failures := [command for result in results for command in result.failures]:
        lines += ["", "failed, and how to repeat each:", *(f"  {command}" for command in failures)]
    return "\n".join(lines)


if __name__ == "__main__":
    program(main)
