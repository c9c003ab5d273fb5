# SPDX-License-Identifier: Apache-2.0
"""The report's charting library: the wheel's file, else what vl-convert-python makes, else a remedy."""

import re
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from hourglass.cli import doctor
from hourglass.engine.doctor import Check
from hourglass.errors import MissingError
from hourglass.report import library


def test_a_wheels_file_is_taken_as_it_is(tmp_path, monkeypatch):
    brought = tmp_path / "vega.js"
    brought.write_text("vega", "utf-8")
    monkeypatch.setattr(library, "CHARTS", brought)
    monkeypatch.setattr(library, "_version", lambda: pytest.fail("nothing else is asked"))
    assert library.text(tmp_path / "cache") == "vega"
    assert not (tmp_path / "cache").exists()


def test_what_is_made_is_kept_by_its_version(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "CHARTS", tmp_path / "none")
    monkeypatch.setattr(library, "_version", lambda: "1.2")
    monkeypatch.setattr(library, "_bundle", lambda: "made")
    assert library.text(tmp_path) == "made"
    assert (tmp_path / "vega-1.2.js").read_text("utf-8") == "made"
    monkeypatch.setattr(library, "_bundle", lambda: pytest.fail("it is kept"))
    assert library.text(tmp_path) == "made"


@pytest.mark.parametrize("kept", [True, False])
def test_without_either_the_remedy_is_told(tmp_path, monkeypatch, kept):
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library, "CHARTS", tmp_path / "none")
    monkeypatch.setattr(library, "version", none)
    library._bundle.cache_clear()
    with pytest.raises(MissingError, match="-m pip install vl-convert-python") as told:
        library.text(tmp_path if kept else None)
    assert told.value.remedy.startswith(sys.executable)
    check = doctor.reports()
    assert (check.ok, check.needed, check.remedy) == (False, False, told.value.remedy)


def test_doctor_says_what_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "CHARTS", tmp_path / "none")
    monkeypatch.setattr(library, "version", lambda name: "1.2")
    assert doctor.reports() == Check("reports", True, "Vega, made by vl-convert-python 1.2", needed=False)
    (tmp_path / "none").touch()
    assert doctor.reports().detail == "Vega, brought by the wheel"


def test_no_text_names_a_package_that_no_index_has():
    """Neither hourglass nor its extras: the index's hourglass is somebody else's."""
    root = Path(__file__).parents[2]
    texts = [*root.glob("*.md"), *root.glob("docs/*.md"), *(root / "src").rglob("*.py")]
    by_name = re.compile(r"""pip install (--?[\w-]+ )*['"]?hourglass(\[|-kernel|['"`]|==|$)""", re.MULTILINE)
    assert not [f"{path}: {found[0]}" for path in texts for found in by_name.finditer(path.read_text("utf-8"))]
