# SPDX-License-Identifier: Apache-2.0
"""What the soak would run is taken: it finds out at night else, when a built-in has changed."""

import pytest

from hourglass import plan, scenario
from hourglass.engine.virtual import Virtual
from tests.soak import VARIANTS, cases


@pytest.mark.parametrize(("kernel", "variant"), [(kernel, one) for kernel, some in VARIANTS.items() for one in some])
def test_the_soaks_own_changes_of_builtin_scenarios_are_taken(kernel: str, variant: str) -> None:
    for case in cases(kernel, variant, random=0):
        plan.build(scenario.load(case.source, case.changes, kernel=kernel), Virtual.capabilities)
