# SPDX-License-Identifier: Apache-2.0
"""The radios' figures of synthetic counters against closed forms."""

import numpy as np
import pytest

import hourglass
from hourglass.results.compare import compare
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window
from hourglass.results.wifi import air_share
from results import synthetic_wifi
from results.synthetic import Recipe, make


@pytest.fixture
def run(tmp_path) -> Recording:
    return hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))


def test_figures_are_the_growth_within_the_window(run: Recording) -> None:
    """10 s are 50 steps; beacons are no aggregates: 1, 4, 4, 4."""
    ap = run.summary.wifi["ap"]["wlan0"]
    assert ap.model_dump() == {
        "ppdus": 300,
        "mpdus": 750,
        "retries": 50,
        "dropped": 0,
        "collisions": 50,
        "subframes": {"mean": 3.25, "p50": 4, "p90": 4, "max": 4},
        "air_percent": 20,
        "air_share": {"client": 0.75, "slow": 0.25},
        "txq": {"mean": None, "max": None},
        "held": {"mean": None, "max": None},
        "txq_drops": 100,
    }
    client = run.summary.wifi["client"]["wlan0"]
    # a drop per station and step; the whole run has 14 s, in which its drops count
    assert run.summary.drops["ap"]["wlan0"].model_dump() == {"qdisc": 2 * 70, "nic": 0, "cable": 0}
    assert (client.subframes.mean, client.air_percent, client.air_share) == (10, 50, {})


def test_a_radio_that_did_nothing_has_no_sizes(run: Recording) -> None:
    slow = run.summary.wifi["slow"]["wlan0"]
    assert slow.ppdus == 0
    assert slow.subframes.model_dump() == {"mean": None, "p50": None, "p90": None, "max": None}


def test_the_air_over_time(run: Recording) -> None:
    share = air_share(run, "client", loaded_window(run))
    assert share.values == pytest.approx(np.full(50, 0.5))
    assert share.t_s[0] == pytest.approx(2.2)


def test_the_comparison_has_a_row_for_each_figure(run: Recording) -> None:
    rows = {row.figure: row.cells[0].value for row in compare([run, run])}
    assert (rows["ap aggregate"], rows["ap air"], rows["ap collided"]) == (3.25, 20, pytest.approx(100 / 6, 1e-5))
    assert rows["ap retried"] == pytest.approx(100 / 15, 1e-5)
    assert "slow aggregate" not in rows


def test_a_run_without_radios_has_no_such_figures(tmp_path) -> None:
    run = hourglass.load(make(tmp_path / "plain", Recipe()))
    assert run.summary.wifi == {}
    assert not any("air" in row.figure for row in compare([run]) if row.figure != "fairness")
