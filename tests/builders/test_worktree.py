# SPDX-License-Identifier: Apache-2.0
"""Working trees: they follow their source, write only changed files and never write into a pristine tree."""

import os
from pathlib import Path

import pytest

from hourglass.builders.kernel import source_tree, worktree
from hourglass.builders.kernel.source_tree import SourceTree

OLD = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    """Return a tree of two files with old times."""
    tree = tmp_path / "pristine"
    (tree / "net").mkdir(parents=True)
    for name in ("Makefile", "net/a.c"):
        (tree / name).write_text(name)
        os.utime(tree / name, OLD)
    return tree


def source_tree_of(tree: Path, packaged: bool) -> SourceTree:
    return SourceTree("n", "identity", tree, packaged)


@pytest.mark.parametrize("packaged", [True, False])
def test_an_overlay_is_written_changed_and_removed(pristine: Path, tmp_path: Path, packaged: bool) -> None:
    work = tmp_path / "work"
    origin = source_tree_of(pristine, packaged)
    worktree.prepare(work, origin, {"net/a.c": b"hooked", "net/new.c": b"new"})
    assert (work / "net/a.c").read_text() == "hooked"
    assert (pristine / "net/a.c").read_text() == "net/a.c"
    assert (work / "Makefile").read_text() == "Makefile"
    worktree.prepare(work, origin, {"net/other.c": b"other"})
    assert (work / "net/a.c").read_text() == "net/a.c"
    assert not (work / "net/new.c").exists()
    assert (work / "net/other.c").read_text() == "other"
    assert not (pristine / "net/other.c").exists()


@pytest.mark.parametrize("packaged", [True, False])
def test_unchanged_files_are_not_written(pristine: Path, tmp_path: Path, packaged: bool) -> None:
    work = tmp_path / "work"
    overlay = {"net/a.c": b"hooked"}
    worktree.prepare(work, source_tree_of(pristine, packaged), overlay)
    before = {path: path.stat().st_mtime_ns for path in (work / "net/a.c", work / "Makefile")}
    worktree.prepare(work, source_tree_of(pristine, packaged), overlay)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_changes_of_a_user_s_tree_are_copied_with_new_times(pristine: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    worktree.prepare(work, source_tree_of(pristine, False), {})
    (work / "net/a.o").write_text("an object")
    (pristine / "net/a.c").write_text("changed")
    os.utime(pristine / "net/a.c", (OLD[0] - 5, OLD[1] - 5))
    (pristine / "Makefile").unlink()
    worktree.prepare(work, source_tree_of(pristine, False), {})
    assert (work / "net/a.c").read_text() == "changed"
    assert (work / "net/a.c").stat().st_mtime > OLD[1]
    assert not (work / "Makefile").exists()
    assert (work / "net/a.o").exists()


def test_the_last_outputs_of_a_killed_build_are_built_again(pristine: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    worktree.prepare(work, source_tree_of(pristine, True), {})
    assert not worktree.begin(work)
    worktree.finish(work)
    assert worktree.built(work)
    for name, object_time, command_time in (("whole", 10, 11), ("half", 21, 11)):
        for path, when in ((work / f"net/{name}.o", object_time), (work / f"net/.{name}.o.cmd", command_time)):
            path.write_text("")
            os.utime(path, (when, when))
    worktree.begin(work)
    assert not worktree.built(work)
    worktree.begin(work)
    assert (work / "net/whole.o").exists()
    assert not (work / "net/half.o").exists()


def test_a_clone_has_the_objects_and_is_independent(pristine: Path, tmp_path: Path) -> None:
    base, work = tmp_path / "base", tmp_path / "work"
    worktree.prepare(base, source_tree_of(pristine, True), {"net/a.c": b"hooked"})
    (base / "net/a.o").write_text("object")
    os.utime(base / "net/a.o", OLD)
    worktree.clone(base, work)
    assert (work / "net/a.o").stat().st_mtime == OLD[1]
    (work / "net/a.o").write_text("of the variant")
    worktree.prepare(work, source_tree_of(pristine, True), {})
    assert (base / "net/a.o").read_text() == "object"
    assert (base / "net/a.c").read_text() == "hooked"
    assert (work / "net/a.c").read_text() == "net/a.c"


def test_the_hash_of_a_tree_covers_sources_alone(pristine: Path) -> None:
    before = source_tree.tree_hash(pristine)
    for product in ("net/a.o", ".config", "vmlinux", "net/.a.o.cmd"):
        (pristine / product).write_text("made")
    assert source_tree.tree_hash(pristine) == before
    (pristine / "net/a.c").write_text("changed")
    assert source_tree.tree_hash(pristine) != before
