# SPDX-License-Identifier: Apache-2.0
"""The formula of a score, and the studies that have one."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hourglass.errors import InputError
from hourglass.results.run_files import RUN_FILE
from hourglass.studies.cells import GridCell
from hourglass.studies.file import ScoreScale
from hourglass.studies.pool import Task
from hourglass.studies.reader import parse, read
from hourglass.studies.runs import SilentStudy
from hourglass.studies.score import CandidateError, make, score, scored_parts
from hourglass.studies.score_formula import total
from hourglass.studies.store import Store

FIGURE: dict[str, Any] = {"name": "goodput", "score": {"part": "goodput", "worst": 0, "best": 10}}


def data(**changes: Any) -> dict[str, Any]:
    return {
        "compare": {"axis": "cc"}, "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [1]},
        "weights": {"goodput": 1}, "figure": [FIGURE],
    } | changes  # fmt: skip


def test_a_utility_is_linear_and_limited() -> None:
    delay = ScoreScale(part="delay", worst=80, best=0)
    assert [delay.utility(value) for value in (100, 80, 20, 0, -1, None)] == [0, 0, 0.75, 1, 1, 0]


def test_a_score_is_the_weighted_geometric_mean_of_its_parts() -> None:
    utilities = {"a": [("x", np.array([0.25])), ("y", np.array([0.75]))], "b": [("x", np.array([1.0]))]}
    result = total(utilities, {"a": 2, "b": 1})
    assert result.value == pytest.approx(100 * 0.5 ** (2 / 3), rel=1e-5)
    assert result.parts["a"].value == 0.5
    assert result.interval is result.parts["a"].interval is None  # one seed


def test_a_part_without_value_is_not_bought_by_the_others() -> None:
    result = total({"a": [("x", np.array([0.0]))], "b": [("x", np.array([1.0]))]}, {"a": 1, "b": 1})
    assert result.value == pytest.approx(10)


def test_intervals_are_those_of_seeds() -> None:
    """Seeds that agree have no spread. For the mean of three seeds the draws have the variance s² / 3."""
    same = total({"a": [("x", np.full(3, 0.5))]}, {"a": 1})
    assert same.interval == (50.0, 50.0)
    settings = [(str(number), np.array([0.4, 0.5, 0.6])) for number in range(100)]
    low, high = total({"a": settings}, {"a": 1}).parts["a"].interval or (0, 0)
    width = 2 * 1.96 * np.std([0.4, 0.5, 0.6], ddof=1) / np.sqrt(3 * 100)
    assert high - low == pytest.approx(width, rel=0.15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {"goodput": 1, "delay": 1}}, "weights.delay = 1.0: is the part of no figure"),
        (
            {"weights": {"godput": 1}},
            "figure.0.score.part = 'goodput': is not a key of weights. Did you mean \"godput\"?",
        ),
        ({"weights": {"goodput": 0}}, "weights.goodput = 0: must be greater than 0"),
        ({"figure": [FIGURE | {"score": FIGURE["score"] | {"worst": 10}}]}, "score.best = 10.0: must differ"),
        ({"figure": [FIGURE | {"score": {"part": "goodput", "worst": 0}}]}, "score.best = none: is missing"),
        ({"figure": [FIGURE | {"score": {"prt": "goodput"}}]}, "unknown key. Did you mean"),
    ],
)
def test_a_wrong_scale_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(data(**changes), "small", Path())
    assert message in str(error.value)


def test_a_study_that_gives_no_score_is_refused() -> None:
    with pytest.raises(InputError, match="has no weights"):
        score("cubic", "fairness")
    with pytest.raises(InputError, match="no setting held out with a figure of goodput"):
        scored_parts(parse(data(), "small", Path()), held_out=True)
    with pytest.raises(InputError, match="no such file"):
        score("lost.c")


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_candidate_whose_repeated_run_differs_has_no_score(tmp_path: Path, is_repeatable: bool) -> None:
    cell = GridCell("seed=1", {"seed": 1}, b"{}", "6.1", "identity", 1.0)
    part = SimpleNamespace(planned=[cell], grid=SimpleNamespace(column=lambda _: "mine"))
    planned: Any = SimpleNamespace(parts={"": part}, store=Store(tmp_path, "records"))

    def run(tasks: list[Task], *_: object) -> bool:
        for task in tasks:
            folder = Path(task["place"])
            folder.mkdir(parents=True)
            digest = "same" if is_repeatable else task["key"]
            (folder / RUN_FILE).write_text(json.dumps({"digest": digest, "warnings": []}))
        return True

    workers: Any = SimpleNamespace(run=run)
    if is_repeatable:
        assert make(planned, "mine", workers, 1, 9.0, SilentStudy()) == 1
        return
    with pytest.raises(CandidateError) as error:
        make(planned, "mine", workers, 1, 9.0, SilentStudy())
    assert error.value.failure.code == "not-repeatable"


def test_the_built_in_study_has_as_many_settings_as_its_page_says() -> None:
    settings = []
    for held_out in (False, True):
        study = scored_parts(read("score"), held_out)
        settings.append(sum(len(study.column_grid(part, ("x",), seeds=(1,)).grid.cells) for part in study.parts))
    assert settings == [20, 10]


def test_a_file_with_evaluate_is_an_evaluator(tmp_path: Path) -> None:
    """OpenEvolve imports a file and calls its function with the path of a program."""
    (tmp_path / "evaluator.py").write_text("from hourglass import evaluate\n")
    (tmp_path / "empty.c").write_text("int nothing;\n")
    spec = importlib.util.spec_from_file_location("evaluation_module", tmp_path / "evaluator.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    metrics = module.evaluate(str(tmp_path / "empty.c"))
    assert metrics == dict.fromkeys(["combined_score", *read("score").weights], 0.0)
