# SPDX-License-Identifier: Apache-2.0
"""All scenarios of the soak are valid. Otherwise a changed built-in would fail only at night."""

import pytest

from hourglass import plan, scenario
from hourglass.engine.virtual import Virtual
from tests.soak import VARIANTS, cases


@pytest.mark.parametrize(
    ("kernel", "variant"), [(kernel, variant) for kernel, variants in VARIANTS.items() for variant in variants]
)
def test_the_soaks_own_changes_of_builtin_scenarios_are_taken(kernel: str, variant: str) -> None:
    for case in cases(kernel, variant, random=0):
        plan.build(scenario.load(case.source, case.changes, kernel=kernel), Virtual.capabilities)
