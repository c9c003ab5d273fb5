# SPDX-License-Identifier: Apache-2.0
"""Where a release is tried: the bare roots, what is in them, and which wheels their pip takes."""

from dataclasses import dataclass
from pathlib import Path

from hourglass.engine import paths


@dataclass(frozen=True)
class Place:
    """A root without compilers. `suite`: Debian's release that its packages are of."""

    name: str
    about: str
    suite: str
    musl: bool = False
    release: str = ""
    """Its /etc/os-release, where that is not the suite's own."""

    @property
    def root(self) -> Path:
        """Its folder in the cache, with a file `made` that says from what."""
        return paths.cache() / "places" / self.name

    @property
    def python(self) -> str:
        """The version of the Python in it, "3.11"."""
        return (self.root / "usr/bin/python3").readlink().name.removeprefix("python")

    @property
    def platforms(self) -> list[str]:
        """The platform tags of the wheels that its pip takes, newest first."""
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

PLACES = [
    Place("debian-12", "Debian 12", "bookworm"),
    Place("debian-13", "Debian 13", "trixie"),
    Place("ubuntu-like", "Debian testing under another name: newer glibc and Python", "testing", release=UBUNTU_LIKE),
    Place("alpine-like", "musl, busybox and a Python for musl; no glibc", "trixie", True, ALPINE_LIKE),
]
