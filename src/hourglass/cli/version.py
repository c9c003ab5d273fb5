# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass --version`: the commit, and the source of each kernel."""

from hourglass import __version__
from hourglass.builders import prebuilt
from hourglass.builders.kernel import registry
from hourglass.contract.kernels import KERNELS
from hourglass.errors import MissingError


def show_version() -> None:
    """Print version and commit, and a line for each kernel of the list."""
    commit = prebuilt.commit()
    print(f"hourglass {__version__}" + (f" (commit {commit})" if commit else ""))
    rows = [(name, *kernel(name)) for name in KERNELS]
    for name, release, source in rows:
        print(f"{name:<6}{release:<{max(len(row[1]) for row in rows) + 2}}{source}")


def kernel(name: str) -> tuple[str, str]:
    """Return the release of a kernel, "" if unknown, and its source."""
    wheel = prebuilt.with_kernel(name)
    if wheel is not None:
        try:
            release = wheel.kernel(name).release
        except MissingError as problem:
            return "", str(problem)
        return short(
            release
        ), "in this package" if wheel.package == prebuilt.FRONT else f"{wheel.package} {wheel.version}"
    built = registry.find(name)
    return (short(built.release), "cache") if built else ("", "to be built")


def short(release: str) -> str:
    """Return a release without Hourglass's suffix: "6.1.192" for "6.1.192-hourglass"."""
    return release.removesuffix("-hourglass")
