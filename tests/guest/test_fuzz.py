# SPDX-License-Identifier: Apache-2.0
"""Runs of a few random scenarios, and of random system calls; `make fuzz` and `make fuzz-calls` make thousands."""

from pathlib import Path

import pytest

from hourglass.contract.kernels import DEFAULT
from tests.fuzz.draw import draw
from tests.fuzz.judge import problem_of
from tests.fuzz.system_calls import COMPLETE, FINDING, compiled, end

from .conftest import KERNELS

pytestmark = pytest.mark.guest

PER_KERNEL = 3


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", range(PER_KERNEL))
def test_a_random_scenario_ends_has_right_counts_and_repeats(number: int, kernel: str) -> None:
    problem = problem_of(draw(f"fixed {number}", kernel))
    assert problem is None or problem.startswith("refused: "), problem


@pytest.mark.real_time
@pytest.mark.parametrize("kernel", KERNELS)
def test_random_system_calls_end_in_a_run_and_leave_the_host_as_it_was(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    assert end(compiled(tmp_path), 1000, 30, kernel, tmp_path / "host") == (COMPLETE, "")


def test_a_program_that_ends_early_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "calls.c").write_text("int main(void) { return 0; }")
    (tmp_path / "host").mkdir()
    outcome = end(compiled(tmp_path, tmp_path / "calls.c"), 1, 30, DEFAULT, tmp_path / "host")
    assert outcome == (FINDING, "the program of root ended early, with ''")
