# SPDX-License-Identifier: Apache-2.0
"""Tuning: what is compiled again and when, in a small tree with a make of our own; the training runs are left out."""

import os
from pathlib import Path

import pytest

from hourglass.engine import paths
from hourglass.engine.kernel import tune
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.errors import GuestError, HourglassError

KERNEL = BuiltKernel("6.1", "6.1.0", "key", Path("linux"), Path("config"), 1000)


class Tree:
    """A built working tree, and what was done in it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.done: list[str] = []
        self.clock = 1
        for name in ("net/core/dev.o", "net/ipv4/tcp.o", "net/ipv4/cold.o"):
            self.compile(name)

    def compile(self, name: str) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.clock += 1
        os.utime(path, ns=(self.clock, self.clock))

    def make(self, words: list[str], what: str) -> None:
        self.done.append(what)
        for word in words:
            if word.startswith("OBJECTS="):
                names = word.removeprefix("OBJECTS=").split()
                self.done[-1] += f" {' '.join(names)}"
                for name in names:
                    self.compile(name)

    def run(self, plan: Path, work: Path, kernel: BuiltKernel) -> None:
        self.done.append("run")
        (work / "net/core/dev.gcda").touch()

    def tune(self, compiler: str = "gcc 12") -> list[str]:
        self.done = []
        tune.tune(self.work, KERNEL, compiler, self.make)
        return self.done


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(tune, "TUNING", tmp_path / "tuning")
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning/objects").write_text("# why\nnet/core/*.o\nnet/ipv4/tcp.o\nnet/gone.o\n")
    (tmp_path / "tuning/a.json").write_text("{}")
    made = Tree(tmp_path / "work")
    monkeypatch.setattr(tune, "run", made.run)
    return made


BOTH = "net/core/dev.o net/ipv4/tcp.o"
TRAINED = [f"compiling for training {BOTH}", "linking for training", "run"]
USED = [f"compiling by the profile {BOTH}", "linking"]


def test_the_hot_objects_are_counted_trained_and_compiled_again(tree: Tree) -> None:
    assert tree.tune() == [*TRAINED, *USED]


def test_only_what_make_compiled_since_is_tuned_again(tree: Tree) -> None:
    tree.tune()
    assert tree.tune() == []
    tree.compile("net/ipv4/tcp.o")
    assert tree.tune() == ["compiling by the profile net/ipv4/tcp.o", "linking"]


def test_another_compiler_is_another_profile(tree: Tree) -> None:
    tree.tune()
    assert tree.tune("gcc 13") == [*TRAINED, *USED]


def test_objects_that_count_are_never_left_behind(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise GuestError("the guest kernel panicked", tree.work, [])

    monkeypatch.setattr(tune, "run", fail)
    with pytest.raises(HourglassError):
        tree.tune()
    tune.recover(tree.work)
    assert [name for name in BOTH.split() if (tree.work / name).exists()] == []
    assert (tree.work / "net/ipv4/cold.o").exists()


def test_a_run_that_counts_nothing_is_an_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "run", lambda *_: None)
    with pytest.raises(HourglassError, match="no counts"):
        tree.tune()


def test_a_finished_tuning_needs_no_recovery(tree: Tree) -> None:
    tree.tune()
    tune.recover(tree.work)
    assert all((tree.work / name).exists() for name in BOTH.split())


def test_every_name_of_the_list_is_an_object_of_some_kernel_s() -> None:
    words = (paths.KERNEL / "tuning/objects").read_text().splitlines()
    assert all(word.startswith("#") or word.endswith(".o") for word in words)
    assert len(words) == len(set(words))
