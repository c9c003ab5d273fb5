# SPDX-License-Identifier: Apache-2.0
"""The Makefile: how steps are told and stopped, and what a first run asks for."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]

STEPS = f"""
include {ROOT}/Makefile
good: begin
\t$(call step,what takes a while,sleep 1.1)
\t$(call step,what is there already,true)
\t$(told)
bad: begin
\t$(call step,what fails,echo broken; false; echo never)
\t$(told)
"""


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What make does, in a folder of the test's, as if no other make had started the tests."""
    apart = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *words], cwd=folder, env=apart, capture_output=True, text=True, check=False)


def test_steps_that_took_time_are_told_with_their_seconds(tmp_path: Path) -> None:
    (tmp_path / "steps.mk").write_text(STEPS)
    done = make(tmp_path, "-f", "steps.mk", "good")
    assert done.returncode == 0
    told = done.stdout.partition("Where the time went")[2].splitlines()[1:]
    assert [re.sub(r"[\d.]+", "#", line.strip()) for line in told] == ["# s  what takes a while", "# s  in all"]
    assert all(1.0 <= float(line.split()[0]) < 30 for line in told)
    assert not (tmp_path / "runs/.steps").exists()


def test_a_step_that_fails_stops(tmp_path: Path) -> None:
    (tmp_path / "steps.mk").write_text(STEPS)
    done = make(tmp_path, "-f", "steps.mk", "bad")
    assert done.returncode != 0
    assert "broken" in done.stdout
    assert "never" not in done.stdout
    assert "Where the time went" not in done.stdout


def test_the_first_run_neither_tunes_nor_installs_what_only_tests_need() -> None:
    words = make(ROOT, "-n", "-B", "run").stdout
    assert "kernel build" in words
    assert "kernel tune" not in words
    assert "[dev]" not in words
    assert "[report]" in words  # without which `hourglass report` draws nothing
    assert words.index("kernel build") < words.index("run L100M")
