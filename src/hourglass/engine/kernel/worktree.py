# SPDX-License-Identifier: Apache-2.0
"""Working trees: where make runs. One per kernel, kept with its objects, so that a changed driver is seconds away.

A tree of ours is hard-linked from its pristine tree; of a user's tree the changed files are copied. Either way a file
is touched only when its bytes change, and no write ever goes through a link into a pristine tree.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from hourglass.engine.kernel import hooks
from hourglass.engine.kernel.hooks import Overlay
from hourglass.engine.kernel.source import Source, tree_files

_SOURCE = ".hourglass-source"
_STATE = ".hourglass-copied"
_BUILDING = ".hourglass-building"
_BUILT = ".hourglass-built"


def prepare(work: Path, source: Source, overlay: Overlay) -> None:
    """Brings a working tree to `source` with `overlay` over it, whatever it held before."""
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
    """One file, as a hard link if the file system allows."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def link_tree(tree: Path, work: Path, one: Callable[[Path, Path], None] = link_or_copy) -> None:
    """All files of a tree, each by `one`: as hard links (copies, across file systems)."""
    for folder, folders, files in os.walk(tree):
        target = work / Path(folder).relative_to(tree)
        target.mkdir(exist_ok=True)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in files + links:
            one(Path(folder) / name, target / name)


def copy_changed(tree: Path, work: Path, overlay: Overlay) -> None:
    """Copies what changed in a user's tree since the last time, removes what went; hooked files are left to `lay`."""
    state = work / _STATE
    before: dict[str, list[int]] = json.loads(state.read_text()) if state.is_file() else {}
    now: dict[str, list[int]] = {}
    for name in tree_files(tree):
        facts = (tree / name).lstat()
        now[name] = [facts.st_size, facts.st_mtime_ns]
        if before.get(name) != now[name] and name not in overlay:
            copy_one(tree / name, work / name)
    for name in before.keys() - now.keys() - overlay.keys():
        (work / name).unlink(missing_ok=True)
    state.write_text(json.dumps(now))


def kconfig(work: Path) -> str:
    """What of a copied user's tree decides which options it knows: its Kconfig files, by size and time."""
    copied: dict[str, list[int]] = json.loads((work / _STATE).read_text())
    return json.dumps({name: facts for name, facts in sorted(copied.items()) if "Kconfig" in Path(name).name})


def copy_one(source: Path, target: Path) -> None:
    """One file or symbolic link; a file only if its bytes differ. The copy is new to make."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
    elif source.is_file() and hooks.write_if_changed(target, source.read_bytes()):
        target.chmod(source.stat().st_mode)


def clone(base: Path, work: Path) -> None:
    """A second working tree with the first one's objects. Files that are links into a pristine tree stay links."""

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
    """A copy of a working tree with its objects, for as long as it is used."""
    copy = work.with_name(f"{work.name}.tuning")
    try:
        clone(work, copy)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def begin(work: Path) -> bool:
    """Marks that make runs; first repairs what a killed make left. Whether objects of an earlier build are there."""
    marker = work / _BUILDING
    if marker.exists():
        repair(work)
    marker.touch()
    return (work / _BUILT).exists()


def finish(work: Path) -> None:
    """Marks that make is done."""
    (work / _BUILDING).unlink()
    (work / _BUILT).touch()


def built(work: Path) -> bool:
    """Whether the tree holds all objects of a finished build."""
    return (work / _BUILT).exists() and not (work / _BUILDING).exists()


def repair(work: Path) -> None:
    """Removes outputs that may be half written: those newer than the command file make writes after each of them."""
    for command in work.rglob(".*.cmd"):
        output = command.with_name(command.name[1:].removesuffix(".cmd"))
        with contextlib.suppress(FileNotFoundError):
            if output.stat().st_mtime_ns > command.stat().st_mtime_ns:
                output.unlink()
    for name in ("linux", "vmlinux", "vmlinux.o"):
        (work / name).unlink(missing_ok=True)
