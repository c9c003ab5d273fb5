# SPDX-License-Identifier: Apache-2.0
"""The plans that tune kernels are the current ones of `plan/training.py`."""

import pytest

from hourglass import resources
from hourglass.plan import training

PLANS = training.plans()


def test_every_training_plan_is_used() -> None:
    assert {path.name for path in (resources.KERNEL / "tuning").glob("*.json")} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_the_training_plan_is_up_to_date(name: str) -> None:
    assert (resources.KERNEL / "tuning" / name).read_bytes() == PLANS[name], (
        "run: python -m hourglass.plan.training kernel/tuning"
    )
