# SPDX-License-Identifier: Apache-2.0
"""Kernel trees as users name them.

| text | the tree |
|---|---|
| `6.12` | a kernel of the list, as Debian packages it |
| `DIR` | a folder, as its files are now |
| `DIR@REVISION` | a revision of that git repository |
| `6.12+FILE`, `DIR@REVISION+FILE` | the same with patches (`patch -p1`): any number, applied in this order |

A user's repository is only read. The cache has one checkout of each repository. Another revision therefore changes and
compiles only the files that differ.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hourglass import locks
from hourglass.builders.kernel import source_tree, worktree
from hourglass.builders.kernel.source_tree import SourceTree
from hourglass.contract.kernels import CHOICES, SUITES
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.host import directories, process

TOOLS = {"patch": "patch"}
"""The program that applies a patch to a tree, and its package."""

KINDS = f"{CHOICES}, a folder, DIR@REVISION, or one of these with +FILE.patch"


def default_name(spec: str) -> str:
    """Return the default name for a kernel of a tree: `linux.v6.12.a` for `~/linux@v6.12+a.patch`."""
    tree, revision, patches = parse(spec)
    components = [
        Path(tree).resolve().name if Path(tree).is_dir() else tree,
        revision,
        *(patch.stem for patch in patches),
    ]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ".".join(filter(None, components)))


def parse(spec: str) -> tuple[str, str | None, list[Path]]:
    """Return the tree, its revision if given, and the patches. Raises InputError for a missing patch."""
    base, *patches = [spec] if Path(spec).is_dir() else spec.split("+")
    for patch in patches:
        if not Path(patch).is_file():
            raise InputError("patch", patch, f"no such file; a tree is {KINDS}")
    tree, revision = base, None
    if "@" in base and not Path(base).is_dir():
        tree, _, revision = base.rpartition("@")
    return tree, revision, [Path(patch).absolute() for patch in patches]


@contextmanager
def open_tree(spec: str, name: str, report: Callable[[float, str], None]) -> Iterator[SourceTree]:
    """Yield the tree, locked against another checkout in the same folder. Raises InputError."""
    tree, revision, patches = parse(spec)
    folder, packaged = Path(tree), tree in SUITES and revision is None
    if folder.is_dir() and revision is None and not patches:
        report(0.0, "hashing the source tree")
        yield source_tree.named(folder, name)
        return
    if not packaged and (revision is None or not folder.is_dir()):
        allowed = "must be a patch for a listed kernel, or for DIR@REVISION" if folder.is_dir() else KINDS
        raise InputError("kernel", spec, allowed)
    checkout = directories.cache() / "checkouts" / (f"{tree}+" if packaged else slot(folder))
    waiting = "waiting for another process that uses the same checkout"
    with locks.exclusive(checkout.with_name(f"{checkout.name}.lock"), lambda: report(0.0, waiting)):
        report(0.0, f"checking out {spec.partition('+')[0]}")
        if revision is None:
            shutil.rmtree(checkout, ignore_errors=True)
            worktree.link_tree(source_tree.packaged(tree, lambda text: report(0.0, text)).tree, checkout)
            origin = tree
        else:
            origin = f"{folder.absolute()}@{check_out(folder, revision, checkout)}"
        for patch in patches:
            apply(patch, checkout)
        report(0.0, "hashing the source tree")
        source = source_tree.named(checkout, name)
        yield replace(source, slot=checkout.name, spec="+".join([origin, *map(str, patches)]))


def slot(folder: Path) -> str:
    """Return the name of a repository's checkout."""
    resolved = folder.resolve()
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', resolved.name)}-{hashlib.sha256(os.fsencode(resolved)).hexdigest()[:8]}@"


def commit(folder: Path, revision: str) -> str:
    """Return the commit of a revision. Raises InputError."""
    try:
        source_tree.git(folder, "rev-parse", "--git-dir")
    except HourglassError:
        raise InputError("DIR", str(folder), "is not a git repository, so it has no revisions") from None
    try:
        return source_tree.git(
            folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        ).strip()
    except HourglassError:
        raise InputError("kernel", f"{folder}@{revision}", f"git in {folder} lacks this revision") from None


def check_out(folder: Path, revision: str, checkout: Path) -> str:
    """Set the checkout of a repository, which only Hourglass uses, to a revision, and return the commit."""
    commit_hash = commit(folder, revision)
    if not (checkout / ".git").is_dir():
        remove_orphans(checkout.parent)
        shutil.rmtree(checkout, ignore_errors=True)
        clone(folder, checkout, "--no-checkout")
    (checkout / ".git/index.lock").unlink(missing_ok=True)  # of a git that was killed
    source_tree.git(
        checkout, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", "--detach", commit_hash
    )
    source_tree.git(checkout, "clean", "--quiet", "-ffdx")
    return commit_hash


def clone(folder: Path, checkout: Path, option: str) -> None:
    """Clone a repository with shared objects. The checkout appears only when it is complete."""
    fresh = checkout.with_name(f".{checkout.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    checkout.parent.mkdir(parents=True, exist_ok=True)
    source_tree.git(folder, "clone", "--quiet", "--shared", option, str(folder.resolve()), str(fresh))
    fresh.rename(checkout)


def remove_orphans(checkouts: Path) -> None:
    """Remove the checkouts of deleted repositories, whose objects they share."""
    for objects in checkouts.glob("*@/.git/objects/info/alternates"):
        if not Path(objects.read_text().strip()).is_dir():
            shutil.rmtree(objects.parents[3], ignore_errors=True)


def apply(patch: Path, checkout: Path) -> None:
    """Apply a patch to a checkout. Links into a pristine tree are replaced, never written through. Raises InputError,
    or MissingError without the program."""
    if missing := process.missing_tools(TOOLS):
        raise MissingError("patches are applied by patch", f"apt-get install -y {' '.join(missing)}")
    command = ["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-", "-i", str(patch)]
    done = subprocess.run(command, cwd=checkout, text=True, capture_output=True, check=False)
    if done.returncode:
        problem = next((line for line in done.stdout.splitlines() if "FAILED" in line or "can't find" in line), "")
        raise InputError(
            "patch", str(patch), f"does not apply: {problem or done.stdout.strip() or done.stderr.strip()}"
        )
