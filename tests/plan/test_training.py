# SPDX-License-Identifier: Apache-2.0
"""The plans by which kernels are tuned are those that `plan/training.py` makes today."""

import pytest

from hourglass import resources
from hourglass.plan import training

PLANS = training.plans()


def test_no_plan_is_left_over() -> None:
    assert {path.name for path in (resources.KERNEL / "tuning").glob("*.json")} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_the_file_is_what_would_be_written(name: str) -> None:
    assert (resources.KERNEL / "tuning" / name).read_bytes() == PLANS[name], (
        "run: python -m hourglass.plan.training kernel/tuning"
    )
