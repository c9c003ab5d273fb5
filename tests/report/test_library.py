# SPDX-License-Identifier: Apache-2.0
"""The report's charting library: the wheel's file, else what vl-convert-python makes, else a remedy."""

from importlib.metadata import PackageNotFoundError

import pytest

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
    with pytest.raises(MissingError, match=r"pip install 'hourglass\[report\]'"):
        library.text(tmp_path if kept else None)
