# SPDX-License-Identifier: Apache-2.0
"""A few random scenarios as runs; `make fuzz` makes thousands."""

import pytest

from tests.fuzz.draw import draw
from tests.fuzz.judge import wrong

from .conftest import KERNELS

pytestmark = pytest.mark.guest

PER_KERNEL = 3


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", range(PER_KERNEL))
def test_a_random_scenario_ends_adds_up_and_repeats(number: int, kernel: str) -> None:
    said = wrong(draw(f"fixed {number}", kernel))
    assert said is None or said.startswith("refused: "), said
