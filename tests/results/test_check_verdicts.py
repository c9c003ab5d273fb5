# SPDX-License-Identifier: Apache-2.0
"""Verdicts on bounds of runs with known figures; a bound on a figure that a run lacks is missed."""

import json

import pytest

import hourglass
from hourglass.contract import bounds
from hourglass.results.check_verdicts import judge
from hourglass.results.sections import sections
from results.synthetic import Flow, Probe, Recipe, make


@pytest.fixture
def run_of(tmp_path):
    def run(**recipe):
        return hourglass.load(make(tmp_path / "run", Recipe(**recipe)))

    return run


def outcomes(checks):
    return [(check.figure, check.value, check.ok) for check in checks]


def test_a_name_without_keys_is_every_figure_of_that_kind(run_of):
    run = run_of(flows=[Flow("upload::1"), Flow("upload::2", bytes_at=lambda t: int(t * 500_000))])
    checks = judge([bounds.read("flows.goodput_mbps > 5mbit"), bounds.read("flows.upload::1.goodput_mbps > 5mbit")],
                  run.summary)  # fmt: skip
    assert outcomes(checks) == [
        ("flows.upload::1.goodput_mbps", 8, True),
        ("flows.upload::2.goodput_mbps", 4, False),
        ("flows.upload::1.goodput_mbps", 8, True),
    ]


def test_a_bound_on_a_missing_figure_is_missed_with_the_reason(run_of):
    run = run_of(probes=[Probe("icmp", lambda seq: None)])
    texts = ["ping.icmp.p99 < 20ms", "ping.p99 >= 0", "ping.icpm.p99 < 20ms", "wifi.air_percent < 1%"]
    checks = judge([bounds.read(text) for text in texts], run.summary)
    assert [check.ok for check in checks] == [False] * 4
    assert checks[0].reason == "unknown: no samples, 51 lost"
    assert checks[2].reason == 'this run lacks this figure. Did you mean "ping.icmp.p99"?'
    assert checks[3].reason == "this run lacks this figure."


def test_a_scenarios_bounds_are_part_of_its_summary(run_of):
    run = run_of(checks={"ping.icmp.p99": "< 20ms", "totals.upload_mbps": "> 9mbit", "gone.p99": "< 1ms"})
    checks = json.loads(run.summary.to_json())["checks"]
    assert [(check["figure"], check["bound"], check["value"], check["unit"], check["ok"]) for check in checks] == [
        ("ping.icmp.p99", "< 20ms", 1, "ms", True),
        ("totals.upload_mbps", "> 9mbit", 8, "Mbit/s", False),
        ("gone.p99", "< 1ms", None, "", False),
    ]
    assert "unknown figure" in checks[2]["reason"]
    section = next(section_ for section_ in sections(run.summary) if section_.id == "checks")
    assert [row[0] for row in section.rows] == ["ok", "missed", "missed"]
    assert not any(key[0] == "check" for key in run.experiment.settings)


def test_a_run_without_bounds_has_no_verdicts(run_of):
    run = run_of()
    assert "checks" not in run.summary.data()
    assert "checks" not in [section.id for section in sections(run.summary)]


def test_a_figure_has_the_digits_that_decide_its_verdict(run_of):
    run = run_of(probes=[Probe("icmp", lambda seq: 20_000_100)], checks={"ping.icmp.p99": "<= 20ms"})
    (row,) = next(section for section in sections(run.summary) if section.id == "checks").rows
    assert row == ("missed", "ping.icmp.p99", "<= 20ms", "20.0001 ms")
