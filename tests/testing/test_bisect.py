# SPDX-License-Identifier: Apache-2.0
"""Bisecting, with figures of the commits' own: git, and who is asked what, are the real ones."""

import os
import signal
import subprocess
import sys
import time
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
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
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


def test_only_commits_that_touch_the_paths_are_asked(history: Any) -> None:
    folder, commits, outcome = history
    (folder / "net").mkdir()
    for number in range(8):
        (folder / "net/x.c").write_text(f"{number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"net {number}")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"elsewhere {number}")
    later = git(folder, "rev-list", "--reverse", f"{commits[-1]}..HEAD").splitlines()
    outcome.update(dict.fromkeys(later[6:], "bad"))
    found = bisect(folder, commits[0], "HEAD", "L100M", ["ping.icmp.p99 < 10ms"], within=["net"])
    assert found.subject == "net 3"
    assert {step.subject.split()[0] for step in found.steps[2:]} == {"net"}
    with pytest.raises(InputError, match="PATH = 'mm': no commit"):
        bisect(folder, commits[0], "HEAD", "L100M", ["ping.icmp.p99 < 10ms"], within=["mm"])


INTERRUPTED = """
import sys
from pathlib import Path
from types import SimpleNamespace
from hourglass.engine.kernel import trees
from hourglass.testing import bisect

def build(words, name, progress):
    global bad
    with trees.given(words, name, lambda _, __: None) as tree:
        bad = "slow" in (tree.tree / "net/x.c").read_text()

bisect.build = build
bisect.judge.check = lambda *_, **__: [SimpleNamespace(ok=not bad, error=None, checks=[])]
print(bisect.bisect(Path(sys.argv[1]), "v0", "HEAD", "L100M", ["ping.icmp.p99 < 10ms"]).subject)
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of ten commits, slow from commit 7 on, of which git writes a file as slowly as `pause` says."""
    folder = tmp_path / "linux"
    (folder / "net").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\n")
    (folder / ".gitattributes").write_text("*.c filter=paced\n")
    for number in range(10):
        (folder / "net/x.c").write_text(f"{'slow' if number >= 7 else 'fast'} {number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"commit {number}")
        git(folder, "tag", f"v{number}")
    (tmp_path / "pause").write_text("0\n")
    paced = f"sh -c 'touch {tmp_path}/begun; sleep $(cat {tmp_path}/pause); cat'"
    (tmp_path / "gitconfig").write_text(f'[filter "paced"]\n\tsmudge = "{paced}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_it_leaves_the_repository_and_begins_again(slow: Path, how: signal.Signals) -> None:
    """In the middle of a checkout, when git holds the lock of its index."""
    place = slow.parent
    command = [sys.executable, "-c", INTERRUPTED, str(slow)]
    before = {path: path.read_bytes() for path in slow.rglob("*") if path.is_file()}
    (place / "pause").write_text("3\n")
    child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    while not (place / "begun").exists():
        assert child.poll() is None
        time.sleep(0.02)
    (lock,) = place.glob("cache/checkouts/*@/.git/index.lock")
    os.kill(child.pid, how)
    child.wait()
    assert lock.exists(), "else the test shows nothing"
    (place / "pause").write_text("0\n")
    done = subprocess.run(command, check=True, text=True, capture_output=True)
    assert done.stdout == "commit 7\n"
    assert {path: path.read_bytes() for path in slow.rglob("*") if path.is_file()} == before
    assert not list(place.glob("cache/bisects/[!.]*@"))
