# SPDX-License-Identifier: Apache-2.0
"""The records are those that `tests/golden.toml` says, byte for byte.

Debian's kernels and tools move on: for a pair of release and tools that the table does not have, the figures of the
same kernel's entry have to hold within `MARGIN`, and a warning gives the line to add.
"""

import json
import warnings

import pytest

from hourglass.contract.kernels import KERNELS
from tests import golden

from .conftest import Simulate

pytestmark = pytest.mark.guest

MARGIN = 0.05
"""Point releases fix bugs; what they change of these figures is less."""


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", golden.CASES)
def test_the_records_are_golden(simulate: Simulate, case: str, kernel: str) -> None:
    source, overrides = golden.CASES[case]
    run = simulate(source, *overrides, kernel=kernel)
    pair = golden.pair(json.loads((run.path / "run.json").read_text())["kernel"]["release"])
    found, known = golden.entry(run.path), golden.read()
    if pair in known:
        assert found == known[pair][case]
        return
    similar = next(table for name, table in known.items() if name.startswith(f"{kernel}."))
    figures, expected = ({key: one[key] for key in one if key != "sha256"} for one in (found, similar[case]))
    assert figures == pytest.approx(expected, rel=MARGIN)
    line = f'["{pair}"] {golden.line(case, found)}'
    warnings.warn(f"tests/golden.toml lacks: {line}; to add it: python -m tests.golden --update", stacklevel=1)


def test_the_table_has_what_the_cases_are() -> None:
    """Every kernel has a table, and every table is complete: none has a case that is no more, or lacks one."""
    tables = golden.read()
    assert all(any(name.startswith(f"{kernel}.") for name in tables) for kernel in KERNELS)
    assert all(table.keys() == golden.CASES.keys() for table in tables.values())
