# SPDX-License-Identifier: Apache-2.0
"""The kernels that are there, by name, and `ensure`, which builds one only if it must."""

import json
from collections.abc import Sequence
from typing import Any

from hourglass.contract.kernels import KERNELS, SUITES, VARIANT
from hourglass.contract.modules import Module
from hourglass.engine import paths, prebuilt
from hourglass.engine.kernel import source
from hourglass.engine.kernel.build import Report, build, load
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.hooks import tree_version
from hourglass.engine.kernel.recipe import Recipe
from hourglass.errors import InputError


def kernels() -> list[BuiltKernel]:
    """All kernels that have a name, in order of their names: those of the cache, and those that wheels bring."""
    names = paths.cache() / "kernels" / "names"
    found = {path.name: find(path.name) for path in names.glob("[!.]*")}
    found |= {name: brought for name in KERNELS if (brought := prebuilt.kernel(name)) is not None}
    return [kernel for _, kernel in sorted(found.items()) if kernel is not None]


def find(label: str) -> BuiltKernel | None:
    """The kernel last built under a name ("6.1", "6.1+kunit"), however old; None if there is none."""
    record = read(label)
    return load(record["key"], label) if record else None


def known(name: str) -> bool:
    """Whether it is the name of a kernel: of the list, or one given to a build."""
    return name in SUITES or ("/" not in name and read(name) is not None)


def read(label: str) -> dict[str, Any] | None:
    """What names/LABEL says."""
    path = paths.cache() / "kernels" / "names" / label
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def origin(record: dict[str, Any] | None, name: str) -> str:
    """What a kernel was built from, by what its record says: the user's tree, else the kernel of the list."""
    return record["tree"] if record and record["tree"] else name


def ensure(
    name: str,
    progress: Report | None = None,
    variant: str | None = None,
    without: Sequence[str] = (),
    tuned: bool = False,
    modules: Sequence[Module] = (),
) -> BuiltKernel:
    """The kernel of a name: the one that an installed wheel brings, else as sources, kernel/ and the compiler are now;
    builds it if it is not there, or is plain and has to be `tuned`, if it can be.

    A user's tree is taken as it was when `kernel build` last saw it, and read again only if it must be built again.
    """
    plain = variant is None and not without and not modules
    if name in KERNELS and plain and (brought := prebuilt.kernel(name)) is not None:
        return brought
    hooks_out, own = tuple(sorted(without)), tuple(modules)
    record = read(Recipe(name, "", (0, 0), variant, hooks_out, own).label) or read(name)
    if name not in SUITES and record is None:
        named = (kernel.name for kernel in kernels() if VARIANT not in kernel.name)
        known = dict.fromkeys((*SUITES, *named))
        raise InputError(
            "kernel", name, f"one of {', '.join(known)}, or a name given with: hourglass kernel build PATH"
        )
    kept = source.kept(name) if name in SUITES else None
    if kept is not None:
        recipe = Recipe(name, kept.identity, tree_version(kept.tree), variant, hooks_out, own)
    elif record is not None:
        recipe = Recipe(name, record["identity"], tuple(record["version"]), variant, hooks_out, own)
    else:
        return build(name, progress=progress, variant=variant, without=without, tuned=tuned, modules=own)
    there = load(recipe.key(), recipe.label)
    if there is not None and there.tuned >= (tuned and recipe.tunable):
        return there
    return build(origin(record, name), name, progress, variant=variant, without=without, tuned=tuned, modules=own)
