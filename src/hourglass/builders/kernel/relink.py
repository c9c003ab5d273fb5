# SPDX-License-Identifier: Apache-2.0
"""Compile only the sources of custom modules and link the kernel again.

A complete make visits every folder, which takes two thirds of the CPU time of a build after a change of a module. If
only the text of modules changed since the last complete build, make gets the modules' objects as targets. It then only
links: `-o .` declares the folders up to date. The kernel has the same bytes.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from hourglass.builders.kernel.custom_modules import MODULES_FOLDER
from hourglass.builders.kernel.hooks import Overlay
from hourglass.contract.kernel_module import KernelModule

_COMPLETE = ".hourglass-complete"
"""The digest of all that the tree's last complete build depended on, except the text of modules."""
ARCHIVE = "vmlinux.a"
"""The archive of all objects. It has their names only, so it stays. Linux 5.10 has none, and is not relinked."""

Make = Callable[[list[str]], int]
"""Runs make with these arguments. Returns the number of steps."""


def digest(files: Overlay, key: str, options: str) -> str:
    """Return the digest of an overlay without the text of modules, of the kernel's key without modules (source,
    compiler) and of the options."""
    parts = [key.encode(), options.encode()]
    for name, content in sorted(files.items()):
        is_text = name.startswith(f"{MODULES_FOLDER}/") and not name.endswith("/Makefile")
        parts += [name.encode(), b"" if is_text else content]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def is_possible(work: Path, state: str) -> bool:
    """Return whether only the text of modules changed since the last complete build. `state`: "" for never."""
    stamp = work / _COMPLETE
    return bool(state) and (work / ARCHIVE).is_file() and stamp.is_file() and stamp.read_text() == state


def remember(work: Path, state: str) -> None:
    """Record a complete build."""
    (work / _COMPLETE).write_text(state)


def forget(work: Path) -> None:
    """Forget the last complete build, before another begins."""
    (work / _COMPLETE).unlink(missing_ok=True)


def relink(work: Path, modules: Sequence[KernelModule], make: Make) -> int:
    """Compile the modules and link the kernel. Return the number of make's steps."""
    objects = [
        f"{MODULES_FOLDER}/{module.name}/{module.name}_{index}.o"
        for module in modules
        for index, (name, _) in enumerate(module.files)
        if name.endswith(".c")
    ]
    steps = make(["-o", "prepare", *objects])
    (work / ARCHIVE).touch()
    return steps + make(["-o", ".", "-o", "prepare", "linux"])
