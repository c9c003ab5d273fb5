# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep where runs are wanted."""

import json

import pytest

import hourglass
from hourglass.errors import InputError
from hourglass.results.groups import groups, over_seeds
from hourglass.results.labels import labels
from results.swept import SWEEP, folder
from results.synthetic import make


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


def test_runs_of_a_sweep_keep_their_names_beside_any_other(tmp_path):
    data = SWEEP | {"axes": {"stack.tsq": ["off", "default"], "seed": [1, 2]}}
    swept = folder(tmp_path / "queues", data, "abcd")
    other = folder(tmp_path / "others", data, "abcd")
    make(tmp_path / "alone")
    names = ["tsq=off, seed=1", "tsq=off, seed=2", "as in Linux, seed=1", "as in Linux, seed=2"]
    assert labels(hourglass.load_all([swept, tmp_path / "alone"])) == [*names, "synthetic"]
    assert labels(hourglass.load_all([swept / "runs" / "b", tmp_path / "alone"])) == [names[1], "synthetic"]
    assert labels(hourglass.load_all([*sorted((swept / "runs").iterdir()), tmp_path / "alone"])) == [
        *names,
        "synthetic",
    ]
    both = [f"{sweep}, {name}" for sweep in ("queues", "others") for name in names]
    assert labels(hourglass.load_all([swept, other])) == both


def test_seeds_are_grouped_whatever_stands_beside_the_sweep(tmp_path):
    """Even if it is one of its runs once more, of the same seed."""
    data = SWEEP | {"axes": {"stack.tsq": ["off"], "seed": [1, 2]}, "labels": {}}
    swept = folder(tmp_path / "queues", data, "ab")
    for run, seed in (("queues/runs/a", 1), ("queues/runs/b", 2), ("alone", 1)):
        made = tmp_path / run
        made = made if made.exists() else make(made)
        about = json.loads((made / "run.json").read_text())
        (made / "run.json").write_text(json.dumps(about | {"seed": seed}))
    runs = hourglass.load_all([swept, tmp_path / "alone"])
    found = groups(runs)
    assert [(group.label, group.members) for group in found] == [("tsq=off", [0, 1]), ("synthetic", [2])]
    assert over_seeds(runs, found)


def test_nobody_sees_a_hash_as_a_name(tmp_path):
    """Of runs whose sweep has no table, as where it was interrupted."""
    for name in ("0123456789abcdef", "fedcba9876543210"):
        make(tmp_path / "runs" / name)
    assert labels(hourglass.load_all(sorted((tmp_path / "runs").iterdir()))) == ["synthetic", "synthetic"]


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
