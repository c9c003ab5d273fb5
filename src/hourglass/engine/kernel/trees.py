# SPDX-License-Identifier: Apache-2.0
"""Kernel trees as users name them.

| words | the tree |
|---|---|
| `6.12` | a kernel of the list, as Debian packages it |
| `DIR` | a folder, as its files are now |
| `DIR@REVISION` | a revision of that git repository |
| `6.12+FILE`, `DIR@REVISION+FILE` | the same with a patch (`patch -p1`); as many as wanted, in this order |

A repository of the user's is read, never written to: revisions are checked out in the cache, in one place for each
repository, so that going from one revision to another touches, and compiles, only what differs.
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
from hourglass.contract.kernels import CHOICES, SUITES
from hourglass.engine import paths
from hourglass.engine.kernel import source, worktree
from hourglass.engine.kernel.source import Source
from hourglass.errors import HourglassError, InputError

KINDS = f"{CHOICES}, a folder, DIR@REVISION, or one of these with +FILE.patch"


def names(words: str) -> str:
    """What a kernel of a tree is called that was given no name: of `~/linux@v6.12+a.patch` `linux.v6.12.a`."""
    tree, revision, patches = parts(words)
    told = [Path(tree).resolve().name if Path(tree).is_dir() else tree, revision, *(one.stem for one in patches)]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ".".join(filter(None, told)))


def parts(words: str) -> tuple[str, str | None, list[Path]]:
    """The tree, its revision if one is said, the patches on it. Raises InputError for a patch that is not there."""
    base, *patches = [words] if Path(words).is_dir() else words.split("+")
    for one in patches:
        if not Path(one).is_file():
            raise InputError("patch", one, f"there is no such file; a tree is {KINDS}")
    tree, revision = base, None
    if "@" in base and not Path(base).is_dir():
        tree, _, revision = base.rpartition("@")
    return tree, revision, [Path(one).absolute() for one in patches]


@contextmanager
def given(words: str, name: str, report: Callable[[float, str], None]) -> Iterator[Source]:
    """The tree, for as long as nothing else is checked out in its place. Raises InputError."""
    tree, revision, patches = parts(words)
    folder, packaged = Path(tree), tree in SUITES and revision is None
    if folder.is_dir() and revision is None and not patches:
        report(0.0, "hashing the source tree")
        yield source.named(folder, name)
        return
    if not packaged and (revision is None or not folder.is_dir()):
        allowed = "a patch is for a kernel of the list, or for DIR@REVISION" if folder.is_dir() else KINDS
        raise InputError("kernel", words, allowed)
    place = paths.cache() / "checkouts" / (f"{tree}+" if packaged else slot(folder))
    waiting = "waiting for another process that uses the same checkout"
    with locks.held(place.with_name(f"{place.name}.lock"), lambda: report(0.0, waiting)):
        report(0.0, f"checking out {words.partition('+')[0]}")
        if revision is None:
            shutil.rmtree(place, ignore_errors=True)
            worktree.link_tree(source.packaged(tree, lambda text: report(0.0, text)).tree, place)
            asked = tree
        else:
            asked = f"{folder.absolute()}@{check_out(folder, revision, place)}"
        for one in patches:
            apply(one, place)
        report(0.0, "hashing the source tree")
        made = source.named(place, name)
        yield replace(made, slot=place.name, asked="+".join([asked, *map(str, patches)]))


def slot(folder: Path) -> str:
    """The place of a repository's checkout."""
    whole = folder.resolve()
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', whole.name)}-{hashlib.sha256(os.fsencode(whole)).hexdigest()[:8]}@"


def commit(folder: Path, revision: str) -> str:
    """The commit that a revision stands for. Raises InputError."""
    try:
        return source.git(
            folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        ).strip()
    except HourglassError:
        raise InputError("kernel", f"{folder}@{revision}", f"git in {folder} knows no such revision") from None


def check_out(folder: Path, revision: str, place: Path) -> str:
    """Brings the checkout of a repository, which is ours alone, to a revision, and gives its commit."""
    found = commit(folder, revision)
    if not (place / ".git").is_dir():
        forget_the_gone(place.parent)
        shutil.rmtree(place, ignore_errors=True)
        clone(folder, place, "--no-checkout")
    (place / ".git/index.lock").unlink(missing_ok=True)  # of a git that was killed
    source.git(place, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", "--detach", found)
    source.git(place, "clean", "--quiet", "-ffdx")
    return found


def clone(folder: Path, place: Path, how: str) -> None:
    """A repository of ours that shares a repository's objects, complete or not there."""
    fresh = place.with_name(f".{place.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    source.git(folder, "clone", "--quiet", "--shared", how, str(folder.resolve()), str(fresh))
    fresh.rename(place)


def forget_the_gone(checkouts: Path) -> None:
    """Removes the checkouts whose repository is not there any more: they share its objects."""
    for objects in checkouts.glob("*@/.git/objects/info/alternates"):
        if not Path(objects.read_text().strip()).is_dir():
            shutil.rmtree(objects.parents[3], ignore_errors=True)


def apply(patch: Path, place: Path) -> None:
    """Patches a checkout. Links into a pristine tree are replaced, not written through. Raises InputError."""
    command = ["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-", "-i", str(patch)]
    done = subprocess.run(command, cwd=place, text=True, capture_output=True, check=False)
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "FAILED" in line or "can't find" in line), "")
        raise InputError("patch", str(patch), f"does not apply: {said or done.stdout.strip() or done.stderr.strip()}")
