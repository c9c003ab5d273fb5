# SPDX-License-Identifier: Apache-2.0
"""A bare machine with what the README requires: `make check` and `make test-all` install every tool that they need."""

import os
from pathlib import Path

import pytest

from tests import bare, tools

EXPENSIVE = ("guest_and_machine_agree", "the_guest_is_compared_with", "after_a_kill_at_any_moment")
"""Tests that are left out because they make many runs. Others need the same tools."""
SUITES = ["tests/native", "tests/ssh", "tests/browser/test_report.py", "tests/plan/test_traffic.py"]
ALL_TOOLS = "from tests import tools; assert not tools.missing() and not tools.lacking(), tools.missing()"


@pytest.fixture(scope="module")
def root() -> Path:
    if os.geteuid() != 0:
        pytest.skip("a bare root is made by root only")
    tools.need("debootstrap")
    return bare.root()


def test_the_readme_requires_no_tool_of_tests() -> None:
    assert bare.required() == ["make", "git"]


def test_every_expensive_test_exists() -> None:
    folders = [bare.ROOT / "tests" / name for name in ("native", "ssh")]
    sources = [path.read_text() for folder in folders for path in folder.glob("test_*.py")]
    assert [name for name in EXPENSIVE if not any(f"def test_{name}" in text for text in sources)] == []


def test_every_file_that_decides_exists() -> None:
    assert [name for name in bare.DECIDE if not (bare.ROOT / name).is_file()] == []


def test_ci_only_calls_two_commands() -> None:
    lines = (bare.ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "set -uo pipefail", 'cd "$(dirname "$0")/.." || exit', "export CI=1", "failed=0", "make check || failed=1",
        "make test-all || failed=1", "exit $failed",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_set_up_installs_the_tools_of_tests(root: Path) -> None:
    """If `CI` is set, a skipped test fails."""
    chosen = " and ".join(f"not {name}" for name in EXPENSIVE)
    python = f".venv/bin/python -c '{ALL_TOOLS}'"
    pytest_line = f".venv/bin/python -m pytest -rf --tb=short {' '.join(SUITES)} -k '{chosen}'"
    collection = ".venv/bin/python -m pytest --collect-only -qq >/dev/null"
    result = bare.run(root, f"export CI=1; {bare.REPEATED} && {python} && {collection} && {pytest_line}")
    assert result.returncode == 0, result.stdout[-5000:]
    assert "skipped" not in result.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_missing_tool_fails_in_ci(root: Path) -> None:
    """Show that the test above can fail: without ethtool no native run starts, and CI counts that as a failure."""
    line = ".venv/bin/python -m pytest --tb=short tests/native/test_doctor.py"
    result = bare.run(root, f"export CI=1; cd /{bare.CHECKOUT}; rm /usr/sbin/ethtool /sbin/ethtool -f; {line}")
    assert result.returncode == 1
    assert "need ethtool; to fix: apt-get install -y ethtool" in result.stdout
