# SPDX-License-Identifier: Apache-2.0
"""Words of cells: by marks, by what the victim does to itself, by the baseline; and the pages made of them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from hourglass.errors import InputError
from hourglass.suites import baseline, file, text
from hourglass.suites.judge import Baseline, Judged, doubted, judge
from hourglass.suites.page import page
from hourglass.suites.study import Cell, Line, Studied
from hourglass.testing import junit

Values = dict[str, Sequence[float | None]]


def suite(row: dict[str, Any]) -> file.Suite:
    part = {
        "id": "a", "title": "A part", "scenario": "testbeds/two.toml", "set": {"stack.cc": "{cc}"},
        "axes": {"test.competing.0.cc": ["cubic", "bbr"]}, "row": [row],
    }  # fmt: skip
    other = part | {"id": "alone", "row": [{"figure": "goodput"}]}
    lost = {"id": "gone", "title": "A part that cannot run", "not_run": "there is no such thing"}
    return file.suite(
        {"name": "own", "description": "An own suite", "part": [part, other, lost]}, file.FOLDER / "own.toml"
    )


def studied(row: dict[str, Any], values: Values) -> Studied:
    """One line beside CUBIC."""
    found = suite(row)
    part = found.parts[0]
    cells = {cc: Cell(cc, tuple(seeds), tuple(f"run{n}" for n in range(len(seeds)))) for cc, seeds in values.items()}
    line = Line(part, part.rows[0], {"test.competing.0.cc": "cubic"}, "beside CUBIC", cells)
    return Studied(found, "6.1", False, tuple(values), (line,), {"gone": "there is no such thing"}, (), 2)


def judged(row: dict[str, Any], values: Values, before: Baseline | None = None) -> dict[str, Judged]:
    return {one.cell.cc: one for one in judge(studied(row, values), before)[0]}


LEAST = {"figure": "goodput", "mark": [{"keep": ">= 10mbit", "source": "RFC 1", "ccs": ["cubic", "reno"]}]}
HARM = {
    "figure": "harm_rate", "beside": "alone", "victim": "test.competing.0.cc",
    "mark": [{"keep": "self", "source": "a paper"}],
}  # fmt: skip
SHOWN = {"figure": "queue"}


def test_a_mark_is_kept_or_missed_by_the_median_and_others_are_shown() -> None:
    found = judged(LEAST, {"cubic": [5, 10, 30], "reno": [9.99], "bbr": [1]})
    assert {cc: one.word for cc, one in found.items()} == {"cubic": "passed", "reno": "missed", "bbr": "shown"}
    assert found["cubic"].text == "10.0"
    assert found["cubic"].limit == ">= 10mbit"


def test_a_run_that_does_not_show_what_has_a_mark_misses_it() -> None:
    found = judged(LEAST, {"cubic": [None], "bbr": [None]})
    assert {cc: one.word for cc, one in found.items()} == {"cubic": "missed", "bbr": "none"}


def test_harm_is_measured_by_what_the_victim_does_to_itself() -> None:
    found = judged(HARM, {"cubic": [0.5], "reno": [0.55], "bbr": [0.56]})
    assert {cc: one.word for cc, one in found.items()} == {"cubic": "passed", "reno": "passed", "bbr": "missed"}
    assert found["bbr"].limit == "at most 0.500, what cubic does to itself"


def test_what_is_the_same_within_the_seeds_is_no_more_harm() -> None:
    found = judged(HARM, {"cubic": [0.3, 0.5, 0.7], "bbr": [0.8, 0.89, 0.9]})
    assert found["bbr"].word == "passed"
    assert judged(HARM, {"cubic": [0.3, 0.5, 0.7], "bbr": [0.91, 0.91, 0.92]})["bbr"].word == "missed"


ID = "a/queue/beside CUBIC"


@pytest.mark.parametrize(
    ("now", "before", "worse"),
    [
        ([21.9], [18.0, 20.0], False),  # within 10 % of the worst seed
        ([22.1], [18.0, 20.0], True),
        ([1.9], [1.0], False),  # below what a ping can tell
        ([2.1], [1.0], True),
        ([5.0], [20.0], False),  # better
        ([None], [20.0], True),
        ([20.0], [None], False),
    ],
)
def test_worse_is_beyond_the_worst_seed_of_the_baseline(
    now: list[float | None], before: list[float | None], worse: bool
) -> None:
    found = judged(SHOWN, {"cubic": now}, {ID: {"cubic": before}})["cubic"]
    assert bool(found.worse) is worse
    assert found.word == ("none" if now == [None] else "shown")


def test_more_is_better_the_other_way_round() -> None:
    known = {"a/goodput/beside CUBIC": {"bbr": [20.0, 21.0]}}
    plain = {"figure": "goodput"}
    assert not judged(plain, {"bbr": [18.1]}, known)["bbr"].worse
    assert judged(plain, {"bbr": [17.9]}, known)["bbr"].worse == "20.0 before"


def test_a_mark_that_was_kept_and_is_missed_is_worse_even_within_ten_percent() -> None:
    known = {"a/goodput/beside CUBIC": {"cubic": [10.0], "reno": [9.9]}}
    found = judged(LEAST, {"cubic": [9.95], "reno": [9.9], "bbr": [1.0]}, known)
    assert found["cubic"].worse == "missed; 10.0 before"
    assert (found["reno"].word, found["reno"].worse) == ("missed", "")
    assert not found["bbr"].worse  # nobody set a mark, no baseline knows it


def test_what_is_as_near_to_the_baselines_seeds_as_they_are_to_each_other_is_not_worse() -> None:
    known = {"a/goodput/beside CUBIC": {"cubic": [10.0, 11.0, 13.0], "reno": [10.0, 11.0, 13.0]}}
    found = judged(LEAST, {"cubic": [7.1], "reno": [6.9]}, known)
    assert (found["cubic"].word, found["cubic"].worse) == ("missed", "")
    assert found["reno"].worse == "missed; 11.0 before"
    wide: dict[str, dict[str, Sequence[float | None]]] = {ID: {"cubic": [10.0, 20.0]}}
    assert not judged(SHOWN, {"cubic": [29.0]}, wide)["cubic"].worse
    assert judged(SHOWN, {"cubic": [31.0]}, wide)["cubic"].worse == "20.0 before"


def test_what_is_worse_is_doubted_unless_it_is_too_much_for_chance() -> None:
    values: Values = {f"cc{number}": [1.0] for number in range(20)}
    before: Baseline = {ID: {cc: [10.0] for cc in values}}
    for many, asked in ((0, 0), (2, 2), (10, 10), (11, 0)):
        worse = [*values][:many]
        found = doubted(judge(studied(SHOWN, values | {cc: [30.0] for cc in worse}), before))
        assert [(line.id, cc) for line, cc in found] == [(ID, cc) for cc in worse][:asked]


def test_a_run_that_failed_is_an_error_and_no_baseline(tmp_path: Path) -> None:
    path, before = tmp_path / "own-6.1.json", studied(SHOWN, {"cubic": [1.5]})
    baseline.write(path, before, None)
    (line,) = before.lines
    failed = replace(line, cells={"cubic": Cell("cubic", runs=("run",), why="its run failed")})
    now = replace(before, lines=(failed,), failed=("run: it panicked",))
    baseline.write(path, now, baseline.read(path, "own"))
    assert baseline.read(path, "own") == {ID: {"cubic": [1.5]}}
    matrix = judge(now, {})
    assert text.data(now, matrix)["ok"] is False
    (verdict,) = text.verdicts(now, matrix)
    assert [one.reason for one in verdict.missed] == ["its run failed"]


def test_a_page_says_what_makes_it_again() -> None:
    made = replace(
        studied(SHOWN, {"cubic": [1.5], "my_cc": [1.0]}), sources={"my_cc": "v2/my_cc.c"}, seeds=(11, 12, 13)
    )
    assert text.command(made) == f"hourglass suite {made.suite.source} --kernel 6.1 --cc cubic,v2/my_cc.c --seeds 11-13"


def test_a_miss_that_no_baseline_knows_is_new() -> None:
    empties: tuple[Baseline | None, ...] = (None, {})
    for before in empties:
        found = judged(LEAST, {"cubic": [9.0], "bbr": [1.0]}, before)
        assert found["cubic"].worse == "a miss that no baseline knows"
        assert not found["bbr"].worse


def test_a_baseline_is_what_was_written_and_keeps_what_was_not_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "own-6.1.json"
    baseline.write(path, studied(SHOWN, {"cubic": [1.5, None], "bbr": [2.0]}), None)
    baseline.write(path, studied(SHOWN, {"cubic": [3.0]}), baseline.read(path, "own"))
    assert baseline.read(path, "own") == {ID: {"cubic": [3.0], "bbr": [2.0]}}
    assert baseline.read(tmp_path / "none.json", "own") is None
    with pytest.raises(InputError, match="is of the suite own"):
        baseline.read(path, "other")
    for content in ("[]", "{", '{"schema": 2}'):
        path.write_text(content, "utf-8")
        with pytest.raises(InputError, match="--baseline"):
            baseline.read(path, "own")


def test_the_pages_have_every_cell_with_its_colour_its_figure_and_its_run() -> None:
    values: Values = {"cubic": [12.0], "reno": [9.0], "bbr": [3.0]}
    known = {"a/goodput/beside CUBIC": {"cubic": [12.0], "reno": [9.0], "bbr": [30.0]}}
    found = studied(LEAST, values)
    matrix = judge(found, known)
    written = page(found, matrix, "own-6.1.json")
    for word, run, shown in (("passed", "run0", "12.0"), ("missed", "run0", "9.00"), ("worse", "run0", "3.00")):
        assert f'class="{word}" title="' in written
        assert f'<a href="runs/{run}/scenario.json">{shown}</a>' in written
    assert "Not run: there is no such thing." in written
    assert "goodput &gt;= 10mbit: RFC 1" in written
    told = text.markdown(found, matrix)
    assert (
        "| beside CUBIC | goodput, Mbit/s | 12.0 kept | **9.00** missed (>= 10mbit) | 3.00 (worse: 30.0 before) |"
        in told
    )
    assert "1 marks kept, 1 missed; 1 figures without a mark; 1 regressions" in told
    data = json.loads(json.dumps(text.data(found, matrix)))
    assert data["ok"] is False
    assert data["lines"][0]["cells"]["bbr"] == {
        "value": 3.0, "seeds": [3.0], "word": "shown", "mark": "", "source": "", "worse": "30.0 before", "why": "",
        "runs": ["runs/run0"],
    }  # fmt: skip


def test_junit_has_a_suite_for_each_column_and_fails_what_is_worse() -> None:
    found = studied(LEAST, {"cubic": [12.0], "reno": [9.0]})
    root = xml.fromstring(junit.document(text.verdicts(found, judge(found, None))))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [one.get("name") for one in root] == ["own.6.1.cubic", "own.6.1.reno"]
    assert root.find("testsuite[2]/testcase/failure") is not None
    assert root.find("testsuite[1]/testcase/failure") is None
