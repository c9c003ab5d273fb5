# SPDX-License-Identifier: Apache-2.0
"""Suites' files: what is read, what is refused, and that every built-in can be run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hourglass.campaign import cells
from hourglass.cli.errors import guarded
from hourglass.errors import InputError
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.suites import file
from hourglass.suites.measures import MEASURES

QUICK_RUNS, FULL_RUNS = 900, 4800
"""In ten minutes and in an hour, two at a time, at 1.3 s of CPU time for a run of 30 s."""

ROW: dict[str, Any] = {"figure": "goodput"}
PART: dict[str, Any] = {
    "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [5, 10]}, "row": [ROW],
}  # fmt: skip


def read(**changes: Any) -> file.Suite:
    return file.suite({"part": [PART | changes]}, Path("own.toml"))


@pytest.mark.parametrize("name", file.built_in())
def test_every_scenario_of_a_built_in_suite_can_be_made(name: str) -> None:
    suite = file.read(name)
    quick = full = 0
    lacking: list[tuple[str, str]] = []
    for part in (one for one in suite.parts if not one.not_run):
        ccs = part.ccs or tuple(cc for cc in suite.ccs if cc in CONGESTION_CONTROLS and cc not in part.without)
        ccs = ccs or ("cubic",)  # a column of a user's own alone: any name makes the scenarios
        one = part.swept(ccs[:1])
        try:
            scenarios = cells.scenarios(one.grid, "6.1", "virtual")
        except InputError as error:
            lacking.append((part.id[:7], error.key.rpartition(".")[2]))
            continue
        assert scenarios
        quick, full = quick + len(part.swept(ccs, quick=True).grid.cells), full + len(part.swept(ccs).grid.cells)
        for row in part.rows:
            for mark in row.marks:
                settings = [one.setting(cell) for cell in one.grid.cells]
                assert any(mark.concerns((mark.ccs or ccs)[0], setting) for setting in settings), mark
    assert set(lacking) <= {("dualpi2", "qdisc")}
    assert quick <= QUICK_RUNS
    assert full <= FULL_RUNS
    assert quick <= full


def test_there_are_the_six_exams() -> None:
    assert file.built_in() == ["bbr", "fairness", "l4s", "responsiveness", "rfc9743", "robustness"]


def test_the_bbr_suite_has_the_drafts_22_cases_in_their_order() -> None:
    suite = file.read("bbr")
    assert [part.id for part in suite.parts] == [f"T{n}" for n in range(1, 23)]
    assert [part.id for part in suite.parts if part.not_run] == ["T4", "T5", "T6", "T9", "T22"]
    assert [part.id for part in suite.parts if "bbr" in part.without] == ["T2", "T8", "T21"]


def test_the_column_stands_wherever_it_is_named() -> None:
    part = read(set={"stack.cc": "{cc}", "test.flow_cc": ["{cc}", "reno"]}).parts[0]
    swept = part.swept(("cubic", "bbr"))
    assert [swept.cc(cell) for cell in swept.grid.cells] == ["cubic", "bbr"] * 2
    assert swept.grid.cells[1]["test.flow_cc"] == ["bbr", "reno"]
    assert [swept.setting(cell) for cell in swept.grid.cells[::2]] == [{"test.length": 5}, {"test.length": 10}]


def test_quick_keeps_some_values_and_one_seed() -> None:
    part = read(repetitions=3, quick={"test.length": [10]}).parts[0]
    assert len(part.swept(("cubic", "bbr")).grid.cells) == 12
    assert [(cell["test.length"], cell["seed"]) for cell in part.swept(("cubic", "bbr"), quick=True).grid.cells] == [
        (10, 1),
        (10, 1),
    ]


def test_a_mark_by_an_axis_is_one_for_each_value() -> None:
    mark = {"by": "test.length", "keep": {"5": "> 1mbit"}, "source": "somebody"}
    axes = {"test.length": ["5", "10"]}
    (found,) = read(axes=axes, row=[ROW | {"mark": [mark]}]).parts[0].rows[0].marks
    assert found.bound is not None
    assert found.bound.holds(1.5)
    assert found.concerns("any", {"test.length": "5"})
    assert not found.concerns("any", {"test.length": "10"})


def test_a_part_of_another_suite_has_its_runs_and_marks() -> None:
    suite = file.read("rfc9743")
    used = {part.id: part for part in suite.parts}["s5-2-1"]
    against = {part.id: part for part in file.read("fairness").parts}["against"]
    assert used.title.startswith("5.2.1")
    assert (used.data, used.rows) == (against.data, against.rows)


MARK = {"keep": ">= 1mbit", "source": "somebody"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"id": "a b"}, r"part\.0\.id"),
        ({"other": 1}, r"part\.0\.other = 1: unknown key"),
        ({"row": []}, r"part\.0\.row"),
        ({"row": [{"figure": "goodputs"}]}, r'figure = .goodputs.*Did you mean "goodput"'),
        ({"row": [{"figure": "time_to_rate", "with": {"at": 1}}]}, r"with\.mbps = none: is missing"),
        ({"row": [{"figure": "goodput", "with": {"from": "1"}}]}, r"with\.from = '1'"),
        ({"row": [{"figure": "harm_rate"}]}, r"beside = none: is missing"),
        ({"row": [{"figure": "goodput", "beside": "a"}]}, r"is not compared"),
        ({"row": [ROW | {"better": "bigger"}, {"figure": "totals.fairness", "better": "bigger"}]}, r'one of "more"'),
        ({"row": [ROW | {"mark": [{"keep": ">= 1mbit"}]}]}, r"source = '': is missing"),
        ({"row": [ROW | {"mark": [MARK | {"keep": ">= 1ms"}]}]}, r"does not fit"),
        ({"row": [ROW | {"mark": [MARK | {"keep": "self"}]}]}, r"needs `victim`"),
        ({"row": [ROW | {"mark": [MARK | {"where": {"test.step": 1}}]}]}, r"test\.step.*is no axis"),
        ({"set": {"stack.cc": "cubic"}}, r"no key has \{cc\}"),
        ({"quick": {"test.length": [7]}}, r"a list of values of this axis"),
        ({"quick": {"test.step": [7]}}, r"is no axis"),
        ({"told": ["test.step"]}, r"is no axis"),
        ({"axes": {}}, r"^no error$"),
        ({"without": []}, r"without = \[\]: a table"),
        ({"row": [{"figure": "utilisation", "with": {"mbps": 0}}]}, r"mbps = 0: Mbit/s, above 0"),
        ({"row": [{"figure": "goodput", "with": {"from": 8, "to": 3}}]}, r"to = 3: a time after `from` = 8"),
        (
            {"row": [{"figure": "time_to_rate", "with": {"mbps": 1, "at": 8, "to": 3}}]},
            r"to = 3: a time after `at` = 8",
        ),
        ({"labels": {"test.length": {"5": "X", "10": "X"}}}, r"a label = 'X': is what two settings are called"),
        ({"axes": {"test.length": [5, 10], "test.delay": [1, 2]}, "told": ["test.length"]}, r"two settings are called"),
    ],
)
def test_what_a_part_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    if told == "^no error$":
        assert read(**changes).parts
        return
    with pytest.raises(InputError, match=told):
        read(**changes)


def test_what_a_suite_cannot_be_is_refused() -> None:
    for data, told in (
        ({}, r"part = none"),
        ({"part": [PART, PART]}, "is there twice"),
        ({"part": [PART], "parts": 1}, 'unknown key. Did you mean "part"'),
        ({"part": [PART], "name": "../own"}, "name = '../own': text that can name a file"),
        ({"part": [PART], "ccs": ["cubik"]}, 'Did you mean "cubic"'),
        ({"part": [{"id": "a", "use": "fairness.nothing"}]}, "has no such part"),
        ({"part": [{"id": "a", "use": "fairness"}]}, "has no such part"),
        ({"part": [{"id": "a", "use": "fairness.against"}]}, "alone.*is no part"),
        ({"part": [{"id": "a", "use": "fairness.alone", "set": {}}]}, "is the used part's"),
    ):
        with pytest.raises(InputError, match=told):
            file.suite(data, Path("own.toml"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fairnes"], "NAME = 'fairnes': no such suite. Did you mean \"fairness\"?"),
        (["fairness", "--cc", "cubic,"], "--cc = 'cubic,'"),
        (["fairness", "--cc", "cubik"], "cubik"),
        (["fairness", "--cc", "bbr,own/cubic.c"], "--cc = 'own/cubic.c': its column would be called 'cubic'"),
        (["fairness", "--cc", "a/my_cc.c,b/my_cc.c"], "as that of b/my_cc.c"),
        (["fairness", "--kernel", "9.9"], "9.9"),
        (["fairness", "-j", "0"], "jobs = 0"),
    ],
)
def test_bad_input_is_one_line(words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["suite", *words, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len([line for line in error.splitlines() if "error:" in line]) == 1


def test_a_file_that_is_no_toml_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    path.write_text("part = [", "utf-8")
    assert guarded(["suite", str(path)]) == 2
    assert "is no TOML" in capsys.readouterr().err


def test_the_guides_example_is_a_suite_and_its_measures_are_all() -> None:
    guide = (Path(__file__).parents[2] / "docs/suites.md").read_text("utf-8")
    example = re.search(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert example
    suite = file.suite(tomllib.loads(example[1]), Path("small.toml"))
    (part,) = suite.parts
    assert cells.scenarios(part.swept(suite.ccs).grid)
    assert [row.figure for row in part.rows] == ["utilisation", "ping.icmp.p99"]
    first = re.findall(r"^\| ([^|]*) \|", guide[guide.index("| measure |") :], re.MULTILINE)
    told = {name for column in first for name in re.findall(r"`(\w+)`", column)} - {"bbr_"}
    assert told == {name for name in MEASURES if not name.startswith("bbr_")}
