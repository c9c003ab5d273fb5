# SPDX-License-Identifier: Apache-2.0
"""The labs: a solution passes, wrong answers fail, and the pages state the bounds and keys that the grader uses."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hourglass import scenario
from hourglass.errors import InputError

SPEC = importlib.util.spec_from_file_location("grade", Path(__file__).parents[2] / "labs" / "grade.py")
assert SPEC is not None
assert SPEC.loader is not None
grader = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(grader)
KEYS, LABS, grade, main = grader.KEYS, grader.LABS, grader.grade, grader.main

DOCS = LABS.parent / "docs" / "labs"
ANSWERS = sorted(path for lab in KEYS for path in (LABS / lab).glob("*.toml") if path.name != "start.toml")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_lab_has_a_start_a_solution_and_two_wrong_answers() -> None:
    folders = {path.parent.name for path in LABS.glob("*/start.toml")}
    assert folders == set(KEYS)
    for lab in KEYS:
        names = {path.name for path in (LABS / lab).glob("*.toml")}
        assert {"start.toml", "solution.toml"} <= names
        assert len([name for name in names if name.startswith("wrong-")]) == 2


@pytest.mark.kernels
@pytest.mark.guest
@pytest.mark.parametrize("lab", KEYS)
def test_the_start_fails(lab: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    assert not grade(lab, empty).ok


@pytest.mark.kernels
@pytest.mark.guest
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_answer_has_its_grade(answer: Path) -> None:
    verdict = grade(answer.parent.name, answer)
    assert verdict.error is None
    assert verdict.ok == (answer.name == "solution.toml"), verdict.checks
    assert all(check.value is not None for check in verdict.checks)


@pytest.mark.guest
def test_the_index_shows_a_grade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "index.md").read_text("utf-8")
    answer = tmp_path / "answer.toml"
    answer.write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    assert main(["bufferbloat", str(answer)]) == 1
    example = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]
    assert capsys.readouterr().out.split() == example.split()


@pytest.mark.parametrize("lab", KEYS)
def test_the_page_states_bounds_and_keys(lab: str) -> None:
    page = (DOCS / f"{lab}.md").read_text("utf-8")
    stated = dict(re.findall(r"^ *\| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE))
    assert stated == tomllib.loads((LABS / lab / "start.toml").read_text("utf-8"))["check"]
    for key in KEYS[lab]:
        assert key.removesuffix(".*") in page or key.removeprefix("stack.router.device.wan.") in page


@pytest.mark.parametrize("lab", KEYS)
def test_the_start_is_a_scenario_of_a_stock_kernel(lab: str) -> None:
    start = scenario.load(LABS / lab / "start.toml")
    assert start.name == lab
    assert start.check


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"testbed.link.1.rate" = "1gbit"', "an answer to bufferbloat sets these keys: stack.router.device.wan.qdisc"),
        ('"check.ping.icmp.p99" = "< 1s"', "an answer to bufferbloat sets these keys"),
        ("[stack]", "an answer to bufferbloat sets these keys"),
        ("one two", "cannot be read"),
        ('"stack.router.device.wan.qdisc" = "magic"', "magic"),
    ],
)
def test_an_answer_that_is_not_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    answer = tmp_path / "answer.toml"
    answer.write_text(text)
    assert main(["bufferbloat", str(answer)]) == 2
    assert message in capsys.readouterr().err


def test_a_lab_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the labs are bufferbloat, aqm, tsq"):
        grade("dns", tmp_path / "answer.toml")


def test_the_grader_runs_as_a_program() -> None:
    result = subprocess.run([sys.executable, LABS / "grade.py"], capture_output=True, text=True, check=False)
    assert (result.returncode, "python labs/grade.py LAB ANSWER.toml" in result.stderr) == (2, True)
