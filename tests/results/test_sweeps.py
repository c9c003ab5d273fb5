# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep where runs are wanted."""

import pytest

import hourglass
from hourglass.errors import InputError
from hourglass.results.groups import groups
from hourglass.results.labels import labels
from results.swept import SWEEP, folder


@pytest.fixture
def swept(tmp_path):
    """A sweep's folder, its third cell failed and its fourth the same run as the second."""
    return folder(tmp_path / "queues")


def test_a_sweep_is_the_runs_it_made(swept):
    found = hourglass.load_all([swept])
    assert [run.path.name for run in found] == ["a", "b"]
    assert [dict(run.axes) for run in found] == [
        {"stack.tsq": "tsq=off", "test.length": "length=10", "seed": f"seed={seed}"} for seed in (1, 2)
    ]
    assert labels(found) == ["seed=1", "seed=2"]


def test_runs_are_called_by_the_axes_that_differ_in_the_words_of_the_file(tmp_path):
    data = SWEEP | {"axes": {"stack.tsq": ["off", "default"], "stack.cc": ["bbr"]}}
    found = hourglass.load_all([folder(tmp_path / "queues", data, "ab")])
    assert labels(found) == ["tsq=off", "as in Linux"]


def test_seeds_of_a_sweep_are_one_group(swept):
    (group,) = groups(hourglass.load_all([swept]))
    assert (group.label, group.members) == ("synthetic", [0, 1])


def test_runs_may_be_shared_by_sweeps_beside_each_other(swept):
    (swept / "runs").rename(swept.parent / "runs")
    assert len(hourglass.load_all([swept, swept.parent / "runs" / "a"])) == 3


def test_what_cannot_be_opened_is_said(swept):
    with pytest.raises(InputError, match="is the folder of a sweep"):
        hourglass.load(swept)
    (swept / "runs" / "a" / "records.arrows").unlink()
    with pytest.raises(InputError, match="holds summaries only"):
        hourglass.load_all([swept])
    (swept / "table.parquet").write_text("rubbish")
    with pytest.raises(InputError, match="holds no table of a sweep"):
        hourglass.load_all([swept])
