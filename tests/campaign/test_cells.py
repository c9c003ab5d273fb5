# SPDX-License-Identifier: Apache-2.0
"""What is wrong with any run of a grid is said before the first."""

from pathlib import Path

import pytest

from hourglass.campaign import cells, file
from hourglass.errors import InputError

DUALPI2 = {"scenario": "L100M", "axes": {"stack.qdisc": ["fq_codel", "dualpi2"]}, "repetitions": 2}


def test_what_only_the_plan_finds_is_refused_with_its_cell() -> None:
    grid = file.grid(DUALPI2, "own", Path())
    assert len(cells.scenarios(grid, "6.1")) == len(cells.scenarios(grid, "7.3", "virtual")) == 4
    with pytest.raises(InputError, match=r"not on kernel 6\.1.*in stack\.qdisc=dualpi2 seed=1"):
        cells.scenarios(grid, "6.1", "virtual")
