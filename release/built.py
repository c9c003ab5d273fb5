# SPDX-License-Identifier: Apache-2.0
"""The prebuilt set of a wheel, as `engine/prebuilt.py` describes it, with licences and the list of its sources."""

import json
import shutil
from pathlib import Path

import hourglass
from hourglass.contract.kernels import DEFAULT, tools
from hourglass.engine import agent, cpio, prebuilt, root, tree
from hourglass.engine.kernel import store
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.recipe import Recipe
from hourglass.files import sha256
from release import notices


def make(folder: Path, name: str, *, tuned: bool, sources: bool = True) -> None:
    """Writes the set that brings the kernel of a name; that of the default kernel has roots and agent too, that of one
    whose tools are others than the default's has roots.

    Without `sources` the list of the sources, which asks apt, is left out: for tests.
    """
    kernel = store.ensure(name, tuned=tuned)
    keep_kernel(folder / "kernels" / name, kernel)
    described: dict[str, object] = {"version": hourglass.__version__, "commit": prebuilt.commit(), "kernels": [name]}
    described |= {"roots": {}, "tools": []}
    if name == DEFAULT or tools(name) != tools(DEFAULT):
        described |= {
            "roots": keep_roots(folder / "root", tools(name)),
            "tools": [f"{one.name} {one.version}" for one in tree.find(tools(name)).packages],
        }
    if name == DEFAULT:
        shutil.copyfile(agent.binary(), folder / "agent")
        (folder / "agent").chmod(0o755)
    notices.write(folder / "licences", name)
    if sources:
        notices.write_sources(folder / "sources.json", name)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    described["files"] = {str(path.relative_to(folder)): sha256(path) for path in paths}
    (folder / prebuilt.FILE).write_text(json.dumps(described, indent=1) + "\n")


def keep_kernel(folder: Path, kernel: BuiltKernel) -> None:
    """Copies a kernel, with its key and that of what this package put into it."""
    folder.mkdir(parents=True)
    shutil.copyfile(kernel.linux, folder / "linux")
    (folder / "linux").chmod(0o755)
    shutil.copyfile(kernel.config, folder / "config")
    described = {"release": kernel.release, "hz": kernel.hz, "tuned": kernel.tuned, "key": kernel.key}
    described["ingredients"] = Recipe(kernel.name, "", prebuilt.kernel_version(kernel.name)).ingredients_key()
    (folder / "kernel.json").write_text(json.dumps(described, indent=1) + "\n")


def keep_roots(folder: Path, release: str) -> dict[str, str]:
    """Writes both archives, with the tools of a Debian release; gives their keys."""
    folder.mkdir()
    for kind, wifi in (("plain", False), ("wifi", True)):
        (folder / f"{kind}.cpio").write_bytes(cpio.archive(root.members(wifi, release)))
    return {"plain": root.key(False, release), "wifi": root.key(True, release)}
