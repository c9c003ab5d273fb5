# SPDX-License-Identifier: Apache-2.0
"""Find pristine kernel trees: Debian's linux-source packages, stored in the cache, and trees of the user.

A tree's identity is its package and version, or a hash over its files. Nothing here changes a tree. `python -m
hourglass.builders.kernel.source_tree` fetches the default kernel's.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hourglass import locks
from hourglass.builders.kernel import hooks, obtain
from hourglass.contract.kernels import CHOICES, DEFAULT, SUITES
from hourglass.errors import HourglassError, InputError, program
from hourglass.host import directories, process

PRODUCTS = (".o", ".a", ".ko", ".cmd", ".mod", ".mod.c", ".order", ".symvers", ".su", ".gcno")
PRODUCT_FOLDERS = {".git", "include/config", "include/generated", ".tmp_versions"}


@dataclass(frozen=True)
class SourceTree:
    """A pristine tree. `packaged` trees are Hourglass's and never change; others are the user's. `slot`: the name of
    its working tree, if it is not the kernel's. `spec`: the user's name for it, if it is not its folder
    (`tree_spec.py`)."""

    name: str
    identity: str
    tree: Path
    packaged: bool
    slot: str = ""
    spec: str = ""


def packaged(name: str, say: Callable[[str], None], having: str = "Makefile", update: bool = False) -> SourceTree:
    """Return the tree of a listed kernel; fetch it unless the cache has it with the file `having`. Trees of older
    versions of this package may lack this file. `update`: always fetch it."""
    sources = directories.cache() / "sources"
    with locks.exclusive(
        sources / f"{name}.lock", lambda: say(f"waiting for another process that fetches Linux {name}")
    ):
        if update or not (sources / name / "tree" / having).exists() or cached(name) is None:
            fetch(name, sources, say)
    tree = cached(name)
    assert tree is not None, "fetch() leaves a tree or raises"
    return tree


def cached(name: str) -> SourceTree | None:
    """Return the tree of a packaged kernel if the cache has it."""
    folder = directories.cache() / "sources" / name
    stamp = folder / "identity"
    return SourceTree(name, stamp.read_text().strip(), folder / "tree", packaged=True) if stamp.is_file() else None


def fetch(name: str, sources: Path, say: Callable[[str], None]) -> None:
    """Obtain the source and rename it into place. If that fails, the cache does not change. Raises like `obtain`."""
    fresh, previous = sources / f".{name}.new", cached(name)
    shutil.rmtree(fresh, ignore_errors=True)
    identity = obtain.obtain(name, fresh, say, previous.identity if previous else None)
    shutil.rmtree(fresh / "apt", ignore_errors=True)
    (fresh / "identity").write_text(identity + "\n")
    shutil.rmtree(sources / name, ignore_errors=True)
    fresh.rename(sources / name)


def named(tree: Path, name: str) -> SourceTree:
    """Return a tree of the user. Its identity is a hash over its files without build products."""
    hooks.tree_version(tree)
    if name in SUITES or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        allowed = f"must be letters, digits, '.', '-' and '_'; not one of {CHOICES}"
        raise InputError("kernel build --name", name, allowed)
    return SourceTree(name, f"tree {tree_hash(tree)}", tree.absolute(), packaged=False)


def tree_hash(tree: Path) -> str:
    """Return git's hash of the current files, tracked and new; without git, a SHA-256 over names and contents."""
    if (tree / ".git").exists():
        return _git_hash(tree)
    total = hashlib.sha256()
    for name in tree_files(tree):
        path = tree / name
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        total.update(os.fsencode(name) + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def _git_hash(tree: Path) -> str:
    """Return the tree that a commit of all files would have. The repository does not change: a temporary folder has
    index and objects. Only files whose size or time changed since git's last look are read."""
    common = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    index = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-path", "index").strip())
    with tempfile.TemporaryDirectory(prefix="hourglass-index-") as name:
        scratch = Path(name)
        (scratch / "objects").mkdir()
        if index.is_file():
            shutil.copy2(index, scratch / "index")
        environment = {
            "GIT_INDEX_FILE": str(scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
        }
        git(tree, "add", "--all", environment=environment)
        return git(tree, "write-tree", environment=environment).strip()


def tree_files(tree: Path) -> list[str]:
    """Return the sorted source files of a tree: those that git tracks or would track, otherwise all but build
    products."""
    if (tree / ".git").exists():
        listed = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        return sorted({name for name in listed if name and os.path.lexists(tree / name)})
    sources = []
    for folder, folders, files in os.walk(tree):
        relative = Path(folder).relative_to(tree)
        folders[:] = [name for name in folders if not is_product_folder(relative / name)]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        sources += [str(relative / name) for name in files + links if not is_product(name)]
    return sorted(sources)


def is_product(name: str) -> bool:
    """Return whether a file's name is that of a build product."""
    return (
        name.endswith(PRODUCTS) or name in {"vmlinux", "linux", "System.map"} or name.startswith((".config", ".tmp_"))
    )


def is_product_folder(path: Path) -> bool:
    """Return whether a folder is git's or has build products."""
    return path.name == ".git" or str(path) in PRODUCT_FOLDERS or str(path).endswith("include/generated")


def git(tree: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Return git's output for a tree. git never outlives this process. Raises HourglassError with its message."""
    result = process.output_of(["git", "-C", str(tree), *arguments], os.environ | (environment or {}))
    if result.returncode:
        raise HourglassError(f"git in {tree}: {result.stderr.strip()}")
    return result.stdout


if __name__ == "__main__":
    program(lambda: packaged(DEFAULT, print))
