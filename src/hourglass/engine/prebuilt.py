# SPDX-License-Identifier: Apache-2.0
"""What a released wheel brings, so that a run compiles nothing and asks neither compiler nor package manager.

    built/built.json                what the set is: version, commit, keys of the roots, SHA-256 of each file
    built/kernels/NAME/             linux, config, kernel.json
    built/root/{plain,wifi}.cpio    the guest's root
    built/agent                     the agent, for native runs

`hourglass` brings the default kernel, `hourglass-kernel-NAME` another, with a root only if its tools are of another
Debian release (`contract/kernels.py`); a checkout brings nothing. Files
are used where they lie; `doctor` verifies them, a run does not.
"""

import importlib.util
import json
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hourglass
from hourglass import resources
from hourglass.contract.kernels import KERNELS, tools
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.hooks import Version
from hourglass.engine.kernel.recipe import Recipe
from hourglass.errors import MissingError, installing
from hourglass.files import sha256

FILE = "built.json"
FRONT = "hourglass"


@dataclass(frozen=True)
class Prebuilt:
    """A set. `package`: which wheel brings it. `roots`: key by "plain" and "wifi"; `tools`: the packages in them."""

    package: str
    folder: Path
    version: str
    commit: str
    kernels: list[str]
    files: dict[str, str]
    roots: dict[str, str]
    tools: list[str]

    def kernel(self, name: str) -> BuiltKernel:
        """A kernel of this set. Raises MissingError when it is not made of what this hourglass is made of."""
        folder = self.folder / "kernels" / name
        described = json.loads((folder / "kernel.json").read_text())
        ingredients = described.pop("ingredients")
        if problem := self.problem(name, ingredients):
            raise MissingError(*problem)
        return BuiltKernel(name=name, linux=folder / "linux", config=folder / "config", **described)

    def problem(self, name: str, ingredients: str) -> tuple[str, str] | None:
        """Why this set does not go with this hourglass, and what helps."""
        here = hourglass.__version__
        if self.version != here:
            older, wanted = (self.package, here) if _parts(self.version) < _parts(here) else (FRONT, self.version)
            what = f"{self.package} {self.version} does not go with {FRONT} {here}"
            return what, installing(wheel(older, wanted))
        if ingredients != Recipe(name, "", kernel_version(name)).ingredients_key():
            ours = f"{FRONT} {here} (commit {commit()})"
            what = f"{self.package} {here} (commit {self.commit}) has a kernel of other drivers or hooks than {ours}"
            return what, "install both from the wheels of one release"
        return None

    def broken(self) -> list[str]:
        """The files that are missing, or not those that were packed."""
        there = {name: self.folder / name for name in self.files}
        return [name for name, path in there.items() if not path.is_file() or sha256(path) != self.files[name]]


def wheel(package: str, version: str) -> str:
    """A package's file: no index has it."""
    return f"{re.sub(r'[-.]', '_', package)}-{version}-*.whl"


@cache
def of_front() -> Prebuilt | None:
    """The set of this package; None in a checkout."""
    return _read(FRONT, resources.DATA / "built")


@cache
def of_kernel(name: str) -> Prebuilt | None:
    """The set of the package `hourglass-kernel-NAME`, if it is installed."""
    spec = importlib.util.find_spec(f"hourglass_kernel_{name.replace('.', '_')}")
    if spec is None or spec.origin is None:
        return None
    return _read(f"hourglass-kernel-{name}", Path(spec.origin).parent / "built")


def _read(package: str, folder: Path) -> Prebuilt | None:
    described = folder / FILE
    return Prebuilt(package, folder, **json.loads(described.read_text())) if described.is_file() else None


def with_kernel(name: str) -> Prebuilt | None:
    """The set that brings a kernel. In a checkout, where kernels can be built, one that does not fit is passed over."""
    if (front := of_front()) is not None and name in front.kernels:
        return front
    found = of_kernel(name)
    if found is not None and front is None:
        try:
            found.kernel(name)
        except MissingError:
            return None
    return found


def kernel(name: str) -> BuiltKernel | None:
    """The prebuilt kernel of a name, if there is one. Raises MissingError when it does not go with this hourglass."""
    found = with_kernel(name)
    return None if found is None else found.kernel(name)


def agent() -> Path | None:
    """The prebuilt agent, if there is one."""
    front = of_front()
    return None if front is None else front.folder / "agent"


def root(wifi: bool, release: str) -> tuple[Path, str] | None:
    """The prebuilt root with the tools of a Debian release and its key, if there is one. A checkout makes its own."""
    if of_front() is None:
        return None
    kind, sets = "wifi" if wifi else "plain", (of_front(), *map(of_kernel, KERNELS))
    fitting = (one for one in sets if one is not None and one.roots and tools(one.kernels[0]) == release)
    return next(((one.folder / "root" / f"{kind}.cpio", one.roots[kind]) for one in fitting), None)


def commit() -> str:
    """The commit that this package is of, with "+changes" where a checkout has some; "" where nobody knows.

    The changelog does not count: it tells the digests of what is built from the commit before.
    """
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


def _git(checkout: Path, *words: str) -> str:
    """What git says of all files but the changelog."""
    asked = ["git", *words, "--", ".", ":!CHANGELOG.md"]
    return subprocess.run(asked, cwd=checkout, text=True, capture_output=True, check=False).stdout.strip()


def kernel_version(name: str) -> Version:
    """6.1 of "6.1"."""
    major, minor = map(int, name.split("."))
    return major, minor


def _parts(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
