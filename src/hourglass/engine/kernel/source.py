# SPDX-License-Identifier: Apache-2.0
"""Pristine kernel trees: Debian's linux-source packages, kept in the cache, and trees the user names.

A tree is told from others by its identity: package and version, or a hash over its files. Nothing here changes a tree.
`python -m hourglass.engine.kernel.source` fetches the default kernel's.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hourglass import locks
from hourglass.contract.kernels import CHOICES, DEFAULT, SUITES
from hourglass.engine import paths, process
from hourglass.engine.kernel import hooks, obtain
from hourglass.errors import HourglassError, InputError, program

PRODUCTS = (".o", ".a", ".ko", ".cmd", ".mod", ".mod.c", ".order", ".symvers", ".su", ".gcno")
PRODUCT_FOLDERS = {".git", "include/config", "include/generated", ".tmp_versions"}


@dataclass(frozen=True)
class Source:
    """A pristine tree. `packaged` trees are ours and never change; other trees are the user's. `slot`: what its working
    tree is called, if not as the kernel; `asked`: the words for it, if not its folder (`trees.py`)."""

    name: str
    identity: str
    tree: Path
    packaged: bool
    slot: str = ""
    asked: str = ""


def packaged(name: str, say: Callable[[str], None], having: str = "Makefile", update: bool = False) -> Source:
    """The tree of a kernel of the list, fetched into the cache unless it is there with the file `having`: what an older
    version of this package unpacked may lack it. `update`: whatever is there."""
    sources = paths.cache() / "sources"
    with locks.held(sources / f"{name}.lock", lambda: say(f"waiting for another process that fetches Linux {name}")):
        if update or not (sources / name / "tree" / having).exists() or kept(name) is None:
            fetch(name, sources, say)
    found = kept(name)
    assert found is not None, "fetch() leaves a tree or raises"
    return found


def kept(name: str) -> Source | None:
    """The tree of a packaged kernel if the cache has it."""
    folder = paths.cache() / "sources" / name
    stamp = folder / "identity"
    return Source(name, stamp.read_text().strip(), folder / "tree", packaged=True) if stamp.is_file() else None


def fetch(name: str, sources: Path, say: Callable[[str], None]) -> None:
    """Obtains the source and renames it into place; what the cache has stays if that fails. Raises as `obtain`."""
    fresh, there = sources / f".{name}.new", kept(name)
    shutil.rmtree(fresh, ignore_errors=True)
    identity = obtain.obtain(name, fresh, say, there.identity if there else None)
    shutil.rmtree(fresh / "apt", ignore_errors=True)
    (fresh / "identity").write_text(identity + "\n")
    shutil.rmtree(sources / name, ignore_errors=True)
    fresh.rename(sources / name)


def named(tree: Path, name: str) -> Source:
    """A tree of the user's. Its identity is a hash over its files, build products left out."""
    hooks.tree_version(tree)
    if name in SUITES or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        taken = f"letters, digits, '.', '-' and '_'; not one of {CHOICES}"
        raise InputError("kernel build --name", name, taken)
    return Source(name, f"tree {tree_hash(tree)}", tree.absolute(), packaged=False)


def tree_hash(tree: Path) -> str:
    """Git's hash of the files as they are, tracked and new; without git, a SHA-256 over names and contents."""
    if (tree / ".git").exists():
        return _git_hash(tree)
    total = hashlib.sha256()
    for name in tree_files(tree):
        path = tree / name
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        total.update(os.fsencode(name) + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def _git_hash(tree: Path) -> str:
    """What a commit of all files would have for its tree, reckoned without writing to the repository: an index and
    objects of its own. Only files whose size or time changed since git last looked are read."""
    common = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    index = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-path", "index").strip())
    with tempfile.TemporaryDirectory(prefix="hourglass-index-") as name:
        own = Path(name)
        (own / "objects").mkdir()
        if index.is_file():
            shutil.copy2(index, own / "index")
        aside = {
            "GIT_INDEX_FILE": str(own / "index"),
            "GIT_OBJECT_DIRECTORY": str(own / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
        }
        git(tree, "add", "--all", environment=aside)
        return git(tree, "write-tree", environment=aside).strip()


def tree_files(tree: Path) -> list[str]:
    """The source files of a tree, sorted: what git tracks or would track, else all but build products."""
    if (tree / ".git").exists():
        listed = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        return sorted({name for name in listed if name and os.path.lexists(tree / name)})
    found = []
    for folder, folders, files in os.walk(tree):
        inside = Path(folder).relative_to(tree)
        folders[:] = [name for name in folders if not is_product_folder(inside / name)]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found += [str(inside / name) for name in files + links if not is_product(name)]
    return sorted(found)


def is_product(name: str) -> bool:
    """Whether a file's name says that a build made it."""
    return (
        name.endswith(PRODUCTS) or name in {"vmlinux", "linux", "System.map"} or name.startswith((".config", ".tmp_"))
    )


def is_product_folder(path: Path) -> bool:
    """Whether a folder is git's or holds what a build made."""
    return path.name == ".git" or str(path) in PRODUCT_FOLDERS or str(path).endswith("include/generated")


def git(tree: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """What git says about a tree; it never outlives us. Raises HourglassError with its words."""
    result = process.said(["git", "-C", str(tree), *arguments], os.environ | (environment or {}))
    if result.returncode:
        raise HourglassError(f"git in {tree}: {result.stderr.strip()}")
    return result.stdout


if __name__ == "__main__":
    program(lambda: packaged(DEFAULT, print))
