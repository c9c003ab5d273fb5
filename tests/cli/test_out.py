# SPDX-License-Identifier: Apache-2.0
"""What cannot be written is wrong input, whichever command was to write it; values are told as one writes them."""

import pytest
from results.synthetic import make

from hourglass.cli.errors import guarded
from hourglass.errors import InputError


@pytest.mark.parametrize(
    "arguments",
    [["plot", "timeseries", "one", "--out", "file/x.png"], ["report", "one", "--out", "file/x.html"],
     ["export", "one", "--format", "csv", "--out", "file"]],
)  # fmt: skip
def test_what_cannot_be_written(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "one")
    (tmp_path / "file").touch()
    assert guarded(arguments) == InputError.status
    err = capsys.readouterr().err
    assert err.startswith("hourglass: error: ")
    assert err.count("\n") == 1
    assert "cannot be written" in err


@pytest.mark.parametrize(
    ("value", "told"),
    [(True, "true"), (None, "none"), ([1, False], "[1, false]"), ({"a": None}, "{a = none}"), ("x", "'x'")],
)
def test_values_are_told_as_one_writes_them(value, told):
    assert str(InputError("key", value, "no")) == f"key = {told}: no"
