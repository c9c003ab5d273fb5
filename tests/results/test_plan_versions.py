# SPDX-License-Identifier: Apache-2.0
"""Run directories of other versions are read like current ones, or refused with the reason.

`older/plan-1`: scenario, plan and run.json of commit 049c0d7, without records, since the run is refused earlier.
`older/plan-6`: a complete run of commit 693ec4d (a voip-1up of 1 s, with few samples), with its summary. Its plan is in
version 6, its records lack later columns.
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
from results.synthetic import DatagramStream, PlanFlow, make

OLDER = Path(__file__).parent / "older"


def check_contains(earlier, current):
    """Check that a current summary has all values of an older one; it may have more figures."""
    if isinstance(earlier, dict):
        for key, value in earlier.items():
            check_contains(value, current[key])
    elif isinstance(earlier, list):
        assert len(earlier) == len(current)
        for value, today in zip(earlier, current, strict=True):
            check_contains(value, today)
    else:
        assert earlier == current


def test_a_run_of_plan_version_6_has_its_earlier_figures(tmp_path):
    folder = shutil.copytree(OLDER / "plan-6", tmp_path / "run")
    earlier = json.loads((folder / "summary.json").read_text())
    run = hourglass.load(folder)
    assert run.info.version == ""
    assert run.info.results != hourglass.results.summarize.code_version()  # so the figures are computed again
    current = run.summary.data()
    for part in ("totals", "flows", "tcp_rtt_ms", "ping_ms", "datagrams", "digest"):
        check_contains(earlier[part], current[part])
    (voice,) = [stream for stream in run.streams if isinstance(stream, DatagramStream)]
    assert (voice.burst, len(voice.phases), voice.phases[0].interval_ns) == (1, 1, 20_000_000)
    assert [stream.pace_bps for stream in run.streams if isinstance(stream, PlanFlow)] == [None]
    assert run.scenario is not None
    (verdict,) = hourglass.check(folder, bounds=["totals.upload_mbps > 90mbit"])
    assert verdict.ok


def test_a_run_of_plan_version_7_is_read(tmp_path):
    """Its NICs have one queue."""
    folder = tmp_path / "run"
    make(folder)
    file = folder / "plan.json"
    device = {
        "do": "device",
        "node": "client",
        "device": "eth0",
        "kind": "wire",
        "mac": None,
        "mtu": None,
        "origin": None,
    }
    event = {"at_ns": 5, "node": "client", "name": "x", "steps": [device]}
    older = {"version": 7, "setup": [device], "events": [event]}
    file.write_text(json.dumps(json.loads(file.read_text()) | older))
    assert hourglass.load(folder).summary.totals.upload_mbps >= 0


def test_a_run_of_plan_version_1_is_refused_with_the_reason_and_the_remedy():
    with pytest.raises(InputError) as caught:
        hourglass.load(OLDER / "plan-1")
    text = str(caught.value)
    assert "was made by an older Hourglass (of unknown version: run directory 1, plan 1)" in text
    assert f"this is {hourglass.__version__}, which reads run directory 1, plan 6 to {plan.VERSION}" in text
    assert text.endswith(f"rerun it: hourglass run {OLDER / 'plan-1' / 'scenario.json'}")


def test_the_scenario_of_a_refused_run_still_loads():
    loaded = hourglass.scenario.load(OLDER / "plan-1/scenario.json")
    assert (loaded.name, loaded.test.upload_streams) == ("L10M", 1)


@pytest.mark.parametrize(
    ("file", "change", "versions"),
    [
        ("plan.json", {"version": 99}, "run directory 1, plan 99"),
        ("run.json", {"schema": 7}, f"run directory 7, plan {plan.VERSION}"),
    ],
)
def test_a_run_of_the_future_is_refused_and_both_versions_are_named(tmp_path, file, change, versions):
    folder = make(tmp_path / "run")
    for name, keys in (("run.json", {"version": "9.8.7"}), (file, change)):
        data = json.loads((folder / name).read_text()) | keys
        (folder / name).write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        hourglass.load(folder)
    text = str(caught.value)
    assert f"was made by a newer Hourglass (9.8.7: {versions})" in text
    assert f"this is {hourglass.__version__}" in text
    assert text.endswith("; upgrade Hourglass")
    assert "\n" not in text


def test_keys_of_a_later_version_are_ignored(tmp_path):
    folder = make(tmp_path / "run")
    data = json.loads((folder / "run.json").read_text()) | {"version": "9.8.7", "colour": "blue"}
    (folder / "run.json").write_text(json.dumps(data))
    assert hourglass.load(folder).info.version == "9.8.7"


@pytest.mark.parametrize(
    "change", [{"streams": [{}]}, {"streams": None}, {"paths": [3]}, {"version": "6"}, {"version": None}]
)
def test_an_invalid_older_plan_is_one_clear_line(tmp_path, change):
    folder = shutil.copytree(OLDER / "plan-6", tmp_path / "run")
    (folder / "plan.json").write_text(json.dumps(json.loads((folder / "plan.json").read_text()) | change))
    with pytest.raises(hourglass.errors.HourglassError, match="rerun") as caught:
        hourglass.load(folder)
    assert "\n" not in str(caught.value)
