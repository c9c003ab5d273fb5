# SPDX-License-Identifier: Apache-2.0
"""Write the prebuilt set of a wheel, which `builders/prebuilt.py` describes, with licences and the list of its
sources."""

import json
import shutil
from pathlib import Path

import hourglass
from hourglass.builders import agent, cpio, prebuilt, root, tool_packages
from hourglass.builders.kernel import registry
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.recipe import Recipe
from hourglass.contract.kernels import DEFAULT, tools
from hourglass.engine.virtual import train
from hourglass.files import sha256
from release import notices


def make(folder: Path, name: str, *, tuned: bool, sources: bool = True) -> None:
    """Write the set with a kernel. That of the default kernel also has roots and agent. That of a kernel with other
    tools also has roots.

    Without `sources`, for tests, there is no list of the sources, which needs apt.
    """
    kernel = registry.ensure(name, trainer=train if tuned else None)
    copy_kernel(folder / "kernels" / name, kernel)
    description: dict[str, object] = {"version": hourglass.__version__, "commit": prebuilt.commit(), "kernels": [name]}
    description |= {"roots": {}, "tools": []}
    if name == DEFAULT or tools(name) != tools(DEFAULT):
        description |= {
            "roots": write_roots(folder / "root", tools(name)),
            "tools": [f"{tool.name} {tool.version}" for tool in tool_packages.find(tools(name)).packages],
        }
    if name == DEFAULT:
        shutil.copyfile(agent.binary(), folder / "agent")
        (folder / "agent").chmod(0o755)
    notices.write(folder / "licences", name)
    if sources:
        notices.write_sources(folder / "sources.json", name)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    description["files"] = {str(path.relative_to(folder)): sha256(path) for path in paths}
    (folder / prebuilt.FILE).write_text(json.dumps(description, indent=1) + "\n")


def copy_kernel(folder: Path, kernel: BuiltKernel) -> None:
    """Copy a kernel, with its key and that of this package's ingredients."""
    folder.mkdir(parents=True)
    shutil.copyfile(kernel.linux, folder / "linux")
    (folder / "linux").chmod(0o755)
    shutil.copyfile(kernel.config, folder / "config")
    description = {"release": kernel.release, "hz": kernel.hz, "tuned": kernel.tuned, "key": kernel.key}
    description["ingredients"] = Recipe(kernel.name, "", prebuilt.kernel_version(kernel.name)).ingredients_key()
    (folder / "kernel.json").write_text(json.dumps(description, indent=1) + "\n")


def write_roots(folder: Path, release: str) -> dict[str, str]:
    """Write both archives, with the tools of a Debian release, and return their keys."""
    folder.mkdir()
    for kind, wifi in (("plain", False), ("wifi", True)):
        (folder / f"{kind}.cpio").write_bytes(cpio.archive(root.members(wifi, release)))
    return {"plain": root.key(False, release), "wifi": root.key(True, release)}
