# SPDX-License-Identifier: Apache-2.0
"""What the guide says of the Python interface is there."""

import re
from pathlib import Path

import polars as pl
import pytest
from results.synthetic import make

import hourglass
from hourglass.plots import style

GUIDE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\brun\.(?!png|json)([a-z_]+)", GUIDE))))
def test_what_is_said_of_a_run(tmp_path: Path, name: str) -> None:
    assert hasattr(hourglass.load(make(tmp_path / "run")), name)


def test_what_is_called_a_table_is_one(tmp_path: Path) -> None:
    run = hourglass.load(make(tmp_path / "run"))
    (named,) = re.findall(r"^Tables: (.*) and those of", GUIDE, re.MULTILINE)
    (counters,) = re.findall(r"holds the figures; (.*) hold the counters over time", GUIDE)
    tables = re.findall(r"`run\.(\w+)`", f"{named} {counters}")
    assert len(tables) > 8
    assert all(isinstance(getattr(run, name), pl.DataFrame) for name in tables)


def test_when_an_axis_is_logarithmic() -> None:
    assert f"span a factor of more than {style.LOG_SPAN}," in GUIDE
