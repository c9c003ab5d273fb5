# SPDX-License-Identifier: Apache-2.0
"""Runs of a few random scenarios; `make fuzz` makes thousands."""

import pytest

from tests.fuzz.draw import draw
from tests.fuzz.judge import problem_of

from .conftest import KERNELS

pytestmark = pytest.mark.guest

PER_KERNEL = 3


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", range(PER_KERNEL))
def test_a_random_scenario_ends_has_right_counts_and_repeats(number: int, kernel: str) -> None:
    problem = problem_of(draw(f"fixed {number}", kernel))
    assert problem is None or problem.startswith("refused: "), problem
