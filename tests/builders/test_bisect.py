# SPDX-License-Identifier: Apache-2.0
"""Bisecting with synthetic verdicts of commits; git and the choice of commits are real."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hourglass.builders.kernel import bisect as module
from hourglass.builders.kernel.bisect import bisect
from hourglass.builders.kernel.builder import BuildError
from hourglass.errors import InputError
from tests.clocks import until


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str], dict[str, str], Any]:
    """Return a repository, its 200 commits, a table of their outcomes, which tests fill, and the check."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(200):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    commits = git(folder, "rev-list", "--reverse", "HEAD").splitlines()
    outcome: dict[str, str] = {}
    current: list[str] = []

    def build(argument: str, name: str, progress: Any) -> None:
        current[:] = [argument.rpartition("@")[2]]
        if outcome.get(current[0]) == "broken":
            raise BuildError("building Linux failed")

    def check(kernel: str) -> Any:
        assert kernel == "linux.bisect"
        return SimpleNamespace(ok=outcome.get(current[0], "good") == "good", reason="")

    monkeypatch.setattr(module, "build", build)
    return folder, commits, outcome, check


def test_the_first_bad_commit_is_found_in_few_steps_and_nothing_is_changed(history: Any) -> None:
    folder, commits, outcome, check = history
    outcome.update(dict.fromkeys(commits[137:], "bad"))
    before = git(folder, "for-each-ref"), git(folder, "rev-parse", "HEAD")
    bisection = bisect(folder, commits[0], "HEAD", check)
    assert (bisection.commits, bisection.subject) == ((commits[137],), "commit 137")
    assert len(bisection.steps) <= 2 + 8  # both ends, then log2 of 199
    assert (git(folder, "for-each-ref"), git(folder, "rev-parse", "HEAD")) == before
    assert not (folder / ".git/BISECT_LOG").exists()


def test_commits_that_do_not_build_are_skipped(history: Any) -> None:
    folder, commits, outcome, check = history
    outcome.update(dict.fromkeys(commits[90:], "bad") | dict.fromkeys(commits[95:110], "broken"))
    bisection = bisect(folder, commits[0], commits[-1], check)
    assert bisection.commits == (commits[90],)
    assert {step.answer for step in bisection.steps} == {"good", "bad", "skip"}


@pytest.mark.slow
def test_if_only_broken_commits_remain_all_are_named(history: Any) -> None:
    folder, commits, outcome, check = history
    outcome.update(dict.fromkeys(commits[100:], "bad") | dict.fromkeys(commits[97:103], "broken"))
    bisection = bisect(folder, commits[0], commits[-1], check)
    assert set(bisection.commits) == set(commits[97:104])


@pytest.mark.parametrize("good", [True, False])
def test_ends_with_other_verdicts_are_refused(history: Any, good: bool) -> None:
    folder, commits, outcome, check = history
    outcome.update({} if good else dict.fromkeys(commits, "bad"))
    with pytest.raises(InputError, match="BAD = 'HEAD': is good, not bad" if good else "is bad, not good"):
        bisect(folder, commits[0], "HEAD", check)


def test_only_commits_that_touch_the_paths_are_tested(history: Any) -> None:
    folder, commits, outcome, check = history
    (folder / "net").mkdir()
    for number in range(8):
        (folder / "net/x.c").write_text(f"{number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"net {number}")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"elsewhere {number}")
    later = git(folder, "rev-list", "--reverse", f"{commits[-1]}..HEAD").splitlines()
    outcome.update(dict.fromkeys(later[6:], "bad"))
    bisection = bisect(folder, commits[0], "HEAD", check, within=["net"])
    assert bisection.subject == "net 3"
    assert {step.subject.split()[0] for step in bisection.steps[2:]} == {"net"}
    with pytest.raises(InputError, match="PATH = 'mm': no commit"):
        bisect(folder, commits[0], "HEAD", check, within=["mm"])


INTERRUPTED = """
import sys
from pathlib import Path
from types import SimpleNamespace
from hourglass.builders.kernel import tree_spec
from hourglass.builders.kernel import bisect

def build(words, name, progress):
    global bad
    with tree_spec.open_tree(words, name, lambda _, __: None) as tree:
        bad = "slow" in (tree.tree / "net/x.c").read_text()

bisect.build = build
check = lambda _: SimpleNamespace(ok=not bad, reason="")
print(bisect.bisect(Path(sys.argv[1]), "v0", "HEAD", check).subject)
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of ten commits, slow from commit 7 on. Git writes a file after the seconds in `pause`."""
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


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_bisection_leaves_the_repository_and_can_restart(
    slow: Path, signal_number: signal.Signals
) -> None:
    """Interrupt in the middle of a checkout, while git has locked its index."""
    folder = slow.parent
    command = [sys.executable, "-c", INTERRUPTED, str(slow)]
    before = {path: path.read_bytes() for path in slow.rglob("*") if path.is_file()}
    (folder / "pause").write_text("3\n")
    child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    until(lambda: child.poll() is not None or (folder / "begun").exists())
    assert child.poll() is None
    (lock,) = folder.glob("cache/checkouts/*@/.git/index.lock")
    os.kill(child.pid, signal_number)
    child.wait()
    assert lock.exists(), "else the test shows nothing"
    (folder / "pause").write_text("0\n")
    result = subprocess.run(command, check=True, text=True, capture_output=True)
    assert result.stdout == "commit 7\n"
    assert {path: path.read_bytes() for path in slow.rglob("*") if path.is_file()} == before
    assert not list(folder.glob("cache/bisects/[!.]*@"))
