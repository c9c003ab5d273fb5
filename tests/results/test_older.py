# SPDX-License-Identifier: Apache-2.0
"""Run directories of other versions are read as today's, or refused with the reason.

`older/plan-1`: scenario and plan of commit 049c0d7, run.json as it wrote them; refused before the records, which are
left out. `older/plan-2`: a whole run made by commit 693ec4d (a voip-1up of 1 s, with few samples), with its summary.
"""

import json
import shutil
from pathlib import Path

import pytest

import hourglass
import hourglass.errors
import hourglass.results.summarize
from hourglass.contract import plan
from hourglass.errors import InputError
from results.synthetic import Datagrams, PlanFlow, make

OLDER = Path(__file__).parent / "older"


def check_told(then, now):
    """What an older summary says, today's says too; figures may have been added."""
    if isinstance(then, dict):
        for key, value in then.items():
            check_told(value, now[key])
    elif isinstance(then, list):
        assert len(then) == len(now)
        for value, today in zip(then, now, strict=True):
            check_told(value, today)
    else:
        assert then == now


def test_a_run_of_plan_version_2_is_read_as_it_was_measured(tmp_path):
    place = shutil.copytree(OLDER / "plan-2", tmp_path / "run")
    then = json.loads((place / "summary.json").read_text())
    run = hourglass.load(place)
    assert run.info.version == ""
    assert run.info.results != hourglass.results.summarize.code()  # so that the figures are made anew
    now = run.summary.data()
    for part in ("totals", "flows", "tcp_rtt_ms", "ping_ms", "datagrams", "digest"):
        check_told(then[part], now[part])
    (voice,) = [one for one in run.streams if isinstance(one, Datagrams)]
    assert (voice.burst, len(voice.phases), voice.phases[0].interval_ns) == (1, 1, 20_000_000)
    assert [one.pace_bps for one in run.streams if isinstance(one, PlanFlow)] == [None]
    assert run.scenario is not None
    (verdict,) = hourglass.check(place, bounds=["totals.upload_mbps > 90mbit"])
    assert verdict.ok


def test_a_run_of_plan_version_1_is_refused_with_the_reason_and_the_remedy():
    with pytest.raises(InputError) as caught:
        hourglass.load(OLDER / "plan-1")
    text = str(caught.value)
    assert "was made by an older Hourglass (of unknown version: run directory 1, plan 1)" in text
    assert f"this is {hourglass.__version__}, which reads run directory 1, plan 2 to {plan.VERSION}" in text
    assert text.endswith(f"run it again: hourglass run {OLDER / 'plan-1' / 'scenario.json'}")


def test_the_scenario_of_a_run_that_is_refused_still_runs():
    found = hourglass.scenario.load(OLDER / "plan-1/scenario.json")
    assert (found.name, found.test.upload_streams) == ("L10M", 1)


@pytest.mark.parametrize(
    ("file", "change", "versions"),
    [
        ("plan.json", {"version": 99}, "run directory 1, plan 99"),
        ("run.json", {"schema": 7}, f"run directory 7, plan {plan.VERSION}"),
    ],
)
def test_a_run_of_the_future_is_refused_and_both_versions_are_named(tmp_path, file, change, versions):
    place = make(tmp_path / "run")
    for name, more in (("run.json", {"version": "9.8.7"}), (file, change)):
        written = json.loads((place / name).read_text()) | more
        (place / name).write_text(json.dumps(written))
    with pytest.raises(InputError) as caught:
        hourglass.load(place)
    text = str(caught.value)
    assert f"was made by a newer Hourglass (9.8.7: {versions})" in text
    assert f"this is {hourglass.__version__}" in text
    assert text.endswith("; upgrade Hourglass")
    assert "\n" not in text


def test_keys_that_a_later_version_adds_are_passed_over(tmp_path):
    place = make(tmp_path / "run")
    written = json.loads((place / "run.json").read_text()) | {"version": "9.8.7", "colour": "blue"}
    (place / "run.json").write_text(json.dumps(written))
    assert hourglass.load(place).info.version == "9.8.7"


@pytest.mark.parametrize(
    "change", [{"streams": [{}]}, {"streams": None}, {"paths": [3]}, {"version": "2"}, {"version": None}]
)
def test_an_older_plan_that_is_none_is_one_clear_line(tmp_path, change):
    place = shutil.copytree(OLDER / "plan-2", tmp_path / "run")
    (place / "plan.json").write_text(json.dumps(json.loads((place / "plan.json").read_text()) | change))
    with pytest.raises(hourglass.errors.HourglassError, match="again") as caught:
        hourglass.load(place)
    assert "\n" not in str(caught.value)
