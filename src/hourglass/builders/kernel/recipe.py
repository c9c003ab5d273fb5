# SPDX-License-Identifier: Apache-2.0
"""Compute the key of a kernel from everything that it is built from. Kernels with equal keys compute the same."""

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hourglass import resources
from hourglass.builders.digest_cache import State, cached, state
from hourglass.builders.kernel import config
from hourglass.builders.kernel.hooks import Version
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.kernels import UNTUNED, VARIANT
from hourglass.errors import MissingError
from hourglass.host import hardware, process

RECIPE = 2
"""Raised when builder.py builds something else from the same inputs."""

TOOLS = {
    "gcc": "gcc", "ld": "binutils", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "perl": "perl-base",
    "xz": "xz-utils", "tar": "tar", "awk": "mawk", "cmp": "diffutils", "find": "findutils",
}  # fmt: skip
"""The programs that a build needs, and the packages that contain them."""

HEADERS = {"/usr/include/stdio.h": "libc6-dev", "/usr/include/linux/ptrace.h": "linux-libc-dev"}

BPF_VARIANT = "bpf"
"""The variant with the kernel's types (BTF). It loads congestion controls and qdiscs in BPF."""
BPF_TOOLS = {"pahole": "dwarves"}
BPF_HEADERS = {"/usr/include/libelf.h": "libelf-dev", "/usr/include/zlib.h": "zlib1g-dev"}
"""The further needs of a build of this variant."""

MAKERS = [state(Path(__file__)), state(Path(config.__file__))]
"""The code that decides on the ingredients, as this process loaded it."""


@dataclass(frozen=True)
class Recipe:
    """A kernel to build. `identity` and `version` are those of the source tree."""

    name: str
    identity: str
    version: Version
    variant: str | None = None
    without: tuple[str, ...] = ()
    modules: tuple[KernelModule, ...] = ()

    @property
    def label(self) -> str:
        """Return the kernel's name in the cache: "6.1", "6.1+kunit", "6.1+no-tsq", "6.1+my_cc.c"."""
        return (
            self.name
            + (f"{VARIANT}{self.variant}" if self.variant else "")
            + "".join(f"{VARIANT}no-{hook}" for hook in self.without)
            + "".join(f"{VARIANT}{module.name}.c" for module in self.modules)
        )

    @property
    def tunable(self) -> bool:
        """Return whether a kernel with PGO computes the same."""
        return self.version < UNTUNED

    def key(self) -> str:
        """Return the kernel's key in the cache: 16 hex digits of the digest of ingredients, source and compiler."""
        sources = tuple(
            (module.name, module.files, *([module.flags] if module.flags else [])) for module in self.modules
        )
        return _digest(
            repr((self.ingredients_key(), self.identity, compiler(), *([sources] if sources else []))).encode()
        )

    def ingredients_key(self) -> str:
        """Return 16 hex digits of the digest of hooks, drivers and the configuration of this version and variant.
        Compiler, source and kernel/tuning do not count."""
        fragments = config.fragments(resources.KERNEL / "config", self.version, self.variant)
        choices = repr((RECIPE, self.variant, sorted(self.without)))

        def compute() -> str:
            total = [choices.encode()]
            for path in [*fragments, *ingredients(with_tests=_tests_chosen(fragments))]:
                total += [
                    f"{path.relative_to(resources.KERNEL)}\0".encode(),
                    hashlib.sha256(path.read_bytes()).digest(),
                ]
            return _digest(b"".join(total))

        return cached(f"ingredients {choices}, {MAKERS}", [*fragments, *ingredients(with_tests=True)], compute)


def ingredients(*, with_tests: bool) -> list[Path]:
    """Return the files of kernel/ that are compiled or applied to the source, with kernel/tests only if a variant
    compiles it."""
    folders = [resources.KERNEL / name for name in ("hooks", "drivers", *(["tests"] if with_tests else []))]
    return sorted(path for folder in folders for path in folder.rglob("*")
                  if path.suffix in {".c", ".h", ".toml"} or path.name in {"Kconfig", "Makefile"})  # fmt: skip


def _tests_chosen(fragments: list[Path]) -> bool:
    """Return whether a configuration of these fragments compiles KUnit suites of Hourglass."""
    options = config.merge(fragments)
    return any(
        value == "y" for name, value in options.items() if re.fullmatch(r"CONFIG_HOURGLASS_\w+_KUNIT_TEST", name)
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def compiler() -> str:
    """Return version and target of gcc and the version of ld; "none" if they are missing."""
    programs = [shutil.which(tool) for tool in ("gcc", "ld")]
    return _versions(*(state(Path(path).resolve()) for path in programs if path))


@cache
def _versions(*_programs: State) -> str:
    """Return the versions of the programs on the search path."""
    try:
        lines = [
            subprocess.run(command, text=True, capture_output=True, check=True).stdout.splitlines()[0]
            for command in (["gcc", "-dumpfullversion"], ["gcc", "-dumpmachine"], ["ld", "--version"])
        ]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"
    return " ".join(lines)


def missing_headers(headers: dict[str, str] = HEADERS) -> list[str]:
    """Return the packages of missing headers."""
    return [package for path, package in headers.items() if not Path(path).exists()]


def check_prerequisites(variant: str | None = None) -> None:
    """Raise MissingError with all packages that a build lacks, and the command that installs them."""
    if not hardware.runs_guests():
        remedy = "install Hourglass's wheel, which contains built kernels"
        raise MissingError("guest kernels can be built only by Linux on x86-64", remedy)
    packages = process.missing_tools(TOOLS) + missing_headers()
    if variant == BPF_VARIANT:
        packages += process.missing_tools(BPF_TOOLS) + missing_headers(BPF_HEADERS)
    if packages:
        remedy = f"apt-get install -y {' '.join(packages)}"
        raise MissingError(f"building a guest kernel needs {', '.join(packages)}", remedy)
