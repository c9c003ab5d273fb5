# SPDX-License-Identifier: Apache-2.0
"""The folder of a sweep as an argument that names runs."""

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
    """Return a sweep's folder. Its third cell failed, and its fourth has the run of the second."""
    return folder(tmp_path / "queues")


def test_a_sweep_loads_as_its_runs(swept):
    runs = hourglass.load_all([swept])
    assert [run.path.name for run in runs] == ["a", "b"]
    assert [dict(run.axes) for run in runs] == [
        {"stack.tsq": "tsq=off", "test.length": "length=10", "seed": f"seed={seed}"} for seed in (1, 2)
    ]
    assert labels(runs) == ["seed=1", "seed=2"]


def test_labels_have_the_axes_that_differ_with_the_file_s_labels(tmp_path):
    data = SWEEP | {"axes": {"stack.tsq": ["off", "default"], "stack.cc": ["bbr"]}}
    runs = hourglass.load_all([folder(tmp_path / "queues", data, "ab")])
    assert labels(runs) == ["tsq=off", "as in Linux"]


def test_axes_that_change_together_are_named_once(tmp_path):
    """Two shapers of one rate are one setting."""
    rates = ["10mbit", "50mbit"]
    together = {"testbed.shaper.0.rate": rates, "testbed.shaper.1.rate": rates}
    data = SWEEP | {"axes": {"stack.cc": ["bbr"]}, "zip": [together], "labels": {}}
    assert labels(hourglass.load_all([folder(tmp_path / "queues", data, "ab")])) == [
        f"shaper.0.rate={rate}" for rate in rates
    ]


def test_seeds_of_a_sweep_are_one_group(swept):
    (group,) = groups(hourglass.load_all([swept]))
    assert (group.label, group.members) == ("synthetic", [0, 1])


def test_runs_of_a_sweep_keep_their_names_next_to_others(tmp_path):
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


def test_seeds_are_grouped_with_any_run_next_to_the_sweep(tmp_path):
    """The other run may be one of the sweep's runs, with the same seed."""
    data = SWEEP | {"axes": {"stack.tsq": ["off"], "seed": [1, 2]}, "labels": {}}
    sweep = folder(tmp_path / "queues", data, "ab")
    for run, seed in (("queues/runs/a", 1), ("queues/runs/b", 2), ("alone", 1)):
        path = tmp_path / run
        path = path if path.exists() else make(path)
        info = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps(info | {"seed": seed}))
    runs = hourglass.load_all([sweep, tmp_path / "alone"])
    run_groups = groups(runs)
    assert [(group.label, group.members) for group in run_groups] == [("tsq=off", [0, 1]), ("synthetic", [2])]
    assert over_seeds(runs, run_groups)


def test_no_name_is_a_hash(tmp_path):
    """Load runs of an interrupted sweep, which has no table."""
    for name in ("0123456789abcdef", "fedcba9876543210"):
        make(tmp_path / "runs" / name)
    assert labels(hourglass.load_all(sorted((tmp_path / "runs").iterdir()))) == ["synthetic", "synthetic"]


def test_two_sweeps_may_share_runs(swept):
    (swept / "runs").rename(swept.parent / "runs")
    assert len(hourglass.load_all([swept, swept.parent / "runs" / "a"])) == 3


def test_a_folder_that_cannot_be_opened_is_named(swept):
    with pytest.raises(InputError, match="is a sweep's folder"):
        hourglass.load(swept)
    (swept / "runs" / "a" / "records.arrows").unlink()
    with pytest.raises(InputError, match="holds summaries only"):
        hourglass.load_all([swept])
    (swept / "table.parquet").write_text("rubbish")
    with pytest.raises(InputError, match="lacks the table of a sweep"):
        hourglass.load_all([swept])
