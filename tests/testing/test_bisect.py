# SPDX-License-Identifier: Apache-2.0
"""Bisecting, with figures of the commits' own: git, and who is asked what, are the real ones."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hourglass.engine.kernel.build import BuildError
from hourglass.errors import InputError
from hourglass.testing import bisect as module
from hourglass.testing.bisect import bisect


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str], dict[str, str]]:
    """A repository of 200 commits, and what comes of each: it is changed by the tests."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(200):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    commits = git(folder, "rev-list", "--reverse", "HEAD").splitlines()
    outcome: dict[str, str] = {}
    at: list[str] = []

    def build(words: str, name: str, progress: Any) -> None:
        at[:] = [words.rpartition("@")[2]]
        if outcome.get(at[0]) == "broken":
            raise BuildError("building Linux failed")

    def check(*targets: Any, **options: Any) -> list[Any]:
        return [SimpleNamespace(ok=outcome.get(at[0], "good") == "good", error=None, checks=[])]

    monkeypatch.setattr(module, "build", build)
    monkeypatch.setattr(module.judge, "check", check)
    return folder, commits, outcome


def test_the_first_bad_commit_is_found_in_few_steps_and_nothing_is_changed(history: Any) -> None:
    folder, commits, outcome = history
    outcome.update(dict.fromkeys(commits[137:], "bad"))
    before = git(folder, "for-each-ref"), git(folder, "rev-parse", "HEAD")
    found = bisect(folder, commits[0], "HEAD", "L100M", ["ping.icmp.p99 < 10ms"])
    assert (found.commits, found.subject) == ((commits[137],), "commit 137")
    assert len(found.steps) <= 2 + 8  # both ends, then log2 of 199
    assert (git(folder, "for-each-ref"), git(folder, "rev-parse", "HEAD")) == before
    assert not (folder / ".git/BISECT_LOG").exists()


def test_what_does_not_build_is_passed_over(history: Any) -> None:
    folder, commits, outcome = history
    outcome.update(dict.fromkeys(commits[90:], "bad") | dict.fromkeys(commits[95:110], "broken"))
    found = bisect(folder, commits[0], commits[-1], "L100M", ["ping.icmp.p99 < 10ms"])
    assert found.commits == (commits[90],)
    assert {step.answer for step in found.steps} == {"good", "bad", "skip"}


def test_where_only_broken_ones_are_left_they_are_all_named(history: Any) -> None:
    folder, commits, outcome = history
    outcome.update(dict.fromkeys(commits[100:], "bad") | dict.fromkeys(commits[97:103], "broken"))
    found = bisect(folder, commits[0], commits[-1], "L100M", ["ping.icmp.p99 < 10ms"])
    assert set(found.commits) == set(commits[97:104])


@pytest.mark.parametrize("good", [True, False])
def test_ends_that_are_not_as_said_are_refused(history: Any, good: bool) -> None:
    folder, commits, outcome = history
    outcome.update({} if good else dict.fromkeys(commits, "bad"))
    with pytest.raises(InputError, match="BAD = 'HEAD': is good, not bad" if good else "is bad, not good"):
        bisect(folder, commits[0], "HEAD", "L100M", ["ping.icmp.p99 < 10ms"])
