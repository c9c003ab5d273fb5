# SPDX-License-Identifier: Apache-2.0
"""List the bare roots for the tests of a release: their content, and the wheels that their pip accepts."""

from dataclasses import dataclass
from pathlib import Path

from hourglass.host import directories


@dataclass(frozen=True)
class BareRoot:
    """A root without compilers. `suite`: the Debian release of its packages."""

    name: str
    about: str
    suite: str
    musl: bool = False
    release: str = ""
    """Its /etc/os-release, if it differs from the suite's."""

    @property
    def folder(self) -> Path:
        """Return its folder in the cache. A file `made` describes its origin."""
        return directories.cache() / "places" / self.name

    @property
    def python(self) -> str:
        """Return its Python version, "3.11"."""
        return (self.folder / "usr/bin/python3").readlink().name.removeprefix("python")

    @property
    def platforms(self) -> list[str]:
        """Return the platform tags of the wheels that its pip accepts, newest first."""
        if self.musl:
            return [f"musllinux_1_{minor}_x86_64" for minor in (2, 1)]
        minors = (36, 35, 34, 31, 28, 27, 26, 24, 17)
        return [*(f"manylinux_2_{minor}_x86_64" for minor in minors), "manylinux2014_x86_64"]


UBUNTU_LIKE = """PRETTY_NAME="Ubuntu-like (packages of Debian testing)"
NAME="Ubuntu-like"
ID=ubuntu
ID_LIKE=debian
VERSION_CODENAME=like
"""

ALPINE_LIKE = """PRETTY_NAME="Alpine-like (musl and busybox)"
NAME="Alpine-like"
ID=alpine
VERSION_ID=3
"""

BARE_ROOTS = [
    BareRoot("debian-12", "Debian 12", "bookworm"),
    BareRoot("debian-13", "Debian 13", "trixie"),
    BareRoot(
        "ubuntu-like", "Debian testing under another name: newer glibc and Python", "testing", release=UBUNTU_LIKE
    ),
    BareRoot("alpine-like", "musl, busybox and a Python for musl; no glibc", "trixie", True, ALPINE_LIKE),
]
