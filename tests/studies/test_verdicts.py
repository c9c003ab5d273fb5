# SPDX-License-Identifier: Apache-2.0
"""Verdicts on cells, by criteria, by the victim's harm to itself, and by the baseline; and their pages."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from hourglass.errors import InputError
from hourglass.studies import baseline, json_data, junit, reader, wording
from hourglass.studies.columns import ANY_COLUMN
from hourglass.studies.lines import FigureCell, FigureLine, PartRuns
from hourglass.studies.markdown_page import markdown
from hourglass.studies.study import RunFailure, StudyOptions, StudyResult
from hourglass.studies.verdict_page import page
from hourglass.studies.verdicts import Baseline, CellVerdict, judge, suspects

Values = dict[str, Sequence[float | None]]


def study(figure: dict[str, Any]) -> reader.Study:
    part = {
        "id": "a", "title": "A part", "scenario": "testbeds/two.toml", "set": {"stack.cc": "{cc}"},
        "axes": {"test.competing.0.cc": ["cubic", "bbr"]}, "figure": [figure],
    }  # fmt: skip
    other = part | {"id": "alone", "figure": [{"name": "goodput"}]}
    lost = {"id": "gone", "title": "A part that cannot run", "not_run": "it does not exist"}
    return reader.parse(
        {"name": "custom", "description": "A custom study", "compare": {"axis": "cc"}, "part": [part, other, lost]},
        "custom", reader.FOLDER, "custom.toml",
    )  # fmt: skip


def result_of(figure: dict[str, Any], values: Values, before: Baseline | None = None, **changes: Any) -> StudyResult:
    """Return the result of one line next to CUBIC."""
    checked = study(figure)
    part = checked.parts[0]
    cells = {
        cc: FigureCell(cc, tuple(seeds), tuple(f"run{n}" for n in range(len(seeds)))) for cc, seeds in values.items()
    }
    line = FigureLine(part, part.figures[0], {"test.competing.0.cc": "cubic"}, "with CUBIC", cells)
    return of_line(checked, line, tuple(values), before, **changes)


def of_line(
    checked: reader.Study, line: FigureLine, columns: tuple[str, ...], before: Baseline | None = None, **changes: Any
) -> StudyResult:
    matrix = judge([line], columns, "cc", "", before)
    options = StudyOptions(columns=columns, kernel="6.1")
    part = checked.parts[0]
    runs = PartRuns(part, columns, checked.column_grid(part, (ANY_COLUMN,)), [], Path("runs"))
    result = StudyResult(
        checked, options, Path(), Path("runs"), {"a": runs}, {"gone": "it does not exist"}, [], matrix, 2, 0, 0
    )
    return replace(result, **changes)


def verdicts_by_column(
    figure: dict[str, Any], values: Values, before: Baseline | None = None
) -> dict[str, CellVerdict]:
    return {verdict.cell.column: verdict for verdict in result_of(figure, values, before).matrix[0]}


LEAST_GOODPUT = {
    "name": "goodput",
    "criterion": [{"bound": ">= 10mbit", "source": "RFC 1", "where": {"cc": ["cubic", "reno"]}}],
}
HARM = {
    "name": "harm_rate", "alone": "alone", "victim": "test.competing.0.cc",
    "criterion": [{"bound": "self", "source": "a paper"}],
}  # fmt: skip
QUEUE = {"name": "queue"}


def test_the_median_meets_or_misses_a_criterion_and_other_columns_have_no_verdict() -> None:
    verdicts = verdicts_by_column(LEAST_GOODPUT, {"cubic": [5, 10, 30], "reno": [9.99], "bbr": [1]})
    assert {cc: verdict.verdict for cc, verdict in verdicts.items()} == {"cubic": "ok", "reno": "missed", "bbr": ""}
    assert verdicts["cubic"].text == "10.0"
    assert verdicts["cubic"].limit == ">= 10mbit"


def test_a_notebook_shows_the_verdicts_as_a_table() -> None:
    result = result_of(LEAST_GOODPUT, {"cubic": [5, 10, 30], "reno": [9.99]})
    rows = result.verdict_table.select("setting", "figure", "column", "value", "verdict").rows()
    assert rows == [
        ("with CUBIC", "goodput", "cubic", 10.0, "ok"),
        ("with CUBIC", "goodput", "reno", 9.99, "missed"),
    ]
    assert "missed" in result._repr_html_()


def test_a_run_without_the_figure_of_a_criterion_misses_it() -> None:
    verdicts = verdicts_by_column(LEAST_GOODPUT, {"cubic": [None], "bbr": [None]})
    assert {cc: verdict.verdict for cc, verdict in verdicts.items()} == {"cubic": "missed", "bbr": "skipped"}


def test_harm_is_compared_with_a_flow_of_the_victims_kind() -> None:
    verdicts = verdicts_by_column(HARM, {"cubic": [0.5], "reno": [0.55], "bbr": [0.56]})
    assert {cc: verdict.verdict for cc, verdict in verdicts.items()} == {"cubic": "ok", "reno": "ok", "bbr": "missed"}
    assert verdicts["bbr"].limit == "at most 0.500, the harm of cubic to itself, plus 0.0500"


def test_a_column_with_a_large_spread_is_allowed_no_more_than_others() -> None:
    verdicts = verdicts_by_column(HARM, {"cubic": [0.489], "bbr": [0.593], "soft": [0.592, 0.651, 0.504, 0.537, 0.645]})
    assert {cc: verdict.verdict for cc, verdict in verdicts.items()} == {
        "cubic": "ok",
        "bbr": "missed",
        "soft": "missed",
    }
    assert verdicts["soft"].limit == verdicts["bbr"].limit


def test_a_difference_within_the_seeds_is_no_harm() -> None:
    verdicts = verdicts_by_column(HARM, {"cubic": [0.3, 0.5, 0.7], "bbr": [0.8, 0.89, 0.9]})
    assert verdicts["bbr"].verdict == "ok"
    assert verdicts_by_column(HARM, {"cubic": [0.3, 0.5, 0.7], "bbr": [0.91, 0.91, 0.92]})["bbr"].verdict == "missed"


ID = "a/queue/with CUBIC"


@pytest.mark.parametrize(
    ("seeds", "before", "worse"),
    [
        ([21.9], [18.0, 20.0], False),  # within 10 % of the worst seed
        ([22.1], [18.0, 20.0], True),
        ([1.9], [1.0], False),  # below the resolution of pings
        ([2.1], [1.0], True),
        ([5.0], [20.0], False),  # better
        ([None], [20.0], True),
        ([20.0], [None], False),
    ],
)
def test_worse_is_beyond_the_worst_seed_of_the_baseline(
    seeds: list[float | None], before: list[float | None], worse: bool
) -> None:
    verdict = verdicts_by_column(QUEUE, {"cubic": seeds}, {ID: {"cubic": before}})["cubic"]
    assert verdict.counts is worse
    assert verdict.verdict == ("regressed" if worse else "skipped" if seeds == [None] else "")


def test_a_lower_goodput_is_worse() -> None:
    earlier = {"a/goodput/with CUBIC": {"bbr": [20.0, 21.0]}}
    plain = {"name": "goodput"}
    assert not verdicts_by_column(plain, {"bbr": [18.1]}, earlier)["bbr"].counts
    assert verdicts_by_column(plain, {"bbr": [17.9]}, earlier)["bbr"].reason == "20.0 before"


def test_a_newly_missed_criterion_is_a_regression_even_within_ten_percent() -> None:
    earlier = {"a/goodput/with CUBIC": {"cubic": [10.0], "reno": [9.9]}}
    verdicts = verdicts_by_column(LEAST_GOODPUT, {"cubic": [9.95], "reno": [9.9], "bbr": [1.0]}, earlier)
    assert (verdicts["cubic"].verdict, verdicts["cubic"].reason) == ("regressed", "missed; 10.0 before")
    assert (verdicts["reno"].verdict, verdicts["reno"].counts) == ("missed", False)
    assert not verdicts["bbr"].counts  # no criterion, and no baseline has it


def test_a_difference_within_the_baselines_seeds_is_no_regression() -> None:
    earlier = {"a/goodput/with CUBIC": {"cubic": [10.0, 11.0, 13.0], "reno": [10.0, 11.0, 13.0]}}
    verdicts = verdicts_by_column(LEAST_GOODPUT, {"cubic": [7.1], "reno": [6.9]}, earlier)
    assert (verdicts["cubic"].verdict, verdicts["cubic"].counts) == ("missed", False)
    assert verdicts["reno"].reason == "missed; 11.0 before"
    wide: dict[str, dict[str, Sequence[float | None]]] = {ID: {"cubic": [10.0, 20.0]}}
    assert not verdicts_by_column(QUEUE, {"cubic": [29.0]}, wide)["cubic"].counts
    assert verdicts_by_column(QUEUE, {"cubic": [31.0]}, wide)["cubic"].reason == "20.0 before"


def test_a_regression_is_doubted_unless_it_exceeds_chance() -> None:
    values: Values = {f"cc{number}": [1.0] for number in range(20)}
    before: Baseline = {ID: {cc: [10.0] for cc in values}}
    for count, repeated in ((0, 0), (2, 2), (10, 10), (11, 0)):
        worse = [*values][:count]
        doubted = suspects(result_of(QUEUE, values | {cc: [30.0] for cc in worse}, before).matrix)
        assert [(line.id, cc) for line, cc in doubted] == [(ID, cc) for cc in worse][:repeated]


def test_a_run_that_failed_is_an_error_and_no_baseline(tmp_path: Path) -> None:
    path, before = tmp_path / "custom-6.1.json", result_of(QUEUE, {"cubic": [1.5]})
    baseline.write(path, "custom", "6.1", before.lines, None)
    (line,) = before.lines
    failed = replace(line, cells={"cubic": FigureCell("cubic", runs=("run",), why="its run failed")})
    now = of_line(before.study, failed, ("cubic",), {}, failures=[RunFailure("run", "it panicked", Path("log"))])
    baseline.write(path, "custom", "6.1", now.lines, baseline.read(path, "custom"))
    assert baseline.read(path, "custom") == {ID: {"cubic": [1.5]}}
    assert json_data.data(now)["ok"] is False
    assert now.matrix[0][0].verdict == "failed"
    (verdict,) = json_data.junit(now)
    assert [check.reason for check in verdict.missed] == ["its run failed"]


def test_a_page_has_the_command_that_makes_it_again() -> None:
    result = result_of(QUEUE, {"cubic": [1.5], "my_cc": [1.0]})
    changes = {"sources": {"my_cc": "v2/my_cc.c"}, "seeds": (11, 12, 13)}
    result = replace(result, options=replace(result.options, **changes))  # type: ignore[arg-type]
    assert wording.command(result) == "hourglass study custom.toml --kernel 6.1 --cc cubic,v2/my_cc.c --seeds 11-13"


def test_a_miss_in_a_line_that_the_baseline_does_not_have_is_new() -> None:
    verdicts = verdicts_by_column(
        LEAST_GOODPUT, {"cubic": [9.0], "bbr": [1.0]}, {"another line": {"cubic": [9.0], "bbr": [1.0]}}
    )
    assert (verdicts["cubic"].reason, verdicts["cubic"].counts) == ("a miss that the baseline lacks", True)
    assert not verdicts["bbr"].counts


def test_a_column_that_the_baseline_does_not_have_is_not_worse() -> None:
    baselines: tuple[Baseline, ...] = ({}, {"another line": {"bbr": [1.0]}})
    for before in baselines:
        verdict = verdicts_by_column(LEAST_GOODPUT, {"cubic": [9.0]}, before)["cubic"]
        assert (verdict.verdict, verdict.counts) == ("missed", False)
    assert verdicts_by_column(LEAST_GOODPUT, {"cubic": [9.0]}, None)["cubic"].counts, (
        "without a baseline every miss counts"
    )


def test_a_baseline_keeps_the_figures_of_parts_that_did_not_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "custom-6.1.json"
    baseline.write(path, "custom", "6.1", result_of(QUEUE, {"cubic": [1.5, None], "bbr": [2.0]}).lines, None)
    baseline.write(path, "custom", "6.1", result_of(QUEUE, {"cubic": [3.0]}).lines, baseline.read(path, "custom"))
    assert baseline.read(path, "custom") == {ID: {"cubic": [3.0], "bbr": [2.0]}}
    assert baseline.read(tmp_path / "none.json", "custom") is None
    with pytest.raises(InputError, match="is of the study custom"):
        baseline.read(path, "other")
    for content in ("[]", "{", '{"schema": 2}'):
        path.write_text(content, "utf-8")
        with pytest.raises(InputError, match="--baseline"):
            baseline.read(path, "custom")


def test_the_pages_have_every_cell_with_its_colour_its_figure_and_its_run() -> None:
    values: Values = {"cubic": [12.0], "reno": [9.0], "bbr": [3.0]}
    earlier = {"a/goodput/with CUBIC": {"cubic": [12.0], "reno": [9.0], "bbr": [30.0]}}
    result = result_of(LEAST_GOODPUT, values, earlier, baseline="custom-6.1.json")
    written = page(result)
    for word, run, text in (("ok", "run0", "12.0"), ("missed", "run0", "9.00"), ("regressed", "run0", "3.00")):
        assert f'class="{word}" title="' in written
        assert f'<a href="runs/{run}/scenario.json">{text}</a>' in written
    assert "Not run: it does not exist." in written
    assert "goodput &gt;= 10mbit: RFC 1" in written
    lines = markdown(result)
    assert (
        "| with CUBIC | goodput, Mbit/s: >= 10mbit | 12.0 ok | **9.00** missed | **3.00** regressed (30.0 before) |"
        in lines
    )
    assert "1 ok, 1 missed, 1 regressed." in lines
    data = json.loads(json.dumps(json_data.data(result)))
    assert data["ok"] is False
    assert data["lines"][0]["cells"]["bbr"] == {
        "value": 3.0, "seeds": [3.0], "verdict": "regressed", "bound": "", "source": "", "reason": "30.0 before",
        "counts": True, "gap": None, "interval": None, "runs": ["runs/run0"],
    }  # fmt: skip


def test_junit_has_a_suite_for_each_column_and_fails_regressions() -> None:
    earlier: Baseline = {"a/goodput/with CUBIC": {"reno": [11.0]}}
    result = result_of(LEAST_GOODPUT, {"cubic": [12.0], "reno": [9.0]}, earlier)
    root = xml.fromstring(junit.document(json_data.junit(result)))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [testsuite.get("name") for testsuite in root] == ["custom.6.1.cubic", "custom.6.1.reno"]
    assert root.find("testsuite[2]/testcase/failure") is not None
    assert root.find("testsuite[1]/testcase/failure") is None
