# SPDX-License-Identifier: Apache-2.0
"""Lines of pictures and report break where samples are missing."""

import numpy as np
import pytest
from flent.small import END_S, ENDED_S, GAP_S, STEP_S, small

import hourglass
from hourglass.report.data import charts
from hourglass.results import gaps
from results.synthetic import MS, Flow, Probe, Recipe, make


@pytest.fixture
def measured(tmp_path):
    return hourglass.load(small(tmp_path / "home.flent.gz"))


def test_gaps_are_longer_than_five_steps(measured):
    icmp, udp = measured.pings
    assert gaps.ping_gaps_s(measured, icmp).size == 0
    begin_s = -STEP_S  # of the flow's first interval
    assert gaps.ping_gaps_s(measured, udp) == pytest.approx([(ENDED_S + END_S - STEP_S) / 2 - begin_s])
    assert gaps.rtt_gaps_s(measured, measured.flows[0]) == pytest.approx([sum(GAP_S) / 2 - begin_s])


def test_a_line_begins_again_after_a_gap():
    assert gaps.starts(np.array([0.0, 1.0, 8.0, 9.0]), np.array([4.5, 20.0])) == [2]


@pytest.mark.parametrize("step_s", [0.2, 0.01])
def test_runs_whose_pings_are_rarer_than_steps_have_no_gaps(tmp_path, step_s):
    """Two of three packets are lost, which are samples."""
    lossy = Probe("icmp", lambda seq: None if seq % 3 else 10 * MS)
    run = hourglass.load(make(tmp_path / "run", Recipe(flows=[Flow("upload::1")], probes=[lossy], step=step_s)))
    assert gaps.ping_gaps_s(run, run.pings[0]).size == gaps.rtt_gaps_s(run, run.flows[0]).size == 0


def test_the_report_s_lines_begin_again(measured):
    """The page has the samples at which they do; thinned series too."""
    for points_max in (1500, 60):
        series_by_chart = {chart["title"]: chart["series"] for chart in charts(measured, points_max)["charts"]}
        icmp, udp = series_by_chart["Ping"]
        assert "starts" not in icmp
        (rtt,) = series_by_chart["TCP RTT"]
        for series, after_s in ((rtt, GAP_S[1]), (udp, END_S - STEP_S), (series_by_chart["Ping, each way"][0], END_S)):
            (start,) = series["starts"]
            assert series["t"][start - 1] < sum(GAP_S) / 2
            assert series["t"][start] == pytest.approx(after_s, abs=10 if points_max < 100 else 0.3)
