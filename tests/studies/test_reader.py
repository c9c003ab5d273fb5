# SPDX-License-Identifier: Apache-2.0
"""Files of studies: the built-in ones can be run, and mistakes are refused."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.studies import cells, old_formats, reader
from hourglass.studies.measures import MEASURES

QUICK_RUNS, FULL_RUNS = 900, 4800
"""In ten minutes and in an hour, two at a time, at 1.3 s of CPU time for a run of 30 s."""

FIGURE: dict[str, Any] = {"name": "goodput"}
PART: dict[str, Any] = {
    "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [5, 10]}, "figure": [FIGURE],
}  # fmt: skip


def parse(data: dict[str, Any]) -> reader.Study:
    return reader.parse({"compare": {"axis": "cc"}} | data, "custom", Path())


def read(**changes: Any) -> reader.Study:
    return parse({"part": [PART | changes]})


@pytest.mark.parametrize("name", reader.built_in())
def test_every_scenario_of_a_built_in_suite_can_be_made(name: str) -> None:
    study = reader.read(name)
    quick = full = 0
    lacking: list[tuple[str, str]] = []
    for part in (part for part in study.parts if not part.table.not_run):
        table = part.table
        ccs = tuple(table.columns) or tuple(cc for cc in study.columns if cc in CONGESTION_CONTROLS)
        ccs = tuple(cc for cc in ccs if cc not in table.without)
        ccs = ccs or ("cubic",)  # only a custom column: any name makes the scenarios
        first_column = study.column_grid(part, ccs[:1])
        try:
            scenarios = cells.scenarios(first_column.grid, "6.1", "virtual")
        except InputError as error:
            lacking.append((part.id[:7], error.key.rpartition(".")[2]))
            continue
        assert scenarios
        full += len(study.column_grid(part, ccs).grid.cells)
        quick += len(study.column_grid(part, ccs, quick=True).grid.cells)
        settings = [first_column.setting(cell) | {"cc": cc} for cell in first_column.grid.cells for cc in study.columns]
        for figure in part.figures:
            for criterion in figure.criteria:
                assert any(criterion.applies(setting) for setting in settings), criterion
    assert set(lacking) <= {("dualpi2", "qdisc")}
    assert quick <= QUICK_RUNS
    assert full <= FULL_RUNS
    assert quick <= full


def test_the_built_in_studies_exist() -> None:
    assert reader.built_in() == ["bbr", "fairness", "l4s", "responsiveness", "rfc9743", "robustness", "score"]


def test_the_bbr_suite_has_the_drafts_22_cases_in_their_order() -> None:
    study = reader.read("bbr")
    assert [part.id for part in study.parts] == [f"T{n}" for n in range(1, 23)]
    assert [part.id for part in study.parts if part.table.not_run] == ["T4", "T5", "T6", "T9", "T22"]
    assert [part.id for part in study.parts if "bbr" in part.table.without] == ["T2", "T8", "T21"]


def test_the_column_replaces_its_name_everywhere() -> None:
    study = read(set={"stack.cc": "{cc}", "test.flow_cc": ["{cc}", "reno"]})
    columns = study.column_grid(study.parts[0], ("cubic", "bbr"))
    assert [columns.column(cell) for cell in columns.grid.cells] == ["cubic", "bbr"] * 2
    assert columns.grid.cells[1]["test.flow_cc"] == ["bbr", "reno"]
    assert [columns.setting(cell) for cell in columns.grid.cells[::2]] == [{"test.length": 5}, {"test.length": 10}]


def test_an_axis_that_is_a_key_has_a_column_for_each_value() -> None:
    study = reader.parse(
        {"scenario": "L100M", "compare": {"axis": "kernel", "values": ["6.1", "6.12"], "reference": "6.1"}, "seeds": 2},
        "kernels", Path(),
    )  # fmt: skip
    columns = study.column_grid(study.parts[0], study.columns)
    assert [(columns.column(cell), cell["seed"]) for cell in columns.grid.cells] == [
        ("6.1", 1), ("6.12", 1), ("6.1", 2), ("6.12", 2),
    ]  # fmt: skip


def test_quick_keeps_some_values_and_one_seed() -> None:
    study = read(seeds=3, quick={"test.length": [10]})
    part, columns = study.parts[0], ("cubic", "bbr")
    assert len(study.column_grid(part, columns).grid.cells) == 12
    cells_of_quick = study.column_grid(part, columns, quick=True).grid.cells
    assert [(cell["test.length"], cell["seed"]) for cell in cells_of_quick] == [(10, 1), (10, 1)]


def test_a_bound_by_an_axis_is_one_for_each_value() -> None:
    criterion = {"by": "test.length", "bound": {"5": "> 1mbit"}, "source": "somebody"}
    axes = {"test.length": ["5", "10"]}
    figure = read(axes=axes, figure=[FIGURE | {"criterion": [criterion]}]).parts[0].figures[0]
    (single,) = figure.criteria
    bound = figure.bound_of(single)
    assert bound is not None
    assert bound.holds(1.5)
    assert single.applies({"test.length": "5"})
    assert not single.applies({"test.length": "10"})


def test_a_part_of_another_study_has_its_runs_and_criteria() -> None:
    used = {part.id: part for part in reader.read("rfc9743").parts}["s5-2-1"]
    against = {part.id: part for part in reader.read("fairness").parts}["against"]
    assert used.table.title.startswith("5.2.1")
    assert (used.table.fixed, used.table.axes, used.figures) == (
        against.table.fixed,
        against.table.axes,
        against.figures,
    )


OLD = json.loads((Path(__file__).parent / "earlier_suite.json").read_text("utf-8"))
NEW = {
    "name": "old", "compare": {"axis": "cc", "values": ["cubic", "bbr"]},
    "part": [{
        "id": "a", "scenario": "L100M", "seeds": 2, "set": {"stack.cc": "{cc}"}, "label_by": ["test.length"],
        "axes": {"test.length": [5, 10]}, "columns": ["bbr"],
        "figure": [{
            "name": "goodput", "label": "rate",
            "criterion": [{"bound": ">= 1mbit", "source": "x", "where": {"test.length": 5, "cc": ["bbr"]}}],
        }],
    }],
}  # fmt: skip
CASES = {
    "set": ["test.length=3"], "tolerance": {"tcp_rtt.p50": 5.0},
    "case": [{"name": "a b", "scenario": "L100M", "set": ["stack.cc=reno"]}],
}  # fmt: skip


@pytest.mark.parametrize("data", [OLD, {"scenario": "L100M", "repetitions": 3}, CASES], ids=["suite", "sweep", "cases"])
def test_files_of_the_earlier_release_are_read_and_rewritten(data: dict[str, Any]) -> None:
    current = old_formats.current(data)
    assert old_formats.is_old(data)
    assert not old_formats.is_old(current)
    assert tomllib.loads(old_formats.written(current)) == current
    assert reader.parse(data, "old", Path()) == reader.parse(current, "old", Path())


def test_a_suite_becomes_a_study_with_a_compared_axis() -> None:
    assert old_formats.current(OLD) == NEW
    cases = old_formats.current(CASES)
    assert cases["set"] == {"test.length": 3}
    assert cases["figure"] == [{"name": "tcp_rtt.p50", "tolerance": "5.0%"}]
    assert cases["part"] == [{"id": "a-b", "scenario": "L100M", "set": {"stack.cc": "reno"}}]
    assert cases["compare"]["reference"] == "virtual"


CRITERION = {"bound": ">= 1mbit", "source": "somebody"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "a b"}, r"part\.0\.id"),
        ({"other": 1}, r"part\.0\.other = 1: unknown key"),
        ({"figure": []}, r"part\.0\.figure"),
        ({"figure": [{"name": "goodputs"}]}, r'name = .goodputs.*Did you mean "goodput"'),
        ({"figure": [{"name": "time_to_rate", "with": {"at": 1}}]}, r"with\.mbps = none: is missing"),
        ({"figure": [{"name": "goodput", "with": {"from": "1"}}]}, r"with\.from = '1'"),
        ({"figure": [{"name": "harm_rate"}]}, r"alone = none: is missing"),
        ({"figure": [{"name": "goodput", "alone": "a"}]}, r"compares with no other run"),
        (
            {"figure": [FIGURE | {"better": "bigger"}, {"name": "totals.fairness", "better": "bigger"}]},
            r"better = 'bigger': must be",
        ),
        ({"figure": [FIGURE | {"criterion": [{"bound": ">= 1mbit"}]}]}, r"source = '': is missing"),
        ({"figure": [FIGURE | {"criterion": [CRITERION | {"bound": ">= 1ms"}]}]}, r"does not fit"),
        ({"figure": [FIGURE | {"criterion": [CRITERION | {"bound": "self"}]}]}, r"needs `victim`"),
        (
            {"figure": [FIGURE | {"criterion": [CRITERION | {"where": {"test.step": 1}}]}]},
            r"test\.step.*is not an axis",
        ),
        ({"set": {"stack.cc": "cubic"}}, r"no key has \{cc\}"),
        ({"quick": {"test.length": [7]}}, r"must be a list of values of this axis"),
        ({"quick": {"test.step": [7]}}, r"is not an axis"),
        ({"label_by": ["test.step"]}, r"is not an axis"),
        ({"axes": {}}, r"^no error$"),
        ({"without": []}, r"without = \[\]: must be a valid dictionary"),
        ({"figure": [{"name": "utilisation", "with": {"mbps": 0}}]}, r"mbps = 0: must be Mbit/s, above 0"),
        ({"figure": [{"name": "goodput", "with": {"from": 8, "to": 3}}]}, r"to = 3: must be a time after `from` = 8"),
        (
            {"figure": [{"name": "time_to_rate", "with": {"mbps": 1, "at": 8, "to": 3}}]},
            r"to = 3: must be a time after `at` = 8",
        ),
        ({"labels": {"test.length": {"5": "X", "10": "X"}}}, r"a label = 'X': is the label of two settings"),
        (
            {"axes": {"test.length": [5, 10], "test.delay": [1, 2]}, "label_by": ["test.length"]},
            r"label of two settings",
        ),
    ],
)
def test_an_invalid_part_is_refused(changes: dict[str, Any], message: str) -> None:
    if message == "^no error$":
        assert read(**changes).parts
        return
    with pytest.raises(InputError, match=message):
        read(**changes)


def test_an_invalid_study_is_refused() -> None:
    for data, message in (
        ({"parts": []}, "unknown key"),
        ({"part": [PART, PART]}, "must occur once"),
        ({"part": [PART], "parts": 1}, 'unknown key. Did you mean "part"'),
        ({"part": [PART], "name": "../own"}, "name = '../own': must be text that can name a folder"),
        ({"part": [PART], "compare": {"axis": "cc", "values": ["cubik"]}}, 'Did you mean "cubic"'),
        ({"part": [{"id": "a", "use": "fairness.nothing"}]}, "has no such part"),
        ({"part": [{"id": "a", "use": "fairness"}]}, "has no such part"),
        ({"part": [{"id": "a", "use": "fairness.against"}]}, "alone.*is not a part"),
        ({"part": [{"id": "a", "use": "fairness.alone", "set": {}}]}, "belongs to the used part"),
    ):
        with pytest.raises(InputError, match=message):
            parse(data)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fairnes"], "FILE = 'fairnes': no such study. Did you mean \"fairness\"?"),
        (["fairness", "--cc", "cubic,"], "--cc = 'cubic,'"),
        (["fairness", "--cc", "cubik"], "cubik"),
        (["fairness", "--cc", "bbr,own/cubic.c"], "--cc = 'own/cubic.c': its column would be named 'cubic'"),
        (["fairness", "--cc", "a/my_cc.c,b/my_cc.c"], "like that of b/my_cc.c"),
        (["fairness", "--kernel", "9.9"], "9.9"),
        (["fairness", "-j", "0"], "jobs = 0"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["study", *words, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len([line for line in error.splitlines() if "error:" in line]) == 1


def test_a_file_that_is_no_toml_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    path.write_text("part = [", "utf-8")
    assert guarded(["study", str(path)]) == 2
    assert "is not valid TOML" in capsys.readouterr().err


def test_the_guides_example_is_a_study_and_its_measures_are_all() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/suites.md").read_text("utf-8")
    example = re.search(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert example
    study = reader.parse(tomllib.loads(example[1]), "small", Path())
    (part,) = study.parts
    assert cells.scenarios(study.column_grid(part, study.columns).grid)
    assert [figure.name for figure in part.figures] == ["utilisation", "ping.icmp.p99"]
    first = re.findall(r"^\| ([^|]*) \|", guide[guide.index("| measure |") :], re.MULTILINE)
    names = {name for column in first for name in re.findall(r"`(\w+)`", column)} - {"bbr_"}
    assert names == {name for name in MEASURES if not name.startswith("bbr_")}
