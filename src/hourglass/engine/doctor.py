# SPDX-License-Identifier: Apache-2.0
"""List what this machine lacks to build and run guests, and the command that fixes it.

`python -m hourglass.engine.doctor` installs the missing Debian packages, for `make setup`."""

import os
import shutil
import sys
from dataclasses import dataclass, replace

from hourglass.builders import agent as agents
from hourglass.builders import prebuilt, tool_packages
from hourglass.builders.kernel import apt, obtain, recipe, source_tree
from hourglass.builders.prebuilt import Prebuilt
from hourglass.contract.kernels import KERNELS
from hourglass.engine import host_conditions, host_tools, virtual
from hourglass.errors import MissingError, installing, program
from hourglass.host import directories, hardware, memory, process, sandbox

LEAST_PYTHON = (3, 11)
LEAST_DISK = 3 << 30
"""A kernel's source takes 0.8 GB of the cache, its objects 0.2 GB."""


@dataclass(frozen=True)
class MachineCheck:
    """One check of this machine. If it is not `needed`, guests run without it. `remedy` is a command, empty if the
    check passes."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True

    @classmethod
    def failed(cls, name: str, lack: MissingError, needed: bool = True) -> "MachineCheck":
        """Return the check that fails for an error's reason."""
        return cls(name, False, lack.problem, lack.remedy, needed)


def check() -> list[MachineCheck]:
    """Return all checks, each after those that it depends on. A released wheel makes the build checks optional."""
    if not hardware.runs_guests():
        return [python(), guests(), cache()]
    prebuilt_checks, build_checks = released(), [compilers(), fetching()]
    if prebuilt_checks:
        first = [*prebuilt_checks, *(replace(item, needed=False) for item in build_checks)]
    else:
        first = [agent(), *build_checks, guest_tools()]
    return [python(), *first, *conditions(), confinement(), cache(), disk(needed=not prebuilt_checks)]


def released() -> list[MachineCheck]:
    """Check the contents of released wheels: complete, and of matching versions."""
    prebuilt_sets = [item for item in (prebuilt.of_front(), *map(prebuilt.of_kernel, KERNELS)) if item is not None]
    return [check_prebuilt(item) for item in prebuilt_sets] if prebuilt.of_front() is not None else []


def check_prebuilt(wheel: Prebuilt) -> MachineCheck:
    """Check the contents of one wheel."""
    try:
        kernels = [wheel.kernel(name) for name in wheel.kernels]
    except MissingError as error:
        return MachineCheck.failed(wheel.package, error)
    if broken := wheel.broken():
        remedy = installing("--force-reinstall", prebuilt.wheel(wheel.package, wheel.version))
        return MachineCheck(wheel.package, False, f"changed since its release: {', '.join(broken)}", remedy)
    contents = [*(f"Linux {kernel.release}" for kernel in kernels), *wheel.tools]
    return MachineCheck(wheel.package, True, f"{wheel.version}, commit {wheel.commit}, with {', '.join(contents)}")


def missing_packages() -> list[str]:
    """Return the Debian packages that would make the checks pass."""
    rust = [] if agent().ok else [agents.package()]
    guest = [] if has_debian_archive() else process.missing_tools(tool_packages.ALL_TOOLS)
    packages = [*build_packages(), *process.missing_tools(obtain.FETCHING), *guest, *rust]
    return sorted(set(packages))


def build_packages() -> list[str]:
    """Return the packages that a kernel build lacks."""
    return process.missing_tools(recipe.TOOLS) + recipe.missing_headers()


def packages_check(name: str, packages: list[str], present: str) -> MachineCheck:
    """Return a check that passes if no package is missing."""
    if packages:
        return MachineCheck(name, False, f"missing: {', '.join(packages)}", f"apt-get install -y {' '.join(packages)}")
    return MachineCheck(name, True, present)


def python() -> MachineCheck:
    """Check this interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    least = ".".join(map(str, LEAST_PYTHON))
    return MachineCheck("python", sys.version_info >= LEAST_PYTHON, f"{version}, {least} or newer is required", "")


def agent() -> MachineCheck:
    """Check for the agent's binary, or a Rust that can build it."""
    if (path := agents.built()) is not None:
        return MachineCheck("agent", True, str(path))
    if (problem := agents.rust_problem()) is None:
        return MachineCheck("agent", True, "is built on first use")
    return MachineCheck("agent", False, problem, f"apt-get install -y {agents.package()}")


def compilers() -> MachineCheck:
    """Check for the packages that a kernel build needs."""
    return packages_check(
        "kernel build", build_packages(), f"gcc, make and the other tools are installed ({recipe.compiler()})"
    )


def fetching() -> MachineCheck:
    """Check for the tools that download and unpack a kernel. The user's own trees do not need them."""
    if all(source_tree.cached(name) for name in KERNELS):
        return MachineCheck("kernel sources", True, "in the cache")
    lacking = packages_check("kernel sources", process.missing_tools(obtain.FETCHING), "can be downloaded with apt")
    if lacking.ok and not has_debian_archive():
        remedy = "hourglass kernel build PATH --name N, with your own kernel tree"
        return MachineCheck("kernel sources", False, "this machine's apt lists no Debian archive", remedy)
    return lacking


def has_debian_archive() -> bool:
    """Return whether this machine's apt can fetch packages of other Debian releases."""
    return bool(apt.derive(apt.machine_sources(), apt.machine_codename(), tool_packages.RELEASE))


def guest_tools() -> MachineCheck:
    """Check the origin of the guest's tools."""
    if (tree := tool_packages.cached()) is not None:
        return MachineCheck("guest's tools", True, tree.versions())
    if not (reason := tool_packages.unreachable()):
        return MachineCheck("guest's tools", True, f"are fetched from Debian {tool_packages.RELEASE} on first use")
    fallback = f"are those of this machine, so digests depend on it: {reason.splitlines()[0]}"
    packages = process.missing_tools(tool_packages.ALL_TOOLS)
    return packages_check("guest's tools", packages, fallback)


def conditions() -> list[MachineCheck]:
    """Check the settings and limits of this host, and its memory."""
    if unmet := [MachineCheck.failed("host", lack) for lack in host_conditions.unmet()]:
        return unmet
    limit = memory.tightest()
    space = "" if limit is None else f"{limit.free / 1e9:.1f} GB of memory free; "
    met = f"{space}ptrace, /proc and resource limits permit guests, each of up to {host_conditions.MEMORY_GIB} GiB"
    return [MachineCheck("host", True, met)]


def confinement() -> MachineCheck:
    """Check that guests are confined on this host. Only a run with --require-sandbox needs it."""
    active = sandbox.layers()
    detail = f"guests are confined by {' and '.join(active.names)}" if active.names else "guests are not confined"
    return MachineCheck("sandbox", active.complete, detail, "" if active.complete else sandbox.REMEDY, needed=False)


def guests() -> MachineCheck:
    """Return the failed check of a machine that runs no guests."""
    return MachineCheck("guests", False, virtual.NO_GUESTS, virtual.NO_GUESTS_REMEDY)


def cache() -> MachineCheck:
    """Check the cache folder."""
    try:
        folder = directories.cache()
    except MissingError as error:
        return MachineCheck.failed("cache", error)
    instead = ", since no folder below home can be written" if folder.parent == directories.temporary() else ""
    if hardware.runs_guests() and os.statvfs(folder).f_flag & os.ST_NOEXEC:
        problem = f"{folder} is mounted noexec, so kernels in it cannot be executed"
        return MachineCheck("cache", False, problem, virtual.CACHE_REMEDY, needed=prebuilt.of_front() is None)
    return MachineCheck("cache", True, f"{folder}{instead}")


def disk(needed: bool) -> MachineCheck:
    """Check the free space for kernels."""
    try:
        free = shutil.disk_usage(directories.cache()).free
    except MissingError as error:
        return MachineCheck.failed("disk", error, needed)
    enough = free >= LEAST_DISK
    remedy = "" if enough else "set HOURGLASS_CACHE to a folder with 3 GB free"
    return MachineCheck("disk", enough, f"{free / 1e9:.1f} GB free for kernels", remedy, needed)


if __name__ == "__main__":
    program(lambda: host_tools.install(missing_packages()))
