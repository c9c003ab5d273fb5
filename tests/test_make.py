# SPDX-License-Identifier: Apache-2.0
"""The Makefile: reports and failures of steps, and the steps of a first run."""

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.processes import MESSAGES, after_sigterm

ROOT = Path(__file__).parents[1]

STEPS = f"""
include {ROOT}/Makefile
good: begin
\t$(call step,what takes a while,sleep 1.1)
\t$(call step,a quick step,true)
\t$(timings)
long:
\t$(call step,what is long,exec >{MESSAGES}; echo begins; exec python3 -c 'import time; time.sleep(60); print()')
bad: begin
\t$(call step,what fails,echo broken; false; echo never)
\t$(timings)
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
"""As if no other make had started the tests."""


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in the test's folder."""
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_slow_steps_are_listed_with_their_seconds(tmp_path: Path) -> None:
    (tmp_path / "steps.mk").write_text(STEPS)
    result = make(tmp_path, "-f", "steps.mk", "good")
    assert result.returncode == 0
    timings = result.stdout.partition("Where the time went")[2].splitlines()[1:]
    assert [re.sub(r"[\d.]+", "#", line.strip()) for line in timings] == ["# s  what takes a while", "# s  in all"]
    assert all(1.0 <= float(line.split()[0]) < 30 for line in timings)
    assert not (tmp_path / "runs/.steps").exists()


def test_a_step_that_fails_stops(tmp_path: Path) -> None:
    (tmp_path / "steps.mk").write_text(STEPS)
    result = make(tmp_path, "-f", "steps.mk", "bad")
    assert result.returncode != 0
    assert "broken" in result.stdout
    assert "never" not in result.stdout
    assert "Where the time went" not in result.stdout


def test_a_terminated_make_ends_its_step(tmp_path: Path) -> None:
    (tmp_path / "steps.mk").write_text(STEPS)
    command = ["make", "-f", "steps.mk", "long"]
    written, child = after_sigterm(command, tmp_path, cwd=tmp_path, env=ENVIRONMENT)
    assert written == ""
    assert child.wait() == -signal.SIGTERM


def test_ci_installs_nothing_itself() -> None:
    """A new machine has only the tools that the two commands install."""
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line.partition(" ||")[0] for line in lines if line.startswith("make")] == ["make check", "make test-all"]
    assert not any(word in line for line in lines for word in ("apt", "rustup", "pip "))


def test_the_first_run_neither_tunes_nor_installs_tools_of_tests() -> None:
    commands = make(ROOT, "-n", "-B", "run").stdout
    assert "kernel build" in commands
    assert "kernel tune" not in commands
    assert "[dev]" not in commands
    assert commands.index("kernel build") < commands.index("run L100M")
