# SPDX-License-Identifier: Apache-2.0
"""The runs of a study."""

import json
from pathlib import Path
from statistics import median

import pytest

from hourglass.cli.exit_status import guarded
from hourglass.studies import reader
from hourglass.studies.lines import FigureLine
from hourglass.studies.study import StudyOptions, StudyRuns, study
from hourglass.studies.verdicts import FURTHER_SEEDS


def test_a_part_with_a_missing_qdisc_does_not_run(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}", "stack.qdisc": "dualpi2"},
        "axes": {"test.length": [5, 10]}, "figure": [{"name": "goodput"}],
    }  # fmt: skip
    result = study({"compare": {"axis": "cc"}, "part": [part]}, tmp_path, kernel="6.1")
    assert (result.cells, result.failures, result.lines) == ([], [], [])
    assert result.skipped == {"a": "not supported by this kernel: stack.qdisc = 'dualpi2'"}


def test_a_part_without_a_column_has_a_reason_for_each(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [5]},
        "figure": [{"name": "goodput"}], "without": {"bbr": "it has no PROBE_UP"},
    }  # fmt: skip
    checked = reader.parse({"compare": {"axis": "cc"}, "part": [part]}, "custom", Path())
    runs = StudyRuns(checked, tmp_path, StudyOptions(columns=("bbr",), kernel="6.1"))
    assert runs.skipped == {"a": "bbr: it has no PROBE_UP"}


def test_all_columns_of_a_doubted_setting_and_of_its_reference_get_further_seeds(tmp_path: Path) -> None:
    alone = {
        "id": "alone", "scenario": "testbeds/two.toml", "set": {"test.flow_cc": "{cc}"},
        "axes": {"test.length": [5, 10]}, "figure": [{"name": "goodput"}], "seeds": 3,
    }  # fmt: skip
    competing = alone | {
        "id": "competing", "axes": {"test.length": [5, 10], "test.competing.0.cc": ["cubic", "bbr"]},
        "figure": [{"name": "harm_rate", "alone": "alone", "victim": "test.competing.0.cc"}],
    }  # fmt: skip
    checked = reader.parse({"compare": {"axis": "cc"}, "part": [alone, competing]}, "custom", reader.FOLDER)
    runs = StudyRuns(checked, tmp_path, StudyOptions(columns=("reno", "cubic", "bbr"), kernel="6.1"))
    before = {id: len(part.planned) for id, part in runs.parts.items()}
    assert before == {"alone": 2 * 3 * 3, "competing": 4 * 3 * 3}
    part = checked.parts[1]
    line = FigureLine(part, part.figures[0], {"test.length": 10, "test.competing.0.cc": "bbr"}, "", {})
    runs.add_seeds([(line, "reno")], 2)
    added = {id: [run.assignment for run in part.planned[before[id] :]] for id, part in runs.parts.items()}
    seeds = [{"seed": 4}, {"seed": 5}]
    assert runs.repeated == (4, 5)
    for id, setting in (("alone", {"test.length": 10}), ("competing", dict(line.setting))):
        columns = [{"test.flow_cc": cc} | setting | seed for cc in ("reno", "cubic", "bbr") for seed in seeds]
        assert {frozenset(assignment.items()) for assignment in added[id]} == {
            frozenset(assignment.items()) for assignment in columns
        }
        assert len(added[id]) == len(columns)


LOSSY = """
compare = { axis = "cc" }
[[part]]
id = "lossy"
scenario = "testbeds/one.toml"
axes = { "test.length" = [2] }

[part.set]
"stack.client.cc" = "{cc}"
"testbed.link.1.loss" = ["5%", "0%"]

[[part.figure]]
name = "goodput"
"""


def test_more_seeds_correct_a_regression_by_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "lossy.toml"
    suite.write_text(LOSSY.replace("testbeds", str(reader.FOLDER / "testbeds")), "utf-8")
    baseline = tmp_path / "before.json"

    def run(*words: str) -> tuple[int, str, list[float]]:
        status = guarded(["study", str(suite), "--cc", "cubic", "--out", str(tmp_path / "out"), "--json", *words])
        (line,) = json.loads(capsys.readouterr().out)["lines"]
        return status, line["id"], line["cells"]["cubic"]["seeds"]

    status, id, values = run("--seeds", "1-12")
    assert status == 0
    first = next(n for n in range(8) if values[n] < 0.85 * median(values[n : n + 1 + FURTHER_SEEDS]))
    usual = median(values[first : first + 1 + FURTHER_SEEDS])
    for before, expected in ((usual, 0), (2 * usual, 1)):
        lines = {id: {"cubic": [before]}}
        baseline.write_text(json.dumps({"schema": 1, "suite": "lossy", "kernel": "6.1", "lines": lines}), "utf-8")
        result = run("--seeds", str(first + 1), "--baseline", str(baseline))
        assert result == (expected, id, values[first : first + 1 + FURTHER_SEEDS])
