# SPDX-License-Identifier: Apache-2.0
"""`python -m tests` and the tools of tests: every part runs, the table names failures, and skips have reasons."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hourglass.engine import host_tools, native
from hourglass.engine.ssh.engine import Ssh
from hourglass.errors import MissingError
from tests import __main__ as parts
from tests import tools as test_tools
from tests.__main__ import PYTEST, Part
from tests.processes import MESSAGES, after_sigterm


def no_tools(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Hide tools of this machine."""
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **options: None if name in names else real(name, **options))


@pytest.fixture(autouse=True)
def _complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_tools, "missing", lambda: [])
    monkeypatch.delenv("CI", raising=False)


def test_a_part_that_fails_hides_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c"]
    status = parts.run([
        Part("first", [*command, "raise SystemExit(7)"]),
        Part("second", [*command, "import time; time.sleep(0.2); print('second part')"]),
    ])  # fmt: skip
    assert status == 1
    printed = capfd.readouterr().out
    assert "second part" in printed
    last = [re.sub(r" +[\d.]+ s", " # s", line) for line in printed.splitlines()[-6:]]
    assert last[:4] == ["first # s  FAILED (7)", "second # s  passed", "in all # s", ""]
    assert last[4:] == [
        "failed, and how to repeat each:",
        f"  {os.path.relpath(sys.executable, parts.ROOT)} -c 'raise SystemExit(7)'",
    ]


def test_the_last_lines_repeat_each_failed_test(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each printed command runs one of them, or the file that pytest cannot read, and fails as before."""
    (tmp_path / "test_two.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('text', ['a b', 'c'])\ndef test_text(text): assert text == 'c'\n"
        "@pytest.fixture\ndef broken(): assert False\n"
        "def test_set_up(broken): pass\n"
    )
    (tmp_path / "test_unreadable.py").write_text("import nothing_of_this_name\n")
    command = [*PYTEST, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--continue-on-collection-errors"]
    assert parts.run([Part("tests", [*command, str(tmp_path)], tmp_path)]) == 1
    lines = capfd.readouterr().out.partition("failed, and how to repeat each:\n")[2].splitlines()
    assert [shlex.split(line)[3] for line in lines] == [
        "test_unreadable.py", "test_two.py::test_text[a b]", "test_two.py::test_set_up",
    ]  # fmt: skip
    for line in lines:
        words = [sys.executable, *shlex.split(line)[1:]]
        repeated = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert re.search(r"\b1 (failed|error) in ", repeated.stdout), repeated.stdout


def test_failed_tests_of_the_agent_are_named() -> None:
    """The output is that of cargo: a list of each failed test's output comes before the list of their names."""
    outputs = "failures:\n\n---- wire::a stdout ----\n    not a name\n\n"
    output = f"{outputs}failures:\n    wire::a\n    b\n\ntest result: FAILED.\n"
    assert parts.failed_tests_of_the_agent(parts.agent("--", "--include-ignored"), output) == [
        "cd agent && cargo test --locked --quiet -- --include-ignored wire::a",
        "cd agent && cargo test --locked --quiet -- --include-ignored b",
    ]


@pytest.mark.parametrize("start_s", [0, 0.5], ids=["while it runs", "while it starts"])
def test_a_terminated_command_lets_its_tests_tidy_up(tmp_path: Path, start_s: float) -> None:
    """`start_s`: the time for which a busy machine keeps this process from seeing that the command has started."""
    tests = f"exec >{MESSAGES}; trap 'echo tidies; exit' INT; echo begins; while :; do sleep 0.01; done"
    code = f"""
import subprocess, time
from pathlib import Path
from hourglass.errors import program
from tests.__main__ import Part, run
class Slow(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        time.sleep({start_s})
subprocess.Popen = Slow
program(lambda: run([Part("tests", ["sh", "-c", {tests!r}], Path({str(tmp_path)!r}))]))
"""
    command = [sys.executable, "-c", code]
    written, child = after_sigterm(command, tmp_path, cwd=parts.ROOT, stdout=subprocess.DEVNULL)
    assert written == "tidies\n"
    assert child.wait() == 130


def test_a_command_has_the_parts_of_the_shorter_one() -> None:
    names = {command: [part.name for part in listed] for command, listed in parts.COMMANDS.items()}
    assert set(names["quick"]) < set(names["test"]) < set(names["test-all"])


def test_all_parts_pass() -> None:
    assert parts.run([Part("only", ["true"])]) == 0


def test_the_last_lines_name_skipped_tests_and_remedies(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_tshark.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_skipped(n): pytest.skip('no tshark here')\n"
        "@pytest.mark.xfail(reason='known')\ndef test_known(): assert False\n"
    )
    monkeypatch.setattr(test_tools, "missing", lambda: ["sparse", "tshark"])
    monkeypatch.setattr(host_tools.os, "geteuid", lambda: 1000)
    command = [*PYTEST, "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]  # it decides the files' names
    assert parts.run([Part("tests", command)]) == 0
    printed = capfd.readouterr().out.splitlines()
    assert any(re.fullmatch(r" +[\d.]+ s  test_tshark.py", line) for line in printed)
    assert printed[-4:] == [
        "skipped: 2 tests",
        "    2  no tshark here",
        "",
        "some tests need tools that are missing; to install them: sudo apt-get install -y sparse tshark",
    ]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("def test_skipped(): pytest.skip('no tshark here')", "failed"), ("pytest.importorskip('no_package')", "error")],
)
def test_what_is_skipped_fails_in_ci(text: str, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "test_tshark.py").write_text(f"import pytest\n{text}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path)]
    for ci, counts in (("", "1 skipped in "), ("1", f"1 {outcome} in ")):
        done = subprocess.run(
            command, cwd=parts.ROOT, env=os.environ | {"CI": ci}, text=True, capture_output=True, check=False
        )
        assert done.stdout.splitlines()[-1].startswith(counts)


def test_a_linter_that_is_missing_is_skipped_but_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_tools, "lacking", lambda: ["clippy"])
    part = Part("clippy", ["false"], linter="clippy")
    assert parts.execute(part) == parts.Result(part, "skipped: no clippy", 0.0, Counter())
    monkeypatch.setenv("CI", "1")
    assert parts.execute(part).failed


@pytest.mark.parametrize(("engine", "hidden", "line"), [
    (native.Native, ("ip", "tc", "ethtool", "unshare"), "native runs need ip, tc, ethtool, unshare; to fix: "
     "sudo apt-get install -y ethtool iproute2 util-linux"),
    (native.Native, ("ethtool",), "native runs need ethtool; to fix: sudo apt-get install -y ethtool"),
    (Ssh, ("ssh",), "ssh runs need ssh; to fix: sudo apt-get install -y openssh-client"),
])  # fmt: skip
def test_an_engine_names_all_missing_tools_at_once(
    engine: type[native.Native] | type[Ssh], hidden: tuple[str, ...], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_tools(monkeypatch, *hidden)
    monkeypatch.setattr(host_tools.os, "geteuid", lambda: 1000)
    with pytest.raises(MissingError) as caught:
        engine.ready()
    assert str(caught.value) == line


def test_a_compiler_is_named_with_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    no_tools(monkeypatch, "ssh", "cargo", "rustc")
    monkeypatch.setattr(host_tools.agent, "built", lambda: None)
    problem = host_tools.lacking("ssh runs", {"ssh": "openssh-client"})
    assert problem is not None
    assert problem.problem == "ssh runs need ssh, cargo 1.85"
    assert host_tools.agent.package() in problem.remedy


def test_an_ordinary_user_gets_the_apt_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_tools.os, "geteuid", lambda: 1000)
    with pytest.raises(MissingError, match=r"missing: b, a; to fix: sudo apt-get install -y a b$"):
        host_tools.install(["b", "a"])
    host_tools.install([])
