# SPDX-License-Identifier: Apache-2.0
"""The runner on an engine without a guest: the run directory after a success and after a failure."""

import json
from dataclasses import asdict

import pytest

import hourglass
from hourglass.errors import GuestError, HourglassError, InputError


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def raises(error):
    def fail(directory):
        raise error(directory)

    return fail


def test_a_run_directory_has_the_documented_files(engine):
    run = hourglass.run(engine.scenario())
    assert {path.name for path in run.path.iterdir()} == {
        "scenario.json", "plan.json", "records.arrows", "console.log", "run.json", "summary.json",
    }  # fmt: skip
    assert run.info.status == "complete"
    described = {"name": "6.1", "release": "6.1.192", "key": "0123456789abcdef", "tuned": True}
    assert asdict(run.info.kernel) == described
    assert json.loads((run.path / "summary.json").read_text()) == run.summary.data()
    assert hourglass.load(run.path).summary.totals.upload_mbps == 8


def test_the_run_directory_follows_from_scenario_and_kernel(engine):
    first, second = (hourglass.run(engine.scenario()).path for _ in range(2))
    other = hourglass.run(engine.scenario(seed=2)).path
    assert first == second
    assert first.parent.name == "runs"
    assert first.name.startswith("synthetic-")
    assert other != first
    assert len(list(first.parent.iterdir())) == 2
    assert hourglass.run(engine.scenario(), "elsewhere").path.name == "elsewhere"


def test_a_failed_run_preserves_the_older_run_and_names_its_log(engine, tmp_path):
    hourglass.run(engine.scenario(), tmp_path / "out")
    engine.fail = raises(lambda directory: GuestError("the guest stopped", directory / "console.log"))
    with pytest.raises(GuestError) as caught:
        hourglass.run(engine.scenario(), tmp_path / "out")
    assert caught.value.log == tmp_path / "out.failed" / "console.log"
    assert hourglass.load(tmp_path / "out").summary.totals.upload_mbps == 8
    with pytest.raises(InputError, match="did not complete"):
        hourglass.load(tmp_path / "out.failed")


def test_an_interrupted_run_stores_its_log_and_names_it(engine, tmp_path):
    engine.fail = raises(lambda directory: KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        hourglass.run(engine.scenario(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out.failed"]
    assert json.loads((tmp_path / "out.failed" / "run.json").read_text())["error"] == "interrupted"


def test_records_that_cannot_be_read_make_a_failed_run(engine, tmp_path):
    engine.recipe.probes = []
    full_run = engine.run

    def truncated(plan, folder, **options):
        outcome = full_run(plan, folder, **options)
        path = folder / "records.arrows"
        path.write_bytes(path.read_bytes()[:-100])
        return outcome

    engine.run = truncated
    with pytest.raises(HourglassError, match="cut off"):
        hourglass.run(engine.scenario(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out.failed"]


def test_a_users_directory_is_refused_before_the_guest_starts(engine, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match="not a run directory"):
        hourglass.run(engine.scenario(), tmp_path / "out")
    assert engine.runs == 0
