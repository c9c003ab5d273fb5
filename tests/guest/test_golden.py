# SPDX-License-Identifier: Apache-2.0
"""The records are those that `tests/golden.toml` says, byte for byte.

For a kernel release or tools that the table does not have, the test fails and gives the line to add: no pair passes
without having been looked at.
"""

import json

import pytest

from hourglass.contract.kernels import KERNELS
from tests import golden

from .conftest import Simulate

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", golden.CASES)
def test_the_records_are_golden(simulate: Simulate, case: str, kernel: str) -> None:
    source, overrides = golden.CASES[case]
    run = simulate(source, *overrides, kernel=kernel)
    pair = golden.pair(json.loads((run.path / "run.json").read_text())["kernel"]["release"])
    found, known = golden.entry(run.path), golden.read()
    if case not in known.get(pair, {}):
        pytest.fail(
            "tests/golden.toml lacks this, of this kernel and root; review it, then: python -m tests.golden --update"
            f'\n["{pair}"]\n{golden.line(case, found)}',
            pytrace=False,
        )
    assert found == known[pair][case]


def test_the_table_has_what_the_cases_are() -> None:
    """Every table is complete: none has a case that is no more, or lacks one."""
    tables = golden.read()
    assert tables
    assert all(table.keys() == golden.CASES.keys() for table in tables.values())
