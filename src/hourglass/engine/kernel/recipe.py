# SPDX-License-Identifier: Apache-2.0
"""What goes into a kernel and the key that stands for it: equal keys mean kernels that compute the same."""

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hourglass import resources
from hourglass.contract.kernels import VARIANT
from hourglass.contract.modules import Module
from hourglass.engine import process
from hourglass.engine.kernel import config
from hourglass.engine.kernel.hooks import Version
from hourglass.engine.known import State, known, state
from hourglass.errors import MissingError

RECIPE = 2
"""Raised whenever build.py makes something else of the same inputs."""

UNTUNED: Version = (7, 0)
"""From here on kernels are not tuned: that of 7.3 gives its packets other IP identifications (docs/model.md)."""

TOOLS = {
    "gcc": "gcc", "ld": "binutils", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "perl": "perl-base",
    "xz": "xz-utils", "tar": "tar", "awk": "mawk", "cmp": "diffutils", "find": "findutils",
}  # fmt: skip
"""The programs that a build needs, and the packages they come in."""

HEADERS = {"/usr/include/stdio.h": "libc6-dev", "/usr/include/linux/ptrace.h": "linux-libc-dev"}


MAKERS = [Path(__file__), Path(config.__file__)]
"""The code that decides what is an ingredient."""


@dataclass(frozen=True)
class Recipe:
    """One kernel to build. `identity` and `version` are those of the source tree."""

    name: str
    identity: str
    version: Version
    variant: str | None = None
    without: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()

    @property
    def label(self) -> str:
        """The name under which the kernel is kept: "6.1", "6.1+kunit", "6.1+no-tsq", "6.1+my_cc.c"."""
        return (
            self.name
            + (f"{VARIANT}{self.variant}" if self.variant else "")
            + "".join(f"{VARIANT}no-{hook}" for hook in self.without)
            + "".join(f"{VARIANT}{one.name}.c" for one in self.modules)
        )

    @property
    def tunable(self) -> bool:
        """Whether it computes the same with PGO."""
        return self.version < UNTUNED

    def key(self) -> str:
        """Stands for a kernel in the cache: over its ingredients, its source and the compiler, in 16 hex digits."""
        sources = tuple((one.name, one.files, *([one.flags] if one.flags else [])) for one in self.modules)
        return _digest(
            repr((self.ingredients_key(), self.identity, compiler(), *([sources] if sources else []))).encode()
        )

    def ingredients_key(self) -> str:
        """Over what this package decides about what the kernel computes, in 16 hex digits: hooks, drivers and the
        configuration of this version and variant. Not over compiler and source, nor over kernel/tuning."""
        fragments = config.fragments(resources.KERNEL / "config", self.version, self.variant)
        beside = repr((RECIPE, self.variant, sorted(self.without)))

        def work() -> str:
            total = [beside.encode()]
            for path in [*fragments, *ingredients(with_tests=_tests_chosen(fragments))]:
                total += [
                    f"{path.relative_to(resources.KERNEL)}\0".encode(),
                    hashlib.sha256(path.read_bytes()).digest(),
                ]
            return _digest(b"".join(total))

        return known(f"ingredients {beside}", [*MAKERS, *fragments, *ingredients(with_tests=True)], work)


def ingredients(*, with_tests: bool) -> list[Path]:
    """The files of kernel/ that are compiled or laid over the source; kernel/tests only where a variant compiles it."""
    folders = [resources.KERNEL / name for name in ("hooks", "drivers", *(["tests"] if with_tests else []))]
    return sorted(path for folder in folders for path in folder.rglob("*")
                  if path.suffix in {".c", ".h", ".toml"} or path.name in {"Kconfig", "Makefile"})  # fmt: skip


def _tests_chosen(fragments: list[Path]) -> bool:
    """Whether a configuration of these fragments compiles KUnit suites of ours."""
    options = config.merge(fragments)
    return any(
        value == "y" for name, value in options.items() if re.fullmatch(r"CONFIG_HOURGLASS_\w+_KUNIT_TEST", name)
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def compiler() -> str:
    """Version and target of gcc and the version of ld; "none" where they are missing."""
    found = [shutil.which(tool) for tool in ("gcc", "ld")]
    return _versions(*(state(Path(path).resolve()) for path in found if path))


@cache
def _versions(*_programs: State) -> str:
    """Those of the programs on the search path."""
    try:
        words = [
            subprocess.run(command, text=True, capture_output=True, check=True).stdout.splitlines()[0]
            for command in (["gcc", "-dumpfullversion"], ["gcc", "-dumpmachine"], ["ld", "--version"])
        ]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"
    return " ".join(words)


def missing_headers() -> list[str]:
    """The packages of headers that are not there."""
    return [package for path, package in HEADERS.items() if not Path(path).exists()]


def check_prerequisites() -> None:
    """Raises MissingError naming all packages that a build lacks, and the one command that installs them."""
    packages = process.missing_tools(TOOLS) + missing_headers()
    if packages:
        remedy = f"apt-get install -y {' '.join(packages)}"
        raise MissingError(f"building a guest kernel needs {', '.join(packages)}", remedy)
