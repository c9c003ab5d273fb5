# SPDX-License-Identifier: Apache-2.0
"""What of a suite is run."""

import json
from pathlib import Path
from statistics import median

import pytest

from hourglass.cli.errors import guarded
from hourglass.suites import file
from hourglass.suites.judge import FURTHER
from hourglass.suites.study import Line, Study


def test_a_part_whose_qdisc_a_kernel_has_not_is_not_run(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}", "stack.qdisc": "dualpi2"},
        "axes": {"test.length": [5, 10]}, "row": [{"figure": "goodput"}],
    }  # fmt: skip
    found = Study(file.suite({"part": [part]}, Path("own.toml")), tmp_path, kernel="6.1").made()
    assert (found.runs, found.failed, found.lines) == (0, (), ())
    assert found.why == {"a": "this version has not what it needs: stack.qdisc = 'dualpi2'"}


def test_a_part_without_a_column_tells_why_each_is_left_out(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [5]},
        "row": [{"figure": "goodput"}], "without": {"bbr": "it has no PROBE_UP"},
    }  # fmt: skip
    suite = file.suite({"part": [part]}, Path("own.toml"))
    assert Study(suite, tmp_path, ccs=["bbr"], kernel="6.1").why == {"a": "bbr: it has no PROBE_UP"}


def test_a_doubted_cell_is_asked_with_further_seeds_and_so_is_what_it_is_compared_with(tmp_path: Path) -> None:
    alone = {
        "id": "alone", "scenario": "testbeds/two.toml", "set": {"test.flow_cc": "{cc}"},
        "axes": {"test.length": [5, 10]}, "row": [{"figure": "goodput"}], "repetitions": 3,
    }  # fmt: skip
    beside = alone | {
        "id": "beside", "axes": {"test.length": [5, 10], "test.competing.0.cc": ["cubic", "bbr"]},
        "row": [{"figure": "harm_rate", "beside": "alone", "victim": "test.competing.0.cc"}],
    }  # fmt: skip
    suite = file.suite({"part": [alone, beside]}, file.FOLDER / "own.toml")
    study = Study(suite, tmp_path, ccs=["reno", "cubic", "bbr"], kernel="6.1")
    before = {id: len(table.planned) for id, table in study.tables.items()}
    assert before == {"alone": 2 * 3 * 3, "beside": 4 * 3 * 3}
    part = suite.parts[1]
    line = Line(part, part.rows[0], {"test.length": 10, "test.competing.0.cc": "bbr"}, "", {})
    study.ask([(line, "reno")], 2)
    added = {id: [run.assignment for run in table.planned[before[id] :]] for id, table in study.tables.items()}
    seeds = [{"seed": 4}, {"seed": 5}]
    assert study.again == (4, 5)
    assert added["alone"] == [{"test.flow_cc": "bbr", "test.length": 10} | seed for seed in seeds]
    assert added["beside"] == [dict(line.setting) | {"test.flow_cc": "reno"} | seed for seed in seeds]


LOSSY = """
[[part]]
id = "lossy"
scenario = "testbeds/one.toml"
axes = { "test.length" = [2] }

[part.set]
"stack.client.cc" = "{cc}"
"testbed.link.1.loss" = ["5%", "0%"]

[[part.row]]
figure = "goodput"
"""


def test_what_is_worse_by_chance_is_not_worse_by_more_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "lossy.toml"
    suite.write_text(LOSSY.replace("testbeds", str(file.FOLDER / "testbeds")), "utf-8")
    known = tmp_path / "before.json"

    def run(*words: str) -> tuple[int, str, list[float]]:
        status = guarded(["suite", str(suite), "--cc", "cubic", "--out", str(tmp_path / "out"), "--json", *words])
        (line,) = json.loads(capsys.readouterr().out)["lines"]
        return status, line["id"], line["cells"]["cubic"]["seeds"]

    status, id, values = run("--seeds", "1-12")
    assert status == 0
    least = next(n for n in range(8) if values[n] < 0.85 * median(values[n : n + 1 + FURTHER]))
    usual = median(values[least : least + 1 + FURTHER])
    for before, expected in ((usual, 0), (2 * usual, 1)):
        lines = {id: {"cubic": [before]}}
        known.write_text(json.dumps({"schema": 1, "suite": "lossy", "kernel": "6.1", "lines": lines}), "utf-8")
        found = run("--seeds", str(least + 1), "--baseline", str(known))
        assert found == (expected, id, values[least : least + 1 + FURTHER])
