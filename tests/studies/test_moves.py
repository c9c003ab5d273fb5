# SPDX-License-Identifier: Apache-2.0
"""The figures of "*" that have moved. The runs are tested in `tests/guest/test_comparison.py`."""

import pytest

from hourglass.results.compare import ComparisonCell
from hourglass.studies.moves import has_moved


@pytest.mark.parametrize(
    ("cell", "moved"),
    [
        (ComparisonCell(95.0, -1.2, (-2.0, -0.4)), True),
        (ComparisonCell(95.0, 0.05, (0.01, 0.02)), True),
        (ComparisonCell(95.0, 0.049, (0.01, 0.02)), False),
        (ComparisonCell(95.0, -0.049, (-0.02, -0.01)), False),
        (ComparisonCell(3.0, None, (2.0, 4.0)), True),
        (ComparisonCell(95.0, 1.2, (-0.4, 2.0)), False),
        (ComparisonCell(95.0, 1.2), False),
    ],
    ids=["less", "printed as 0.1", "printed as 0.0", "printed as -0.0", "from nothing", "may be chance", "no interval"],
)
def test_a_figure_has_moved_beyond_its_seeds_and_its_digits(cell: ComparisonCell, moved: bool) -> None:
    assert has_moved(cell) == moved
