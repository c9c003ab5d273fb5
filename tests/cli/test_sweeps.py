# SPDX-License-Identifier: Apache-2.0
"""Folders of sweeps where commands want runs, and what `sweep` prints."""

import csv
import json
from importlib import import_module

import pytest
from results.swept import folder

from cli.golden import WIDTH, drawn
from hourglass.campaign import file, pareto, table
from hourglass.campaign.sweep import Result
from hourglass.cli import sweep
from hourglass.cli.errors import guarded


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Runs a command where there is a sweep called `queues`: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    folder(tmp_path / "queues")

    def run(*arguments):
        status = guarded(list(arguments))
        return status, *capsys.readouterr()

    return run


def test_compare_names_a_sweeps_runs_by_their_axes(call):
    status, out, err = call("compare", "queues")
    assert status == 0, err
    assert "A  seed=1" in out
    assert "B  seed=2" in out


@pytest.mark.parametrize("kind", ["scatter", "box"])
def test_a_sweep_is_drawn(call, tmp_path, kind):
    assert call("plot", kind, "queues")[0] == 0
    assert (tmp_path / f"{kind}.png").is_file()


def test_a_sweep_is_reported(call, tmp_path):
    assert call("report", "queues")[0] == 0
    assert "seed=2" in (tmp_path / "report.html").read_text()


def test_a_sweeps_table_is_exported(call, tmp_path):
    before = (tmp_path / "queues" / "table.parquet").read_bytes()
    assert call("export", "queues", "--format", "csv")[1] == "csv  queues/table.csv\n"
    rows = list(csv.DictReader((tmp_path / "queues" / "table.csv").open()))
    assert [(row["stack.tsq"], row["seed"], row["status"], row["fairness"]) for row in rows] == [
        ("off", "1", "done", "1.0"), ("off", "2", "done", "1.0"), ("default", "1", "failed", ""),
        ("default", "2", "done", "1.0"),
    ]  # fmt: skip
    assert call("export", "queues", "--format", "parquet")[1] == "parquet  queues/table.parquet\n"
    assert call("export", "queues", "--format", "parquet", "--out", "new")[1] == "parquet  new/queues.parquet\n"
    assert (tmp_path / "queues" / "table.parquet").read_bytes() == before
    assert (tmp_path / "new" / "queues.parquet").read_bytes() == before


@pytest.fixture
def result(tmp_path):
    """A sweep of two settings, of which one is unfair; one more run failed."""
    axes = {
        "testbed.link.1.delay": ["5ms", "20ms"],
        "stack.router.qdisc": ["cake bandwidth 49mbit nat"],
        "seed": [1, 2],
    }
    grid = file.grid({"scenario": "L100M", "axes": axes}, "fair", tmp_path)
    rows = [
        (cell, {"run": "a", "status": "done"},
         {"upload_mbps": 40.0, "download_mbps": 0.0, "ping_icmp_p99_ms": 9.0 + place, "fairness": fairness,
          "upload_fairness": fairness, "download_fairness": None})
        for place, (cell, fairness) in enumerate(zip(grid.cells, (0.6, 0.7, 1.0, 1.0), strict=True))
    ]  # fmt: skip
    out = tmp_path / "fair"
    out.mkdir()
    table.write(table.build(grid, rows), out / "table.parquet")
    return Result(grid, out, out / "runs", [], [], made=2, failed=1, there=2)


def test_a_sweep_is_told_with_its_fairness_and_what_failed(result):
    assert sweep.counts(result) == "2 made, 1 failed, 2 cached"
    text = drawn(sweep.medians(result, result.table))
    assert text.splitlines() == [
        "delay  qdisc                      up Mbit/s  p99 ms  fairness",
        "5ms    cake bandwidth 49mbit nat       40.0    9.50     0.650",
        "20ms   cake bandwidth 49mbit nat       40.0    11.5      1.00",
    ]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_ways_of_a_sweep_that_has_both_are_told_apart(result):
    both = result.table.with_columns(download_mbps=80.0, upload_fairness=0.5, download_fairness=0.9)
    head = drawn(sweep.medians(result, both)).splitlines()[0]
    assert head.split()[-4:] == ["fair", "up", "fair", "down"]
    assert "fairness" not in head
    points = pareto.points(both, list(result.grid.keys), "ping_icmp_p99_ms")
    assert points.select("upload_fairness", "download_fairness").rows() == [(0.5, 0.9)] * 2


def test_congestion_controls_that_compete_have_their_goodput(result):
    mixed = result.table.with_columns(cubic_goodput_mbps=30.0, bbr_goodput_mbps=10.0)
    head, first, *_ = drawn(sweep.medians(result, mixed)).splitlines()
    assert head.split()[-4:] == ["cubic", "Mbit/s", "bbr", "Mbit/s"]
    assert first.split()[-2:] == ["30.0", "10.0"]


def test_fairness_is_in_the_picture_where_it_says_something(result, monkeypatch):
    drawn = []
    picture = import_module("hourglass.plots.sweep")  # the package's own attribute of this name is a function
    monkeypatch.setattr(picture, "_panel", lambda axes, key, names, points, column: drawn.append(column))
    assert sweep.draw(result, result.table).is_file()
    assert drawn == ["ping_icmp_p99_ms", "upload_fairness"]
    drawn.clear()
    vars(result)["table"] = result.table.with_columns(upload_fairness=1.0, download_fairness=0.9)
    sweep.draw(result, result.table)
    assert drawn == ["ping_icmp_p99_ms", "download_fairness"]
    drawn.clear()
    vars(result)["table"] = result.table.with_columns(download_fairness=1.0)
    sweep.draw(result, result.table)
    assert drawn == ["ping_icmp_p99_ms"]


def test_seeds_are_compared_by_their_means(call, tmp_path):
    data = {"scenario": "L100M", "axes": {"stack.tsq": ["off", "default"], "seed": [1, 2]}}
    place = folder(tmp_path / "seeds", data, "abcd")
    for number, name in enumerate("abcd"):
        for part, keys in (("scenario.json", {"seed": 1 + number % 2, "stack": {"tsq": number // 2}}),
                           ("run.json", {"seed": 1 + number % 2})):  # fmt: skip
            path = place / "runs" / name / part
            path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    status, out, err = call("compare", "seeds")
    assert status == 0, err
    assert "A  tsq=off (synthetic, 2 seeds, Linux 6.1.192)" in out
    assert "B  tsq=default" in out
    assert "TCP RTT p50 ms 2.25 3.25 +44.4" in " ".join(out.split())
    assert "means over seeds" in out
