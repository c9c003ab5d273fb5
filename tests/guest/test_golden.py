# SPDX-License-Identifier: Apache-2.0
"""The records are those of `tests/golden.toml`, byte for byte.

Debian's kernels and tools change. If the file lacks a pair of release and tools, a warning has the line to add. Then
the figures must agree with the same kernel's entry within `MARGIN`.
"""

import json
import warnings

import pytest

from hourglass.contract.kernels import KERNELS
from tests import golden

from .conftest import Simulate

pytestmark = pytest.mark.guest

MARGIN = 0.05
"""Point releases fix bugs, and change these figures by less."""


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", golden.CASES)
def test_the_records_are_golden(simulate: Simulate, case: str, kernel: str) -> None:
    source, overrides = golden.CASES[case]
    run = simulate(source, *overrides, kernel=kernel)
    pair = golden.pair(json.loads((run.path / "run.json").read_text())["kernel"]["release"])
    entry, tables = golden.entry(run.path), golden.read()
    if case in tables.get(pair, {}):
        assert entry == tables[pair][case]
        return
    similar = next(table for name, table in tables.items() if name.startswith(f"{kernel}.") and case in table)
    figures, expected = ({key: values[key] for key in values if key != "sha256"} for values in (entry, similar[case]))
    assert figures == pytest.approx(expected, rel=MARGIN)
    line = f'["{pair}"] {golden.line(case, entry)}'
    warnings.warn(f"tests/golden.toml lacks: {line}; to add it: python -m tests.golden --update", stacklevel=1)


def test_every_kernel_has_all_cases() -> None:
    """A table of each kernel has exactly the current cases; those of other releases may lack some."""
    tables = golden.read()
    for kernel in KERNELS:
        assert any(
            name.startswith(f"{kernel}.") and table.keys() == golden.CASES.keys() for name, table in tables.items()
        )
    assert all(table.keys() <= golden.CASES.keys() for table in tables.values())
