# SPDX-License-Identifier: Apache-2.0
"""Tuning: what make is told and in which tree, and what the cache keeps; make and the training runs are left out."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.contract.plan import Plan
from hourglass.engine.kernel import build, store, tune
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.recipe import Recipe
from hourglass.engine.kernel.source import Source
from hourglass.engine.virtual import Virtual
from hourglass.errors import GuestError, HourglassError

RUNS = ["run"] * len(list(tune.TUNING.glob("*.json")))


class Builder:
    """A cache of its own and a configured tree; make and runs are only written down, with the tree they were in."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.work = cache / "work" / "6.1"
        self.done: list[tuple[str, str]] = []
        (self.work / "include/config").mkdir(parents=True)
        (self.work / "include/config/kernel.release").write_text("6.1.0-hourglass\n")
        (self.work / ".config").write_text("CONFIG_HZ=1000\n")
        build.log_of(self.work).touch()

    def make(self, work: Path, what: str, words: list[str], *_: object) -> None:
        flags = next((word.removeprefix("HOURGLASS_FLAGS=") for word in words if "_FLAGS=" in word), "plain")
        self.done.append((work.name, flags))
        (work / "linux").write_text(flags)

    def run(self, guest: Virtual, plan: Plan, directory: Path) -> None:
        assert guest.kernel.linux.read_text() == tune.COUNT
        self.done.append((guest.kernel.linux.parent.name, "run"))
        (guest.kernel.linux.parent / "dev.gcda").touch()

    def build(self, tuned: bool, version: tuple[int, int] = (6, 1)) -> BuiltKernel:
        self.done = []
        job = build.Job(self.work, "0123456789abcdef", Recipe("6.1", "source", version), 2, lambda *_: None)
        return build.compile_all(job, tuned)

    def kept(self) -> tuple[bool, str]:
        """What the cache has: whether it is tuned, and the program."""
        kernel = build.load("0123456789abcdef", "6.1")
        assert kernel is not None
        return kernel.tuned, kernel.linux.read_text()


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    made = Builder(tmp_path)
    monkeypatch.setattr(build, "run_make", made.make)
    monkeypatch.setattr(Virtual, "run", lambda *given: made.run(*given))
    return made


def test_a_kernel_is_plain_until_it_is_tuned(builder: Builder) -> None:
    assert not builder.build(tuned=False).tuned
    assert builder.done == [("6.1", "plain")]
    assert builder.kept() == (False, "plain")
    assert builder.build(tuned=True).tuned
    assert builder.kept() == (True, tune.USE)


def test_a_kernel_that_computes_otherwise_with_pgo_stays_plain(builder: Builder) -> None:
    assert not builder.build(tuned=True, version=(7, 3)).tuned
    assert builder.done == [("6.1", "plain")]


def test_tuning_counts_trains_and_makes_again_in_a_copy_of_the_tree(builder: Builder) -> None:
    builder.build(tuned=True)
    steps = [what for place, what in builder.done if place == "6.1.tuning"]
    assert builder.done[0] == ("6.1", "plain")
    assert steps == [tune.COUNT, *RUNS, tune.USE]
    assert (builder.work / "linux").read_text() == "plain"
    assert sorted(path.name for path in builder.work.parent.iterdir()) == ["6.1", "6.1.log"]


def test_every_tuning_is_trained_anew(builder: Builder) -> None:
    builder.build(tuned=True)
    first = builder.done
    builder.build(tuned=True)
    assert builder.done == first


def test_a_kernel_that_fails_its_training_stays_plain(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise GuestError("the guest kernel panicked", builder.work, [])

    builder.build(tuned=False)
    monkeypatch.setattr(Virtual, "run", fail)
    with pytest.raises(GuestError, match="panicked"):
        builder.build(tuned=True)
    assert builder.kept() == (False, "plain")
    assert not (builder.cache / "work/6.1.tuning").exists()


def test_runs_that_count_nothing_are_noticed(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Virtual, "run", lambda *_, **__: None)
    with pytest.raises(HourglassError, match="no counts"):
        builder.build(tuned=True)


def test_a_kernel_of_a_cache_from_before_is_taken_for_plain(builder: Builder) -> None:
    builder.build(tuned=True)
    (builder.cache / "kernels/0123456789abcdef/kernel.json").write_text('{"release": "6.1.0", "hz": 1000}')
    assert builder.kept() == (False, tune.USE)


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


@pytest.mark.parametrize(
    ("there", "wanted", "built"), [(False, False, False), (False, True, True), (True, True, False)]
)
def test_a_plain_kernel_is_enough_unless_a_tuned_one_is_asked_for(
    there: bool, wanted: bool, built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\n")
    kept = BuiltKernel("6.1", "6.1.0", "key", Path("linux"), Path("config"), 1000, tuned=there)
    asked: list[object] = []
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store.prebuilt, "kernel", lambda _: None)
    monkeypatch.setattr(store.source, "kept", lambda name: Source(name, "source", tmp_path, packaged=True))
    monkeypatch.setattr(store, "load", lambda *_: kept)
    monkeypatch.setattr(store, "build", lambda *_, **given: asked.append(given["tuned"]))
    store.ensure("6.1", tuned=wanted)
    assert asked == ([True] if built else [])


def test_counts_of_an_earlier_training_do_not_count(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    (builder.work / "old.gcda").touch()
    monkeypatch.setattr(Virtual, "run", lambda *_: None)
    with pytest.raises(HourglassError, match="left no counts"):
        builder.build(tuned=True)
