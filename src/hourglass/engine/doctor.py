# SPDX-License-Identifier: Apache-2.0
"""What this machine lacks to build and run guests, and the command that fixes each thing.

`python -m hourglass.engine.doctor` prints the Debian packages that are missing, for `make setup`.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass, replace

from hourglass.contract.kernels import KERNELS
from hourglass.engine import agent as agents
from hourglass.engine import paths, prebuilt, process, tree, virtual
from hourglass.engine.kernel import apt, obtain, recipe, source
from hourglass.engine.prebuilt import Prebuilt
from hourglass.errors import HourglassError, MissingError, installing

LEAST_PYTHON = (3, 11)
LEAST_DISK = 3 << 30
"""A kernel's source takes 0.8 GB of the cache, its objects 0.2 GB."""

_TRACE_ME = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"


@dataclass(frozen=True)
class Check:
    """One thing that must be there, or, if it is not `needed`, that something else than guests takes. `remedy` is a
    command, empty when all is well."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def check() -> list[Check]:
    """All checks, those that others rest on first. What a released wheel brings need not be made here."""
    brought, making = released(), [compilers(), fetching()]
    if brought:
        first = [*brought, *(replace(one, needed=False) for one in making)]
    else:
        first = [agent(), *making, guest_tools()]
    return [python(), *first, tracing(), memory(), cache(), disk(needed=not brought)]


def released() -> list[Check]:
    """What released wheels bring, whether it is whole, and whether it goes together."""
    sets = [one for one in (prebuilt.of_front(), *map(prebuilt.of_kernel, KERNELS)) if one is not None]
    return [brings(one) for one in sets] if prebuilt.of_front() is not None else []


def brings(one: Prebuilt) -> Check:
    """What a set brings."""
    try:
        kernels = [one.kernel(name) for name in one.kernels]
    except MissingError as problem:
        return Check(one.package, False, problem.what, problem.remedy)
    if broken := one.broken():
        remedy = installing("--force-reinstall", prebuilt.wheel(one.package, one.version))
        return Check(one.package, False, f"not as it was released: {', '.join(broken)}", remedy)
    has = [*(f"Linux {kernel.release}" for kernel in kernels), *one.tools]
    return Check(one.package, True, f"{one.version}, commit {one.commit}, with {', '.join(has)}")


def missing_packages() -> list[str]:
    """The Debian packages that the checks ask for."""
    rust = [] if agent().ok else [agents.package()]
    guest = [] if debian_is_known() else process.missing_tools(tree.TOOLS | tree.WIFI_TOOLS)
    wanted = [*build_packages(), *process.missing_tools(obtain.FETCHING), *guest, *rust]
    return sorted(set(wanted))


def build_packages() -> list[str]:
    """The packages that building a kernel lacks."""
    return process.missing_tools(recipe.TOOLS) + recipe.missing_headers()


def packages_check(name: str, packages: list[str], present: str) -> Check:
    """A check that passes when no package is missing."""
    if packages:
        return Check(name, False, f"missing: {', '.join(packages)}", f"apt-get install -y {' '.join(packages)}")
    return Check(name, True, present)


def python() -> Check:
    """This interpreter's version."""
    here = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, LEAST_PYTHON))
    return Check("python", sys.version_info >= LEAST_PYTHON, f"{here}, {wanted} or newer is needed", "")


def agent() -> Check:
    """The agent's binary, or a Rust that can build it."""
    if (found := agents.built()) is not None:
        return Check("agent", True, str(found))
    if (problem := agents.rust_problem()) is None:
        return Check("agent", True, "built when it is first used")
    return Check("agent", False, problem, f"apt-get install -y {agents.package()}")


def compilers() -> Check:
    """What building a kernel takes."""
    return packages_check("kernel build", build_packages(), f"gcc, make and the rest are there ({recipe.compiler()})")


def fetching() -> Check:
    """What downloading and unpacking a kernel takes; not needed for trees of one's own."""
    if all(source.kept(name) for name in KERNELS):
        return Check("kernel sources", True, "in the cache")
    lacking = packages_check("kernel sources", process.missing_tools(obtain.FETCHING), "can be downloaded with apt")
    if lacking.ok and not debian_is_known():
        remedy = "hourglass kernel build PATH --name N, with a kernel tree of your own"
        return Check("kernel sources", False, "this machine's apt knows no Debian archive", remedy)
    return lacking


def debian_is_known() -> bool:
    """Whether this machine's apt can be pointed at Debian's releases."""
    return bool(apt.derive(apt.machine_sources(), apt.machine_codename(), tree.RELEASE))


def guest_tools() -> Check:
    """Where the guest's tools come from."""
    if (kept := tree.kept()) is not None:
        return Check("guest's tools", True, kept.versions())
    if not (reason := tree.unreachable()):
        return Check("guest's tools", True, f"fetched from Debian {tree.RELEASE} when they are first used")
    own = f"this machine's own, so that digests are its own too: {reason.splitlines()[0]}"
    packages = process.missing_tools(tree.TOOLS | tree.WIFI_TOOLS)
    return packages_check("guest's tools", packages, own)


def tracing() -> Check:
    """Whether a process may be traced: the guest kernel runs its programs so."""
    allowed = subprocess.run([sys.executable, "-c", _TRACE_ME], check=False).returncode == 0
    return Check("ptrace", allowed, "permitted" if allowed else "forbidden", "" if allowed else virtual.PTRACE_REMEDY)


def memory() -> Check:
    """A place for the guest's memory."""
    try:
        return Check("guest memory", True, f"in {virtual.memory_folder()}")
    except HourglassError as problem:
        return Check("guest memory", False, str(problem), getattr(problem, "remedy", ""))


def cache() -> Check:
    """Where kernels and what else is made once are kept."""
    try:
        folder = paths.cache()
    except MissingError as problem:
        return Check("cache", False, problem.what, problem.remedy)
    instead = ", since no folder below home can be written" if folder.parent == paths.temporary() else ""
    return Check("cache", True, f"{folder}{instead}")


def disk(needed: bool) -> Check:
    """Room for kernels."""
    try:
        free = shutil.disk_usage(paths.cache()).free
    except MissingError as problem:
        return Check("disk", False, problem.what, problem.remedy, needed)
    enough = free >= LEAST_DISK
    remedy = "" if enough else "set HOURGLASS_CACHE to a folder with 3 GB free"
    return Check("disk", enough, f"{free / 1e9:.1f} GB free for kernels", remedy, needed)


if __name__ == "__main__":
    print(" ".join(missing_packages()))
