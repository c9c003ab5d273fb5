# SPDX-License-Identifier: Apache-2.0
"""List the existing kernels by name; `ensure` builds one only if it is missing."""

import glob
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hourglass import locks
from hourglass.builders import prebuilt
from hourglass.builders.kernel import config, source_tree, tree_spec
from hourglass.builders.kernel.builder import Report, build, load
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.hooks import tree_version
from hourglass.builders.kernel.recipe import Recipe
from hourglass.builders.kernel.tune import Trainer
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.kernels import KERNELS, SUITES, VARIANT
from hourglass.errors import InputError, closest
from hourglass.host import directories


def kernels() -> list[BuiltKernel]:
    """Return all kernels with a name, sorted by name: those of the cache, and those of installed wheels."""
    names = directories.cache() / "kernels" / "names"
    by_name = {path.name: find(path.name) for path in names.glob("[!.]*")}
    by_name |= {name: released for name in KERNELS if (released := prebuilt.kernel(name)) is not None}
    return [kernel for _, kernel in sorted(by_name.items()) if kernel is not None]


def find(label: str) -> BuiltKernel | None:
    """Return the last kernel built under a name ("6.1", "6.1+kunit"), however old; None if none was."""
    record = read(label)
    return load(record["key"], label) if record else None


def is_kernel(name: str) -> bool:
    """Return whether a kernel has this name: one of the list, one built under it, or a variant of these."""
    name, _ = config.kernel_and_variant(name)
    return name in SUITES or ("/" not in name and read(name) is not None)


def read(label: str) -> dict[str, Any] | None:
    """Return the record names/LABEL."""
    path = directories.cache() / "kernels" / "names" / label
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def origin(record: dict[str, Any] | None, name: str) -> str:
    """Return the source of a kernel by its record: the user's tree, otherwise the kernel of the list."""
    return record["tree"] if record and record["tree"] else name


def ensure(
    name: str,
    progress: Report | None = None,
    variant: str | None = None,
    without: Sequence[str] = (),
    trainer: Trainer | None = None,
    modules: Sequence[KernelModule] = (),
) -> BuiltKernel:
    """Return the kernel of a name: the one of an installed wheel, otherwise the one for the current sources, kernel/
    and compiler. Build it if it is missing, or if it is plain, could be tuned and has a `trainer`.

    A tree of the user is taken as the last `kernel build` saw it. It is read again only for a new build.
    """
    name, variant = config.kernel_and_variant(name) if variant is None else (name, variant)
    plain = variant is None and not without and not modules
    if name in KERNELS and plain and (released := prebuilt.kernel(name)) is not None:
        return released
    recipe = _recipe(name, variant, tuple(sorted(without)), tuple(modules))
    if recipe is None:
        return build(name, progress=progress, variant=variant, without=without, trainer=trainer, modules=modules)
    cached = load(recipe.key(), recipe.label)
    if cached is not None and cached.tuned >= (trainer is not None and recipe.tunable):
        return cached
    record = read(recipe.label) or read(name)
    return build(
        origin(record, name), name, progress, variant=variant, without=without, trainer=trainer, modules=modules
    )


def current(name: str) -> BuiltKernel | None:
    """Return the plain kernel of a name that a run would use now; None if it would build it first."""
    if name in KERNELS and (released := prebuilt.kernel(name)) is not None:
        return released
    recipe = _recipe(name, None, (), ())
    return None if recipe is None else load(recipe.key(), recipe.label)


def _recipe(
    name: str, variant: str | None, without: tuple[str, ...], modules: tuple[KernelModule, ...]
) -> Recipe | None:
    """Return the recipe of a kernel for its cached source or its last build; None if it has neither."""
    record = read(Recipe(name, "", (0, 0), variant, without, modules).label) or read(name)
    if name not in SUITES and record is None:
        built_names = (kernel.name for kernel in kernels() if VARIANT not in kernel.name)
        names = dict.fromkeys((*SUITES, *built_names))
        raise InputError(
            "kernel", name, f"must be one of {', '.join(names)}, or a name given with: hourglass kernel build PATH"
        )
    source = source_tree.cached(name) if name in SUITES else None
    if source is not None:
        return Recipe(name, source.identity, tree_version(source.tree), variant, without, modules)
    if record is not None:
        return Recipe(name, record["identity"], tuple(record["version"]), variant, without, modules)
    return None


def ensure_tree(spec: str, progress: Report) -> BuiltKernel:
    """Return a kernel: a listed one, one that was built under this name, or a tree, built under its default name."""
    if is_kernel(spec):
        return ensure(spec, progress=progress)
    return build(spec, tree_spec.default_name(spec), progress=progress)


def remove(name: str) -> int:
    """Remove a kernel, its variants and their objects from the cache. Return the bytes that this frees."""
    if read(name) is None:
        built_names = sorted(kernel.name for kernel in kernels() if VARIANT not in kernel.name)
        listed = ", ".join(built_names) or "none"
        raise InputError(
            "NAME", name, f"no kernel was built under this name. {closest(name, built_names)}Built: {listed}"
        )
    cache = directories.cache()
    names, folders = cache / "kernels" / "names", [*(cache / "work").glob(f"{glob.escape(name)}{VARIANT}*")]
    with locks.exclusive(cache / "work" / f"{name}.lock"):
        labels = {path.name: json.loads(path.read_text())["key"] for path in names.glob("[!.]*")}
        removed = {label for label in labels if label == name or label.startswith(f"{name}{VARIANT}")}
        used = {key for label, key in labels.items() if label not in removed}
        folders += [
            cache / "work" / name,
            *(cache / "kernels" / key for key in {labels[label] for label in removed} - used),
        ]
        freed = sum(_size(folder) for folder in folders if folder.is_dir())
        for label in removed:
            (names / label).unlink()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    return freed


def _size(folder: Path) -> int:
    """Return the bytes of a folder's files that no other folder shares."""
    facts = (path.lstat() for path in folder.rglob("*"))
    return sum(fact.st_blocks * 512 for fact in facts if fact.st_nlink == 1)
