# SPDX-License-Identifier: Apache-2.0
"""The pages name attributes and tables that exist."""

import re
from pathlib import Path

import polars as pl
import pytest
from results.synthetic import make

import hourglass
from hourglass.plots import style

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
TEXT = "".join(path.read_text() for path in sorted(HOW_TO.glob("*.md")) if path.name != "pytest.md")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\brun\.(?!png|json|md)([a-z_]+)", TEXT))))
def test_a_run_has_the_figures_of_the_pages(tmp_path: Path, name: str) -> None:
    assert hasattr(hourglass.load(make(tmp_path / "run")), name)


def test_a_table_is_a_frame(tmp_path: Path) -> None:
    run = hourglass.load(make(tmp_path / "run"))
    (listed,) = re.findall(r"^Tables: (.*?)\s+and those of", TEXT, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`run\..*?) \|", (HOW_TO / "find-latency.md").read_text(), re.MULTILINE)
    counters = re.findall(r"^\* (`run\.\w+_counters`) holds", TEXT, re.MULTILINE)
    tables = re.findall(r"`run\.(\w+)`", " ".join([listed, *rows, *counters]))
    assert len(tables) > 12
    assert all(isinstance(getattr(run, name), pl.DataFrame) for name in tables)


def test_when_an_axis_is_logarithmic() -> None:
    assert f"span a factor of more than {style.LOG_SPAN}." in TEXT
