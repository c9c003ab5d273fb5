# SPDX-License-Identifier: Apache-2.0
"""Use the contents of a released wheel, so that a run needs neither compiler nor package manager.

    built/built.json                the set: version, commit, keys of the roots, SHA-256 of each file
    built/kernels/NAME/             linux, config, kernel.json
    built/root/{plain,wifi}.cpio    the guest's root
    built/agent                     the agent, for native runs

`hourglass-net` contains the default kernel, `hourglass-net-kernel-NAME` another one. It has a root only if its tools
are from another Debian release (`contract/kernels.py`). A checkout contains no set. Files are used in the installed
package; `doctor` verifies them, a run does not."""

import importlib.util
import json
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hourglass
from hourglass import resources
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.hooks import Version
from hourglass.builders.kernel.recipe import Recipe
from hourglass.contract.kernels import KERNELS, tools
from hourglass.errors import MissingError, installing
from hourglass.files import sha256

FILE = "built.json"
FRONT = "hourglass-net"


@dataclass(frozen=True)
class Prebuilt:
    """A set of prebuilt files. `package`: the wheel that contains it. `roots`: keys of "plain" and "wifi"; `tools`: the
    packages in them."""

    package: str
    folder: Path
    version: str
    commit: str
    kernels: list[str]
    files: dict[str, str]
    roots: dict[str, str]
    tools: list[str]

    def kernel(self, name: str) -> BuiltKernel:
        """Return a kernel of this set. Raises MissingError if its ingredients differ from those of this Hourglass."""
        folder = self.folder / "kernels" / name
        described = json.loads((folder / "kernel.json").read_text())
        ingredients = described.pop("ingredients")
        if problem := self.problem(name, ingredients):
            raise MissingError(*problem)
        return BuiltKernel(name=name, linux=folder / "linux", config=folder / "config", **described)

    def problem(self, name: str, ingredients: str) -> tuple[str, str] | None:
        """Return why this set does not match this Hourglass, and the remedy."""
        version = hourglass.__version__
        if self.version != version:
            package, needed = (
                (self.package, version) if _parts(self.version) < _parts(version) else (FRONT, self.version)
            )
            problem = f"{self.package} {self.version} does not match {FRONT} {version}"
            return problem, installing(wheel(package, needed))
        if ingredients != Recipe(name, "", kernel_version(name)).ingredients_key():
            front = f"{FRONT} {version} (commit {commit()})"
            problem = f"{self.package} {version} (commit {self.commit}) has other drivers or hooks than {front}"
            return problem, "install the wheels of one release"
        return None

    def broken(self) -> list[str]:
        """Return the files that are missing or changed."""
        paths = {name: self.folder / name for name in self.files}
        return [name for name, path in paths.items() if not path.is_file() or sha256(path) != self.files[name]]


def wheel(package: str, version: str) -> str:
    """Return the file name of a package's wheel. No index has it."""
    return f"{re.sub(r'[-.]', '_', package)}-{version}-*.whl"


@cache
def of_front() -> Prebuilt | None:
    """Return the set of this package; None in a checkout."""
    return _read(FRONT, resources.DATA / "built")


@cache
def of_kernel(name: str) -> Prebuilt | None:
    """Return the set of the package `hourglass-net-kernel-NAME`, if installed."""
    spec = importlib.util.find_spec(f"hourglass_kernel_{name.replace('.', '_')}")
    if spec is None or spec.origin is None:
        return None
    return _read(f"hourglass-net-kernel-{name}", Path(spec.origin).parent / "built")


def _read(package: str, folder: Path) -> Prebuilt | None:
    described = folder / FILE
    return Prebuilt(package, folder, **json.loads(described.read_text())) if described.is_file() else None


def with_kernel(name: str) -> Prebuilt | None:
    """Return the set with a kernel. A checkout can build kernels, so it ignores sets that do not match."""
    if (front := of_front()) is not None and name in front.kernels:
        return front
    kernel_set = of_kernel(name)
    if kernel_set is not None and front is None:
        try:
            kernel_set.kernel(name)
        except MissingError:
            return None
    return kernel_set


def kernel(name: str) -> BuiltKernel | None:
    """Return the prebuilt kernel of a name, if any. Raises MissingError if it does not match this Hourglass."""
    kernel_set = with_kernel(name)
    return None if kernel_set is None else kernel_set.kernel(name)


def agent() -> Path | None:
    """Return the prebuilt agent, if any."""
    front = of_front()
    return None if front is None else front.folder / "agent"


def root(wifi: bool, release: str) -> tuple[Path, str] | None:
    """Return the prebuilt root with the tools of a Debian release, and its key, if any. A checkout builds its own."""
    if of_front() is None:
        return None
    kind, sets = "wifi" if wifi else "plain", (of_front(), *map(of_kernel, KERNELS))
    matching = (item for item in sets if item is not None and item.roots and tools(item.kernels[0]) == release)
    return next(((item.folder / "root" / f"{kind}.cpio", item.roots[kind]) for item in matching), None)


def commit() -> str:
    """Return this package's commit, with "+changes" for a changed checkout; "" if unknown.

    The changelog is ignored: it contains digests of builds of the commit before it."""
    if (front := of_front()) is not None:
        return front.commit
    checkout = resources.DATA.parents[2]
    if not (checkout / ".git").exists():
        return ""
    last, changes = ["log", "-1", "--abbrev=12", "--format=%h"], ["status", "--porcelain", "--untracked-files=no"]
    try:
        return _git(checkout, *last) + ("+changes" if _git(checkout, *changes) else "")
    except OSError:
        return ""


def _git(checkout: Path, *arguments: str) -> str:
    """Return git's output about all files except the changelog."""
    command = ["git", *arguments, "--", ".", ":!CHANGELOG.md"]
    return subprocess.run(command, cwd=checkout, text=True, capture_output=True, check=False).stdout.strip()


def kernel_version(name: str) -> Version:
    """Return (6, 1) for "6.1"."""
    major, minor = map(int, name.split("."))
    return major, minor


def _parts(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
