# SPDX-License-Identifier: Apache-2.0
"""Tuning: make's arguments and trees, and the cached kernel; make and the training runs are replaced."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.builders.kernel import builder as kernel_builder
from hourglass.builders.kernel import registry, tune
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.recipe import Recipe
from hourglass.builders.kernel.source_tree import SourceTree
from hourglass.contract.plan import Plan
from hourglass.errors import GuestError, HourglassError

RUNS = ["run"] * len(list(tune.TUNING.glob("*.json")))


class Builder:
    """An empty cache and a configured tree; calls of make and runs are only recorded, with their trees."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.work = cache / "work" / "6.1"
        self.done: list[tuple[str, str]] = []
        (self.work / "include/config").mkdir(parents=True)
        (self.work / "include/config/kernel.release").write_text("6.1.0-hourglass\n")
        (self.work / ".config").write_text("CONFIG_HZ=1000\n")
        kernel_builder.log_of(self.work).touch()

    def make(self, work: Path, target: str, arguments: list[str], *_: object) -> None:
        flags = next(
            (argument.removeprefix("HOURGLASS_FLAGS=") for argument in arguments if "_FLAGS=" in argument), "plain"
        )
        self.done.append((work.name, flags))
        (work / "linux").write_text(flags)

    def run(self, kernel: BuiltKernel, plan: Plan, directory: Path) -> None:
        assert kernel.linux.read_text() == tune.COUNT
        self.done.append((kernel.linux.parent.name, "run"))
        (kernel.linux.parent / "dev.gcda").touch()

    def build(self, tuned: bool, version: tuple[int, int] = (6, 1)) -> BuiltKernel:
        self.done = []
        job = kernel_builder.Job(self.work, "0123456789abcdef", Recipe("6.1", "source", version), 2, lambda *_: None)
        return kernel_builder.compile_all(job, (lambda *run: self.run(*run)) if tuned else None)

    def cached(self) -> tuple[bool, str]:
        """Return whether the cached kernel is tuned, and its program."""
        kernel = kernel_builder.load("0123456789abcdef", "6.1")
        assert kernel is not None
        return kernel.tuned, kernel.linux.read_text()


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    false_builder = Builder(tmp_path)
    monkeypatch.setattr(kernel_builder, "run_make", false_builder.make)
    return false_builder


def test_a_kernel_is_plain_until_it_is_tuned(builder: Builder) -> None:
    plain = builder.build(tuned=False)
    assert not plain.tuned
    assert builder.done == [("6.1", "plain")]
    assert builder.cached() == (False, "plain")
    assert builder.build(tuned=True).tuned
    assert builder.cached() == (True, tune.USE)
    assert plain.linux.read_text() == "plain"  # another process may be about to start it


def test_a_kernel_with_other_results_with_pgo_stays_plain(builder: Builder) -> None:
    assert not builder.build(tuned=True, version=(7, 3)).tuned
    assert builder.done == [("6.1", "plain")]


def test_tuning_counts_trains_and_rebuilds_in_a_copy_of_the_tree(builder: Builder) -> None:
    builder.build(tuned=True)
    steps = [step for tree, step in builder.done if tree == "6.1.tuning"]
    assert builder.done[0] == ("6.1", "plain")
    assert steps == [tune.COUNT, *RUNS, tune.USE]
    assert (builder.work / "linux").read_text() == "plain"
    assert sorted(path.name for path in builder.work.parent.iterdir()) == ["6.1", "6.1.log"]


def test_every_tuning_is_trained_again(builder: Builder) -> None:
    builder.build(tuned=True)
    first = builder.done
    builder.build(tuned=True)
    assert builder.done == first


def test_a_kernel_that_fails_its_training_stays_plain(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise GuestError("the guest kernel panicked", builder.work, [])

    builder.build(tuned=False)
    monkeypatch.setattr(builder, "run", fail)
    with pytest.raises(GuestError, match="panicked"):
        builder.build(tuned=True)
    assert builder.cached() == (False, "plain")
    assert not (builder.cache / "work/6.1.tuning").exists()


def test_runs_that_count_nothing_are_noticed(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "run", lambda *_: None)
    with pytest.raises(HourglassError, match="no counts"):
        builder.build(tuned=True)


def test_a_kernel_of_an_older_cache_counts_as_plain(builder: Builder) -> None:
    builder.build(tuned=True)
    (builder.cache / "kernels/0123456789abcdef/kernel.json").write_text('{"release": "6.1.0", "hz": 1000}')
    assert builder.cached() == (False, tune.USE)


def test_make_gets_only_objects() -> None:
    objects = tune.make_arguments("")[0].removeprefix("HOURGLASS_TUNED=").split()
    assert "net/core/dev.o" in objects
    assert all(name.endswith(".o") and name.count("%") < 2 for name in objects)
    assert len(objects) == len(set(objects))


def test_the_drivers_of_the_list_exist() -> None:
    folder = "drivers/net/hourglass/"
    for name in tune.make_arguments("")[0].removeprefix("HOURGLASS_TUNED=").split():
        if name.startswith(folder):
            pattern = name.removeprefix(folder).replace("%", "*").replace(".o", ".c")
            assert list((resources.KERNEL / "drivers").glob(pattern)), name


@pytest.mark.parametrize(
    ("cached_tuned", "tuned", "built"), [(False, False, False), (False, True, True), (True, True, False)]
)
def test_a_plain_kernel_is_enough_unless_a_tuned_one_is_required(
    cached_tuned: bool, tuned: bool, built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\n")
    cached = BuiltKernel("6.1", "6.1.0", "key", Path("linux"), Path("config"), 1000, tuned=cached_tuned)
    builds: list[object] = []
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry.prebuilt, "kernel", lambda _: None)
    monkeypatch.setattr(
        registry.source_tree, "cached", lambda name: SourceTree(name, "source", tmp_path, packaged=True)
    )
    monkeypatch.setattr(registry, "load", lambda *_: cached)
    monkeypatch.setattr(registry, "build", lambda *_, **options: builds.append(options["trainer"] is not None))
    registry.ensure("6.1", trainer=(lambda *_: None) if tuned else None)
    assert builds == ([True] if built else [])


def test_counts_of_an_earlier_training_do_not_count(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    (builder.work / "old.gcda").touch()
    monkeypatch.setattr(builder, "run", lambda *_: None)
    with pytest.raises(HourglassError, match="wrote no counts"):
        builder.build(tuned=True)
