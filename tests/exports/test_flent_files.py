# SPDX-License-Identifier: Apache-2.0
"""Exports of Flent files have the names of their sources."""

import pytest
from flent.small import small

from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError


@pytest.fixture
def export(tmp_path, monkeypatch, capsys):
    """Return a function that exports to `out` and returns (status, names of its files, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = guarded(["export", *map(str, arguments), "--out", "out"])
        return status, sorted(path.name for path in tmp_path.glob("out/*")), capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("csv", ["home.figures.csv", "home.series.csv"]),
        ("parquet", ["home.figures.parquet", "home.series.parquet"]),
        ("qlog", ["home.upload-BE.sqlog"]),
    ],
)
def test_files_are_named_after_their_source(export, tmp_path, kind, names):
    home = small(tmp_path / "home.flent.gz")
    assert export(home, home, "--format", kind) == (0, names, "")


def test_a_trace_has_the_name_too(export, tmp_path):
    pytest.importorskip("perfetto")
    assert export(small(tmp_path / "home.flent.gz"), "--format", "perfetto")[1] == ["home.pftrace"]


def test_two_files_of_one_name_are_refused_before_the_first_is_written(export, tmp_path):
    files = [small(tmp_path / name / "home.flent.gz") for name in "ab"]
    status, names, err = export(*files, "--format", "csv")
    assert (status, names) == (InputError.status, [])
    assert "has the name of" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("kind", "reason"), [("wireshark", "has no captures"), ("flent", "not a run of Hourglass")])
def test_formats_that_need_a_run_say_so(export, tmp_path, kind, reason):
    status, names, err = export(small(tmp_path / "home.flent.gz"), "--format", kind)
    assert (status, names) == (InputError.status, [])
    assert reason in err
    assert err.count("\n") == 1


def test_a_file_without_samples_of_ss_has_no_qlog(export, tmp_path):
    file = small(tmp_path / "home.flent.gz", rtt=False)
    assert "no samples of ss" in export(file, "--format", "qlog")[2]
