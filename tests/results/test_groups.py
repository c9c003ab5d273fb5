# SPDX-License-Identifier: Apache-2.0
"""Runs that differ in their seed alone are one group; groups are compared over seeds."""

import json

import pytest
from flent.small import small

import hourglass
from hourglass.results.compare import compare
from hourglass.results.groups import compare_groups, groups, over_seeds
from results.synthetic import MS, Probe, Recipe, make


def seeded(folder, seed, ping_ms, stack):
    make(folder, Recipe(probes=[Probe("icmp", lambda seq: round(ping_ms * MS))]))
    data = json.loads((folder / "scenario.json").read_text())
    (folder / "scenario.json").write_text(json.dumps(data | {"seed": seed, "stack": {"tsq": stack}}))
    return hourglass.load(folder)


def ping(runs):
    run_groups = groups(runs)
    rows = {row.figure: row for row in compare_groups(compare(runs), run_groups)}
    return run_groups, rows["ping icmp p50"].cells[1]


def test_seeds_are_grouped_and_their_means_compared(tmp_path):
    runs = [seeded(tmp_path / f"{s}{t}", s, 10 + s / 10 + (5 if t == "off" else 0), t)
            for s in range(5) for t in ("default", "off")]  # fmt: skip
    run_groups, cell = ping(runs)
    assert [(group.label, group.members) for group in run_groups] == [
        ("tsq=default", [0, 2, 4, 6, 8]),
        ("tsq=off", [1, 3, 5, 7, 9]),
    ]
    assert cell.value == pytest.approx(15.2)
    assert cell.significant
    assert cell.interval[0] > 4.5
    assert cell.interval[1] < 5.5


def test_few_seeds_have_no_significance(tmp_path):
    runs = [seeded(tmp_path / f"{s}{t}", s, 15 if t == "off" else 10, t) for s in range(4) for t in ("default", "off")]
    cell = ping(runs)[1]
    assert cell.change_percent == 50
    assert cell.interval is None


def test_a_difference_below_the_spread_of_seeds_is_not_significant(tmp_path):
    runs = [seeded(tmp_path / f"{s}{t}", s, 10 + s + (0.2 if t == "off" else 0), t)
            for s in range(5) for t in ("default", "off")]  # fmt: skip
    assert not ping(runs)[1].significant


def test_every_file_is_a_group_without_seeds(tmp_path):
    files = [hourglass.load(small(tmp_path / f"{name}.flent.gz")) for name in "abc"]
    assert [(group.label, group.members, group.seeds) for group in groups(files)] == [
        ("a", [0], ""), ("b", [1], ""), ("c", [2], "")
    ]  # fmt: skip
    assert not over_seeds(files, groups(files))
    seeds = [seeded(tmp_path / str(seed), seed, 10, "off") for seed in (1, 2)]
    seeds[1].info = seeds[1].info.model_copy(update={"seed": 2})
    runs = [*files[:2], *seeds]
    assert [(group.label, group.seeds) for group in groups(runs)] == [("a", ""), ("b", ""), ("synthetic", "2 seeds")]
    assert over_seeds(runs, groups(runs))
