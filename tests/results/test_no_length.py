# SPDX-License-Identifier: Apache-2.0
"""Runs without length, as of programs that end at once: each view answers, or says in a line what the run lacks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hourglass
from hourglass.cli import main
from hourglass.plots import KINDS
from hourglass.results.recording import Recording
from results import synthetic_wifi
from results.synthetic import Recipe, make

RADIOS = replace(synthetic_wifi.recipe(), flows=[], probes=[], expected={"ip": 0})
LOADED = Recipe(datagrams=172, sizes=[1000], requests=1)
MISSED = 1
VIEWS = [
    *(["plot", kind, "--picture", "picture.png"] for kind in KINDS),
    ["report"], ["explain", "--no-what-if"], ["check", "--bound", "wifi.air_percent < 1%"], ["compare", "OTHER"],
    *(["export", "--format", kind] for kind in ("flent", "perfetto", "qlog", "csv")),
]  # fmt: skip


def ended_at_once(folder: Path, recipe: Recipe) -> Recording:
    """Return a run that its programs ended at its beginning."""
    make(folder, recipe)
    for name, change in (("plan.json", {"apps_end": True}), ("run.json", {"virtual_s": 0})):
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | change))
    return hourglass.load(folder)


@pytest.fixture(params=[RADIOS, LOADED], ids=["programs alone", "with streams"])
def run(request, tmp_path) -> Recording:
    return ended_at_once(tmp_path / "run", request.param)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: " ".join(view[:2]))
def test_every_view_of_a_run_without_length_answers(run, view, tmp_path, monkeypatch, capsys) -> None:
    make(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    name, *words = [word.replace("OTHER", "other") for word in view]
    kind = words[:1] if name == "plot" else []
    with pytest.raises(SystemExit) as exit_:
        main([name, *kind, "run", *words[len(kind) :]])
    status = exit_.value.code
    output = capsys.readouterr()
    refusals = output.err.count("\n"), output.err.count("RUN = 'run': ")
    assert status in (0, MISSED) or (status, *refusals) == (2, 1, 1), output
    assert output.out + output.err
    assert not {"nan", "inf", "internal"} & set(f"{output.out} {output.err}".split())


def test_a_share_of_no_time_is_unknown(tmp_path: Path) -> None:
    run = ended_at_once(tmp_path / "run", RADIOS)
    radio = run.summary.wifi["ap"]["wlan0"]
    assert (radio.air_percent, radio.busy_percent, radio.ppdus) == (None, None, 0)
    json.loads(run.summary.to_json(), parse_constant=pytest.fail)
