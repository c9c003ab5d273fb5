# SPDX-License-Identifier: Apache-2.0
"""`python -m tests` and the tools of tests: every part runs, the table names failures, and skips have reasons."""

import re
import shutil
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
    last = [re.sub(r" +[\d.]+ s", " # s", line) for line in printed.splitlines()[-3:]]
    assert last == ["first # s  FAILED (7)", "second # s  passed", "in all # s"]


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
    assert parts.run([Part("tests", [*PYTEST, "-p", "no:cacheprovider", str(tmp_path)])]) == 0
    printed = capfd.readouterr().out.splitlines()
    assert any(re.fullmatch(r" +[\d.]+ s  test_tshark.py", line) for line in printed)
    assert printed[-4:] == [
        "skipped: 2 tests",
        "    2  no tshark here",
        "",
        "some tests need tools that are missing; to install them: sudo apt-get install -y sparse tshark",
    ]


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
