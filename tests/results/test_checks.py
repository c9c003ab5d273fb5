# SPDX-License-Identifier: Apache-2.0
"""Bounds judged by runs with known figures; what a run cannot tell is a bound missed."""

import json

import pytest

import hourglass
from hourglass.contract import bounds
from hourglass.results.checks import judge
from hourglass.results.sections import sections
from results.synthetic import Flow, Probe, Recipe, make


@pytest.fixture
def run_of(tmp_path):
    def run(**recipe):
        return hourglass.load(make(tmp_path / "run", Recipe(**recipe)))

    return run


def told(checks):
    return [(one.figure, one.value, one.ok) for one in checks]


def test_a_name_without_keys_is_every_figure_of_that_kind(run_of):
    run = run_of(flows=[Flow("upload::1"), Flow("upload::2", bytes_at=lambda t: int(t * 500_000))])
    found = judge([bounds.read("flows.goodput_mbps > 5mbit"), bounds.read("flows.upload::1.goodput_mbps > 5mbit")],
                  run.summary)  # fmt: skip
    assert told(found) == [
        ("flows.upload::1.goodput_mbps", 8, True),
        ("flows.upload::2.goodput_mbps", 4, False),
        ("flows.upload::1.goodput_mbps", 8, True),
    ]


def test_what_is_not_there_is_missed_with_the_reason(run_of):
    run = run_of(probes=[Probe("icmp", lambda seq: None)])
    wanted = ["ping.icmp.p99 < 20ms", "ping.p99 >= 0", "ping.icpm.p99 < 20ms", "wifi.air_percent < 1%"]
    found = judge([bounds.read(text) for text in wanted], run.summary)
    assert [one.ok for one in found] == [False] * 4
    assert found[0].reason == "not known: no samples, 51 lost"
    assert found[2].reason == 'this run has no such figure. Did you mean "ping.icmp.p99"?'
    assert found[3].reason == "this run has no such figure."


def test_a_scenarios_bounds_are_part_of_its_summary(run_of):
    run = run_of(checks={"ping.icmp.p99": "< 20ms", "totals.upload_mbps": "> 9mbit", "gone.p99": "< 1ms"})
    checks = json.loads(run.summary.to_json())["checks"]
    assert [(one["figure"], one["bound"], one["value"], one["unit"], one["ok"]) for one in checks] == [
        ("ping.icmp.p99", "< 20ms", 1, "ms", True),
        ("totals.upload_mbps", "> 9mbit", 8, "Mbit/s", False),
        ("gone.p99", "< 1ms", None, "", False),
    ]
    assert "no figure's name" in checks[2]["reason"]
    section = next(one for one in sections(run.summary) if one.id == "checks")
    assert [row[0] for row in section.rows] == ["ok", "missed", "missed"]
    assert not any(key[0] == "check" for key in run.experiment.settings)


def test_a_run_without_bounds_says_nothing_of_them(run_of):
    run = run_of()
    assert "checks" not in run.summary.data()
    assert "checks" not in [one.id for one in sections(run.summary)]


def test_a_figure_is_shown_in_the_digits_that_judge_it(run_of):
    run = run_of(probes=[Probe("icmp", lambda seq: 20_000_100)], checks={"ping.icmp.p99": "<= 20ms"})
    (row,) = next(one for one in sections(run.summary) if one.id == "checks").rows
    assert row == ("missed", "ping.icmp.p99", "<= 20ms", "20.0001 ms")
