# SPDX-License-Identifier: Apache-2.0
"""An unwritable output is wrong input for every command, and errors quote values as in a TOML file."""

import pytest
from results.synthetic import make

from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError


@pytest.mark.parametrize(
    "arguments",
    [["plot", "timeseries", "one", "--picture", "file/x.png"], ["report", "one", "--page", "file/x.html"],
     ["export", "one", "--format", "csv", "--out", "file"]],
)  # fmt: skip
def test_an_unwritable_output_is_wrong_input(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "one")
    (tmp_path / "file").touch()
    assert guarded(arguments) == InputError.status
    err = capsys.readouterr().err
    assert err.startswith("hourglass: error: ")
    assert err.count("\n") == 1
    assert "cannot be written" in err


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (None, "none"), ([1, False], "[1, false]"), ({"a": None}, "{a = none}"), ("x", "'x'")],
)
def test_values_are_quoted_as_in_toml(value, text):
    assert str(InputError("key", value, "no")) == f"key = {text}: no"
