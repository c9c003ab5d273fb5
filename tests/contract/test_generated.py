# SPDX-License-Identifier: Apache-2.0
"""Every generated file is what would be written today."""

from pathlib import Path

import pytest

from hourglass.contract.__main__ import generated

ROOT = Path(__file__).parents[2]
TEXTS = generated(ROOT)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_it_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == TEXTS[path], "run: python -m hourglass.contract"
