# SPDX-License-Identifier: Apache-2.0
"""Comparison of runs: figures, differences and their significance."""

import numpy as np
import pytest

import hourglass
from hourglass.results.compare import compare
from hourglass.results.intervals import DRAWS, draws, interval
from hourglass.results.sections import sections
from results.synthetic import MS, Flow, Probe, Recipe, make


def rows_of(tmp_path, *recipes):
    runs = [hourglass.load(make(tmp_path / str(i), recipe)) for i, recipe in enumerate(recipes)]
    return {row.figure: row for row in compare(runs)}


def test_a_run_compared_with_itself_has_no_difference(tmp_path):
    rows = rows_of(tmp_path, Recipe(), Recipe())
    goodput = rows["upload goodput"].cells[1]
    assert (goodput.value, goodput.change_percent, goodput.interval) == (8, 0, (0, 0))
    assert not any(cell.significant for row in rows.values() for cell in row.cells)


def test_a_plain_shift_is_significant_and_has_its_size(tmp_path):
    slow = Recipe(flows=[Flow(rtt_us=lambda t: 8000)], probes=[Probe("icmp", lambda seq: 4 * MS)])
    rows = rows_of(tmp_path, Recipe(), slow)
    rtt, ping = rows["TCP RTT p50"].cells[1], rows["ping icmp p50"].cells[1]
    assert (rtt.value, rtt.change_percent, rtt.interval, rtt.significant) == (8, 300, (6, 6), True)
    assert (ping.value, ping.change_percent, ping.significant) == (4, 300, True)
    assert rows["ping icmp p99"].cells[1].interval is None


def test_a_difference_within_the_noise_is_not_significant(tmp_path):
    noise = np.random.default_rng(7).normal(size=(2, 200))
    probes = [Probe("icmp", lambda seq, i=i: round((10 + noise[i][seq]) * MS)) for i in range(2)]
    cell = rows_of(tmp_path, *(Recipe(probes=[p]) for p in probes))["ping icmp p50"].cells[1]
    assert cell.value != 10
    assert not cell.significant


def test_figures_that_only_one_run_has_stay_empty_for_the_other(tmp_path):
    rows = rows_of(tmp_path, Recipe(), Recipe(flows=[], probes=[Probe("udp")]))
    assert rows["upload goodput"].cells[1].value is None
    assert rows["ping udp p50"].cells[0].value is None
    assert rows["ping udp p50"].cells[1].change_percent is None
    assert "download goodput" not in rows


def test_fairness_is_that_of_each_way(tmp_path):
    """Equal shares of a fast downlink and of a slow uplink are fair, in the comparison and in the run's table."""
    flows = [Flow(f"{direction}::{i}", upload=direction == "upload", bytes_at=lambda t, rate=rate: int(t * rate))
             for direction, rate in (("upload", 125_000), ("download", 2_500_000)) for i in range(2)]  # fmt: skip
    rows = rows_of(tmp_path, Recipe(flows=flows))
    assert "fairness" not in rows
    assert (rows["upload fairness"].cells[0].value, rows["download fairness"].cells[0].value) == (1, 1)
    summary = hourglass.load(tmp_path / "0").summary
    assert summary.totals.fairness < 0.6
    (line,) = (section for section in sections(summary) if section.id == "totals")
    assert [column.title for column in line.columns[2:]] == ["fair up", "fair down"]
    assert line.rows[0][2:] == (1, 1)


def test_the_interval_is_the_same_each_time_and_needs_blocks():
    random = np.random.default_rng(3)
    first, other = ([random.normal(size=5) for _ in range(30)] for _ in range(2))
    drawn = draws(first, "median", 1)
    assert interval(drawn, draws(other, "median", 2)) == interval(draws(first, "median", 1), draws(other, "median", 2))
    assert interval(drawn, draws(other[:4], "median", 2)) is None


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Two samples of one normal distribution, 30 blocks of 5: the interval must contain 0 in about 95 % of trials."""
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(60):
        one_sample, other_sample = ([random.normal(size=5) for _ in range(30)] for _ in range(2))
        low, high = interval(draws(one_sample, "mean", 1), draws(other_sample, "mean", 2))
        covered += low <= 0 <= high
    assert covered >= 60 * 0.85
    assert covered == pytest.approx(57, abs=5)


@pytest.mark.parametrize(("statistic", "plain"), [("mean", np.mean), ("median", np.median)])
def test_draws_are_those_of_the_plain_definition(statistic, plain):
    """With blocks of unequal size and ties, the draws equal those of joined blocks, one draw after the other."""
    random = np.random.default_rng(5)
    blocks = [random.integers(0, 12, size=size).astype(float) for size in (1, 7, 4, 9, 2, 6)]
    chosen = np.random.default_rng(9).integers(len(blocks), size=(DRAWS, len(blocks)))
    expected = [plain(np.concatenate([blocks[i] for i in draw])) for draw in chosen]
    assert draws(blocks, statistic, 9) == pytest.approx(expected, abs=1e-12)
