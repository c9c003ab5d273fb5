# SPDX-License-Identifier: Apache-2.0
"""Folders of sweeps as arguments of commands, and the output of `sweep`."""

import csv
import json
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest
from results.swept import folder

from cli.golden import WIDTH, drawn
from hourglass.cli import study
from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.studies import pareto, table
from hourglass.studies.cells import GridCell
from hourglass.studies.lines import PartRuns
from hourglass.studies.reader import parse
from hourglass.studies.study import RunFailure, StudyOptions, StudyResult


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command next to a sweep `queues` and returns (status, stdout, stderr)."""
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


def test_two_sweeps_of_one_name_are_not_exported_to_one_folder(call, tmp_path):
    shutil.copytree(tmp_path / "queues", tmp_path / "other" / "queues")
    status, out, err = call("export", "queues", "other/queues", "--format", "csv", "--out", "new")
    assert (status, out) == (InputError.status, "")
    assert err == "hourglass: error: RUN = 'other/queues': has the name of queues; export it to another --out\n"
    assert not (tmp_path / "new").exists()
    assert call("export", "queues", "queues", "--format", "csv", "--out", "new")[0] == 0


@pytest.fixture
def result(tmp_path):
    """Return a sweep of two settings. One is unfair, and one more run failed."""
    axes = {
        "testbed.link.1.delay": ["5ms", "20ms"],
        "stack.router.qdisc": ["cake bandwidth 49mbit nat"],
        "seed": [1, 2],
    }
    checked = parse({"scenario": "L100M", "axes": axes}, "fair", tmp_path)
    part = checked.parts[0]
    columns = checked.column_grid(part, ("",))
    grid = columns.grid
    rows = [
        (cell, {"run": "a", "status": "done"},
         {"upload_mbps": 40.0, "download_mbps": 0.0, "ping_icmp_p99_ms": 9.0 + number, "fairness": fairness,
          "upload_fairness": fairness, "download_fairness": None})
        for number, (cell, fairness) in enumerate(zip(grid.cells, (0.6, 0.7, 1.0, 1.0), strict=True))
    ]  # fmt: skip
    out = tmp_path / "fair"
    out.mkdir()
    table.write(table.build(grid, rows), out / "table.parquet")
    parts = {"": PartRuns(part, ("",), columns, [], out / "runs")}
    return StudyResult(checked, StudyOptions(), out, out / "runs", parts, {}, [], [], 2, 1, 2)


def test_a_sweep_prints_fairness_and_failures(result):
    assert result.counts == "2 made, 1 failed, 2 cached"
    text = drawn(study.medians(result, result.table))
    assert text.splitlines() == [
        "delay  qdisc                      up Mbit/s  p99 ms  fairness",
        "5ms    cake bandwidth 49mbit nat       40.0    9.50     0.650",
        "20ms   cake bandwidth 49mbit nat       40.0    11.5      1.00",
    ]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_sweep_with_both_directions_prints_each(result):
    table = result.table.with_columns(download_mbps=80.0, upload_fairness=0.5, download_fairness=0.9)
    head = drawn(study.medians(result, table)).splitlines()[0]
    assert head.split()[-4:] == ["fair", "up", "fair", "down"]
    assert "fairness" not in head
    points = pareto.points(table, list(result.grid.keys), "ping_icmp_p99_ms")
    assert points.select("upload_fairness", "download_fairness").rows() == [(0.5, 0.9)] * 2


def test_congestion_controls_that_compete_have_their_goodput(result):
    mixed = result.table.with_columns(cubic_goodput_mbps=30.0, bbr_goodput_mbps=10.0)
    head, first, *_ = drawn(study.medians(result, mixed)).splitlines()
    assert head.split()[-4:] == ["cubic", "Mbit/s", "bbr", "Mbit/s"]
    assert first.split()[-2:] == ["30.0", "10.0"]


def test_fairness_is_in_the_picture_if_it_differs(result, monkeypatch):
    drawn = []
    picture = import_module("hourglass.plots.sweep_overview")  # the package's own attribute of this name is a function
    monkeypatch.setattr(picture, "_panel", lambda axes, key, names, points, column: drawn.append(column))
    assert study.draw(result, result.table).is_file()
    assert drawn == ["ping_icmp_p99_ms", "upload_fairness"]
    drawn.clear()
    vars(result)["table"] = result.table.with_columns(upload_fairness=1.0, download_fairness=0.9)
    study.draw(result, result.table)
    assert drawn == ["ping_icmp_p99_ms", "download_fairness"]
    drawn.clear()
    vars(result)["table"] = result.table.with_columns(download_fairness=1.0)
    study.draw(result, result.table)
    assert drawn == ["ping_icmp_p99_ms"]


def test_seeds_are_compared_by_their_means(call, tmp_path):
    data = {"scenario": "L100M", "axes": {"stack.tsq": ["off", "default"], "seed": [1, 2]}}
    sweep_folder = folder(tmp_path / "seeds", data, "abcd")
    for number, name in enumerate("abcd"):
        for part, keys in (("scenario.json", {"seed": 1 + number % 2, "stack": {"tsq": number // 2}}),
                           ("run.json", {"seed": 1 + number % 2})):  # fmt: skip
            path = sweep_folder / "runs" / name / part
            path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    status, out, err = call("compare", "seeds")
    assert status == 0, err
    assert "A  tsq=off (synthetic, 2 seeds, Linux 6.1.192)" in out
    assert "B  tsq=default" in out
    assert "TCP RTT p50 ms 2.25 3.25 +44.4" in " ".join(out.split())
    assert "means over seeds" in out


def test_a_sweeps_run_is_the_only_one_that_matches(result, tmp_path, monkeypatch):
    cells = [
        GridCell(f"cell {number}", assignment, str(number).encode(), "6.1", "", 1.0)
        for number, assignment in enumerate(result.grid.cells)
    ]
    names = {cell.key: cell.name for cell in cells}
    (part,) = result.parts.values()
    part.add(cells)
    sweep_result = replace(result, failures=[RunFailure(cells[1].name, "", tmp_path)])
    monkeypatch.setattr(import_module("hourglass.studies.study"), "open_run", lambda path: names[path.name])
    assert sweep_result.run(testbed__link__1__delay="20ms", seed=1) == "cell 2"
    assert sweep_result.matching(testbed__link__1__delay="5ms") == ["cell 0"]
    assert sweep_result.matching(seed=2) == ["cell 3"]
    for values, message in (
        ({"seed": 1}, "2 cells have these values; add testbed.link.1.delay, stack.router.qdisc, or take all"),
        ({"seed": 3}, "no such cell in this study. Its axes: testbed.link.1.delay = 5ms, 20ms; .*; seed = 1, 2"),
        ({"sed": 1}, 'is not an axis. Did you mean "seed"?'),
    ):
        with pytest.raises(InputError, match=message):
            sweep_result.run(**values)


def test_a_notebook_shows_a_sweep_as_its_table(result):
    assert "&lt;study fair: 2 made, 1 failed, 2 cached" in result._repr_html_()
    assert "upload_mbps" in result._repr_html_()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_on_a_full_disk_leaves_no_file(call, tmp_path, kind):
    """Limit files to 10 bytes. This acts like a full disk and needs no root rights."""
    command = [sys.executable, "-c", "from hourglass.cli import main; main()", "export", "queues", "--format", kind]
    result = subprocess.run(
        [*command, "--out", "new"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
    )  # fmt: skip
    assert result.stderr.endswith("cannot be written: File too large\n")
    assert result.returncode == 3
    assert list((tmp_path / "new").iterdir()) == []
