# SPDX-License-Identifier: Apache-2.0
"""Labels of runs that are compared."""

from dataclasses import replace

import pytest
from flent.small import small

import hourglass
from hourglass.results.flat import flat
from hourglass.results.labels import difference_terms, labels
from results.synthetic import make

BASE = {"name": "L100M", "kernel": "6.1", "seed": 1, "stack": {"tsq": "default", "sysctl": {}}, "links": [{"rate": 1}],
        "test": {"name": "tcp_nup", "length": 10}, "testbed": {"shaper": []}}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    recordings = [hourglass.load(make(tmp_path / f"run{i}")) for i in range(2)]
    for run in recordings:
        ask(run, BASE)
    return recordings


def ask(run, scenario):
    run.experiment = replace(run.experiment, name=scenario["name"], settings=dict(flat(scenario)))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"name": "R100M"}, ["L100M", "R100M"]),
        ({"stack": {"tsq": "off", "sysctl": {}}}, ["tsq=default", "tsq=off"]),
        ({"kernel": "6.12", "seed": 2}, ["kernel=6.1, seed=1", "kernel=6.12, seed=2"]),
        ({"links": [{"rate": 2}]}, ["rate=1", "rate=2"]),
        ({"stack": {"tsq": "default", "sysctl": {"a.b": 1}}}, ["a.b=-", "a.b=1"]),
        (
            {"kernel": "6.12", "seed": 2, "stack": {"tsq": "off", "sysctl": {}}},
            ["kernel=6.1, seed=1, tsq=default", "kernel=6.12, seed=2, tsq=off"],
        ),
        ({"test": {"name": "rrul", "length": 10, "download_streams": 4}}, ["test=tcp_nup", "test=rrul"]),
        (
            {"testbed": {"shaper": [{"at": "router:eth1", "burst": "5KB", "rate": "38mbit"}]}},
            ["shaper=-", "shaper=router:eth1 38mbit"],
        ),
        (
            {"stack": {"tsq": "off", "sysctl": {}, "nodes": {"server": {"tsq": "5ms"}}}},
            ["stack.tsq=default, server.tsq=-", "stack.tsq=off, server.tsq=5ms"],
        ),
        ({"links": [{"rate": 1, "delay": 2}, {"delay": 2}]}, ["delay=-", "delay=2"]),
        ({"stack": {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}}, ["run0", "run1"]),
        ({}, ["run0", "run1"]),
    ],
)
def test_labels_have_the_settings_that_differ(runs, change, names):
    ask(runs[1], BASE | change)
    assert labels(runs) == names


def test_runs_of_several_scenarios_keep_their_names(runs, tmp_path):
    third = hourglass.load(make(tmp_path / "run2"))
    ask(third, BASE | {"name": "R100M"})
    ask(runs[1], BASE | {"seed": 2})
    assert labels([*runs, third]) == ["L100M, seed=1", "L100M, seed=2", "R100M, seed=1"]


def test_an_engine_that_differs_is_in_the_label(runs):
    runs[1].info = runs[1].info.model_copy(update={"engine": "native"})
    assert labels(runs) == ["engine=virtual", "engine=native"]


def test_labels_of_different_scenarios_begin_with_the_main_settings(runs):
    other = {"name": "lte", "capture": {"snaplen": 128}, "stack": {"tsq": "off"}, "links": [{"rate": 2, "delay": 3}]}
    ask(runs[0], BASE | {"capture": {"snaplen": 0}})
    ask(runs[1], BASE | other | {"test": {"name": "tcp_nup", "length": 60}})
    assert difference_terms(runs, ranked=True)[1] == ["length=60", "tsq=off", "rate=2", "snaplen=128"]


FQ = "rrul-2017-02-28T132144.000000.fq.flent.gz"
"""A name as Flent makes it."""


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"a.flent.gz": {}, "b.flent.gz": {}}, ["a", "b"]),
        ({"a/home.flent.gz": {}, "b/home.flent.gz": {}}, ["a/home", "b/home"]),
        ({FQ: {}, "rrul-2017-02-28T132537.000000.cake.flent.gz": {}}, ["fq", "cake"]),
        ({FQ: {}, f"b/{FQ}": {}}, ["here/rrul-2017-02-28T132144.000000.fq", "b/rrul-2017-02-28T132144.000000.fq"]),
        ({"a.flent.gz": {"TITLE": "fq"}, "b.flent.gz": {"TITLE": "cake"}}, ["fq", "cake"]),
        ({"a.flent.gz": {"TITLE": "fq"}, "b.flent.gz": {"TITLE": "fq"}}, ["a", "b"]),
        (
            {"a.flent.gz": {"TITLE": "fq"}, "b.flent.gz": {"TITLE": "fq"}, "c.flent.gz": {"TITLE": "cake"}},
            ["fq, a", "fq, b", "cake, c"],
        ),
        ({"a.flent.gz": {"HOST": "x"}, "b.flent.gz": {"HOST": "y"}}, ["server=x", "server=y"]),
    ],
)
def test_files_have_a_label_each(tmp_path, files, names):
    opened = [hourglass.load(small(tmp_path / "here" / name, **metadata)) for name, metadata in files.items()]
    assert labels(opened) == names


def test_a_file_that_is_given_twice_has_two_labels(tmp_path):
    files = [small(tmp_path / name / "home.flent.gz") for name in "ab"]
    assert labels([hourglass.load(files[index]) for index in (0, 1, 0)]) == ["a/home #1", "b/home", "a/home #2"]


def test_files_do_not_change_the_labels_of_runs(runs, tmp_path):
    ask(runs[1], BASE | {"seed": 2})
    files = [hourglass.load(small(tmp_path / f"{name}.flent.gz")) for name in "ab"]
    assert labels([*runs, *files]) == ["seed=1", "seed=2", "a", "b"]


def test_a_file_of_a_run_s_name_has_another_label(runs, tmp_path):
    titled = hourglass.load(small(tmp_path / "home.flent.gz", TITLE="L100M"))
    assert labels([runs[0], titled]) == ["run0", "home"]
