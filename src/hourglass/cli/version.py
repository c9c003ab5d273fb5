# SPDX-License-Identifier: Apache-2.0
"""`hourglass --version`: of what commit this is, and where its kernels come from."""

from hourglass import __version__
from hourglass.contract.kernels import KERNELS
from hourglass.engine import prebuilt
from hourglass.engine.kernel import store
from hourglass.errors import MissingError


def show_version() -> None:
    """Prints version and commit, and a line for each kernel of the list."""
    commit = prebuilt.commit()
    print(f"hourglass {__version__}" + (f" (commit {commit})" if commit else ""))
    rows = [(name, *kernel(name)) for name in KERNELS]
    for name, release, place in rows:
        print(f"{name:<6}{release:<{max(len(row[1]) for row in rows) + 2}}{place}")


def kernel(name: str) -> tuple[str, str]:
    """The release of a kernel, "" while it is not known, and where it comes from."""
    brings = prebuilt.with_kernel(name)
    if brings is not None:
        try:
            release = brings.kernel(name).release
        except MissingError as problem:
            return "", str(problem)
        return short(
            release
        ), "in this package" if brings.package == prebuilt.FRONT else f"{brings.package} {brings.version}"
    kept = store.find(name)
    return (short(kept.release), "cache") if kept else ("", "to be built")


def short(release: str) -> str:
    """The kernel's own part of a release: "6.1.192" of "6.1.192-hourglass"."""
    return release.removesuffix("-hourglass")
