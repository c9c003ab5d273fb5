# SPDX-License-Identifier: Apache-2.0
"""An error in any run of a grid is reported before the first run."""

import pytest

from hourglass.errors import InputError
from hourglass.studies import cells
from studies.grids import grid_of

DUALPI2 = {"scenario": "L100M", "axes": {"stack.qdisc": ["fq_codel", "dualpi2"]}, "seeds": 2}


def test_an_error_of_the_plan_is_reported_with_its_cell() -> None:
    grid = grid_of(DUALPI2)
    assert len(cells.scenarios(grid, "6.1")) == len(cells.scenarios(grid, "7.3", "virtual")) == 4
    with pytest.raises(InputError, match=r"does not exist on kernel 6\.1.*in stack\.qdisc=dualpi2 seed=1"):
        cells.scenarios(grid, "6.1", "virtual")
