# SPDX-License-Identifier: Apache-2.0
"""Tuning: what make is told, and when a kernel is trained; the training runs themselves are left out."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.contract.plan import Plan
from hourglass.engine.kernel import tune
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError

KERNEL = BuiltKernel("6.1", "6.1.0", "key", Path("linux"), Path("config"), 1000)


class Tree:
    """A working tree, and what was done in it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.done: list[str] = []

    def make(self, words: list[str], what: str) -> None:
        flags = [word.removeprefix("HOURGLASS_FLAGS=") for word in words if word.startswith("HOURGLASS_FLAGS=")]
        self.done += flags or ["plain"]

    def run(self, guest: Virtual, plan: Plan, directory: Path) -> None:
        assert guest.kernel.linux == self.work / "linux"
        self.done.append("run")
        (self.work / "dev.gcda").touch()

    def tune(self, compiler: str = "gcc 12") -> list[str]:
        self.done = []
        self.untuned = tune.make_tuned(self.work, lambda: KERNEL, compiler, self.make)
        return self.done


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    made = Tree(tmp_path)
    monkeypatch.setattr(Virtual, "run", lambda *given: made.run(*given))
    return made


RUNS = ["run"] * len(list(tune.TUNING.glob("*.json")))


def test_a_kernel_counts_is_trained_and_is_made_again(tree: Tree) -> None:
    assert tree.tune() == [tune.COUNT, *RUNS, tune.USE]
    assert tree.untuned == ""


def test_one_training_is_enough_for_a_tree_and_a_compiler(tree: Tree) -> None:
    tree.tune()
    assert tree.tune() == [tune.USE]
    assert tree.tune("gcc 13") == [tune.COUNT, *RUNS, tune.USE]


def test_a_kernel_that_fails_its_training_is_made_plain(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise GuestError("the guest kernel panicked", tree.work, [])

    with monkeypatch.context() as patch:
        patch.setattr(Virtual, "run", fail)
        assert tree.tune() == [tune.COUNT, "plain"]
    assert "panicked" in tree.untuned
    assert tree.tune() == [tune.COUNT, *RUNS, tune.USE]


def test_runs_that_count_nothing_are_noticed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Virtual, "run", lambda *_, **__: None)
    assert tree.tune() == [tune.COUNT, "plain"]
    assert "no counts" in tree.untuned


def test_make_is_told_objects_and_nothing_else() -> None:
    objects = tune.further("")[0].removeprefix("HOURGLASS_TUNED=").split()
    assert "net/core/dev.o" in objects
    assert all(name.endswith(".o") and name.count("%") < 2 for name in objects)
    assert len(objects) == len(set(objects))


def test_the_drivers_of_the_list_exist() -> None:
    folder = "drivers/net/hourglass/"
    for name in tune.further("")[0].removeprefix("HOURGLASS_TUNED=").split():
        if name.startswith(folder):
            pattern = name.removeprefix(folder).replace("%", "*").replace(".o", ".c")
            assert list((resources.KERNEL / "drivers").glob(pattern)), name
