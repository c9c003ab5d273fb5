# SPDX-License-Identifier: Apache-2.0
"""What `hourglass kernel ab` calls moved; its runs: tests/guest/test_ab.py."""

import pytest

from hourglass.campaign.ab import _moved
from hourglass.results.compare import Cell


@pytest.mark.parametrize(
    ("cell", "moved"),
    [
        (Cell(95.0, -1.2, (-2.0, -0.4)), True),
        (Cell(95.0, 0.05, (0.01, 0.02)), True),
        (Cell(95.0, 0.049, (0.01, 0.02)), False),
        (Cell(95.0, -0.049, (-0.02, -0.01)), False),
        (Cell(3.0, None, (2.0, 4.0)), True),
        (Cell(95.0, 1.2, (-0.4, 2.0)), False),
        (Cell(95.0, 1.2), False),
    ],
    ids=["less", "told as 0.1", "told as 0.0", "told as -0.0", "from nothing", "may be chance", "no interval"],
)
def test_a_figure_has_moved_beyond_its_seeds_and_as_it_is_told(cell: Cell, moved: bool) -> None:
    assert _moved(cell) == moved
