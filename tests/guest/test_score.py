# SPDX-License-Identifier: Apache-2.0
"""Candidates that break, and candidates that try to break the evaluator. None has a better score than a correct one."""

import os
from pathlib import Path
from typing import Any

import pytest

from hourglass.builders.kernel import builder, confined_tools
from hourglass.builders.kernel.builder import SourceError
from hourglass.studies import score as scores
from hourglass.studies.reader import FOLDER
from hourglass.studies.score import Score, score
from hourglass.studies.study import StudyRuns

pytestmark = pytest.mark.guest

CANDIDATE = Path(__file__).parent / "hostile_cc.c"
RIGHT, DIVIDES, LOOPS, OUT_OF_BOUNDS, FLOODS, HIDES, CLOCK, SPINS = range(8)


def study(mode: int) -> dict[str, Any]:
    """Return a study of one short run, with a module parameter of the candidate."""
    return {
        "name": "hostile", "compare": {"axis": "cc"}, "weights": {"goodput": 1, "delay": 1, "loss": 1},
        "scenario": str(FOLDER / "testbeds/one.toml"),
        "set": {
            "stack.client.cc.file": "{cc}", "stack.client.cc.parameters.mode": mode, "test.length": 2,
            "testbed.link.0.shaper.forward": {"rate": "10mbit", "limit": "50KB"},
        },
        "part": [{
            "id": "alone", "axes": {"test.delay": [0.5]}, "seeds": 1,
            "figure": [
                {"name": "utilisation", "with": {"mbps": 10, "from": 0.5},
                 "score": {"part": "goodput", "worst": 0, "best": 95}},
                {"name": "queue", "score": {"part": "delay", "worst": 80, "best": 0}},
                {"name": "dropped", "score": {"part": "loss", "worst": 5, "best": 0}},
            ],
        }],
    }  # fmt: skip


@pytest.fixture(scope="module")
def correct() -> Score:
    return score(CANDIDATE, study(RIGHT))


def left_behind() -> list[Path]:
    """Return the folders of this process, not those of other scores at the same time."""
    return list(scores._stored().glob(f".{os.getpid()}-*"))


@pytest.mark.slow
def test_a_correct_candidate_has_a_score_and_leaves_nothing(correct: Score) -> None:
    assert correct.failure is None
    assert 1 < correct.value < 100
    assert {name for name, part in correct.parts.items() if part.value > 0} == {"goodput", "delay", "loss"}
    assert correct.metrics["combined_score"] == correct.value / 100
    assert left_behind() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "code"),
    [(OUT_OF_BOUNDS, "guest-panic"), (CLOCK, "guest-panic"), (DIVIDES, "guest-panic")],
)
def test_a_broken_candidate_has_0_with_the_reason(mode: int, code: str) -> None:
    result = score(CANDIDATE, study(mode))
    assert result.failure is not None
    assert (result.value, result.failure.code) == (0.0, code)
    assert result.failure.reason
    assert {part.value for part in result.parts.values()} == {0.0}
    assert left_behind() == []


def test_a_flood_is_worse_and_cannot_hide_its_cost(correct: Score) -> None:
    flood, hidden = (score(CANDIDATE, study(mode)) for mode in (FLOODS, HIDES))
    assert flood.value < correct.value
    assert hidden.parts["loss"].value <= flood.parts["loss"].value < correct.parts["loss"].value


@pytest.mark.slow
def test_a_candidate_that_never_returns_ends_with_its_time() -> None:
    """The kernel's waiting loop moves the guest's clock, so only the wall time ends it."""
    result = score(CANDIDATE, study(LOOPS), limit_s=5)
    assert result.failure is not None
    assert (result.value, result.failure.code) == (0.0, "score-late")


@pytest.mark.slow
def test_a_candidate_that_stops_the_clock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "STALL_S", 1.0)
    result = score(CANDIDATE, study(SPINS))
    assert result.failure is not None
    assert (result.value, result.failure.code) == (0.0, "guest-spins")


def test_sources_that_are_no_candidate_have_0_before_a_kernel_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.c").write_text("int nothing;\n")
    result = score(tmp_path / "empty.c", study(RIGHT))
    assert result.failure is not None
    assert (result.value, result.failure.code) == (0.0, "input")
    assert "registers nothing" in result.failure.reason

    def build(*_: object, **__: object) -> None:
        raise SourceError("wrong: does not compile with Linux 6.1\nwrong.c:3:1: error: expected ;\nbuild log: work.log")

    monkeypatch.setattr(StudyRuns, "_planned", build)
    result = score(CANDIDATE, study(RIGHT))
    assert result.failure is not None
    assert (result.value, result.failure.code) == (0.0, "module-build")
    assert result.failure.log == ("wrong.c:3:1: error: expected ;",)


def test_a_compiler_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler of a candidate has a limit of CPU time for any file."""
    monkeypatch.setattr(confined_tools, "COMPILER_S", 1)
    (tmp_path / "log").touch()
    (tmp_path / "Makefile").write_text("linux:\n\tperl -e 'while (1) {}'\n")
    with pytest.raises(builder.BuildError):
        builder.run_make(
            tmp_path, "compiling", ["linux"], log=tmp_path / "log", rules=confined_tools.compiler_rules(tmp_path)
        )
