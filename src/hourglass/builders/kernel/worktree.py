# SPDX-License-Identifier: Apache-2.0
"""Manage working trees, in which make runs. Each kernel has one, stored with its objects, so a changed driver compiles
in seconds.

The tree of a packaged kernel has hard links to the pristine tree; for a tree of the user, the changed files are copied.
In both cases a file is written only if its bytes change, and never through a link into a pristine tree.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from hourglass.builders.kernel import hooks
from hourglass.builders.kernel.hooks import Overlay
from hourglass.builders.kernel.source_tree import SourceTree, tree_files

_SOURCE = ".hourglass-source"
_STATE = ".hourglass-copied"
_BUILDING = ".hourglass-building"
_BUILT = ".hourglass-built"


def prepare(work: Path, source: SourceTree, overlay: Overlay) -> None:
    """Set a working tree to `source` with `overlay`, regardless of its earlier content."""
    stamp = work / _SOURCE
    origin = source.identity if source.packaged else f"copy of {source.tree}"
    if not stamp.is_file() or stamp.read_text() != origin:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        if source.packaged:
            link_tree(source.tree, work)
        stamp.write_text(origin)
    if not source.packaged:
        copy_changed(source.tree, work, overlay)
    hooks.lay(overlay, work, source.tree)


def link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if the file system does not allow links."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def link_tree(tree: Path, work: Path, link: Callable[[Path, Path], None] = link_or_copy) -> None:
    """Create all files of a tree with `link`: as hard links, or as copies on another file system."""
    for folder, folders, files in os.walk(tree):
        target = work / Path(folder).relative_to(tree)
        target.mkdir(exist_ok=True)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in files + links:
            link(Path(folder) / name, target / name)


def copy_changed(tree: Path, work: Path, overlay: Overlay) -> None:
    """Copy the files of a user's tree that changed since the last time, and delete the removed ones. `lay` writes the
    hooked files."""
    state = work / _STATE
    previous: dict[str, list[int]] = json.loads(state.read_text()) if state.is_file() else {}
    current: dict[str, list[int]] = {}
    for name in tree_files(tree):
        facts = (tree / name).lstat()
        current[name] = [facts.st_size, facts.st_mtime_ns]
        if previous.get(name) != current[name] and name not in overlay:
            copy_file(tree / name, work / name)
    for name in previous.keys() - current.keys() - overlay.keys():
        (work / name).unlink(missing_ok=True)
    state.write_text(json.dumps(current))


def kconfig(work: Path) -> str:
    """Return sizes and times of a copied tree's Kconfig files, which declare its options."""
    copied: dict[str, list[int]] = json.loads((work / _STATE).read_text())
    return json.dumps({name: facts for name, facts in sorted(copied.items()) if "Kconfig" in Path(name).name})


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, if its bytes differ, or a symbolic link. For make, the copy is new."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
    elif source.is_file() and hooks.write_if_changed(target, source.read_bytes()):
        target.chmod(source.stat().st_mode)


def clone(base: Path, work: Path) -> None:
    """Create a second working tree with the objects of the first. Links into a pristine tree stay links."""

    def copy(source: Path, target: Path) -> None:
        if source.lstat().st_nlink > 1:
            link_or_copy(source, target)
        else:
            shutil.copy2(source, target, follow_symlinks=False)

    fresh = work.with_name(f".{work.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    link_tree(base, fresh, copy)
    shutil.rmtree(work, ignore_errors=True)
    fresh.rename(work)


@contextlib.contextmanager
def copied(work: Path) -> Iterator[Path]:
    """Provide a temporary copy of a working tree with its objects."""
    copy = work.with_name(f"{work.name}.tuning")
    try:
        clone(work, copy)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def begin(work: Path) -> bool:
    """Mark that make runs, after a repair of a killed make's output. Return whether objects of an earlier build
    exist."""
    if interrupted(work):
        repair(work)
    (work / _BUILDING).touch()
    return (work / _BUILT).exists()


def interrupted(work: Path) -> bool:
    """Return whether make was killed in the tree."""
    return (work / _BUILDING).exists()


def finish(work: Path) -> None:
    """Mark that make is done."""
    (work / _BUILDING).unlink()
    (work / _BUILT).touch()


def built(work: Path) -> bool:
    """Return whether the tree has all objects of a finished build."""
    return (work / _BUILT).exists() and not interrupted(work)


def repair(work: Path) -> None:
    """Delete outputs that may be incomplete: make writes a command file after each, so these are newer than theirs."""
    for command in work.rglob(".*.cmd"):
        output = command.with_name(command.name[1:].removesuffix(".cmd"))
        with contextlib.suppress(FileNotFoundError):
            if output.stat().st_mtime_ns > command.stat().st_mtime_ns:
                output.unlink()
    for name in ("linux", "vmlinux", "vmlinux.o"):
        (work / name).unlink(missing_ok=True)
