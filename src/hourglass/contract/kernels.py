# SPDX-License-Identifier: Apache-2.0
"""The named kernels. This is the only list: a row here and matching hooks add a kernel."""

from typing import Final

KERNELS: Final[dict[str, str]] = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "7.3": "trixie-backports"}
"""Name → the Debian suite whose package linux-source-NAME it is, oldest first."""

DEFAULT: Final = "6.1"
"""The kernel of a scenario that names none."""

TOOLS: Final[dict[tuple[int, int], str]] = {(0, 0): "bookworm", (7, 0): "forky"}
"""First kernel version → the Debian release of the guest's ip, tc, ethtool, iw and hostapd, oldest first.
Debian 12's tc lacks dualpi2, and its ip lacks the newer socket attributes."""

UNTUNED: Final = (7, 0)
"""The first kernel version without PGO builds: with PGO, their packets would have other IP identifications."""

NEWEST: Final = "newest"
"""The name of the current source package in the suite of the last row."""

SUITES: Final[dict[str, str]] = KERNELS | {NEWEST: [*KERNELS.values()][-1]}
"""Each name of a source package, and its Debian suite."""

TESTED_RELEASES: Final[dict[str, str]] = {"5.10": "5.10.262", "6.1": "6.1.192", "6.12": "6.12.117", "7.3": "7.3.4"}
"""The release that all tests ran on. Later releases of the suite are used as long as the hooks match."""

CHOICES: Final = ", ".join(SUITES)
"""The names for messages: "5.10, 6.1, 6.12, 7.3, newest"."""

VARIANT: Final = "+"
"""The separator before each variant in a kernel's label ("6.1+kunit"). Tests use variants."""


def version_of(release: str) -> tuple[int, int]:
    """Return the version of a kernel by its name or release ("6.12", "7.3.4-hourglass")."""
    major, minor = release.split("-")[0].split(".")[:2]
    return int(major), int(minor)


def nearest(release: str) -> str:
    """Return the named kernel whose version is nearest to a release, the newer of two."""

    def number(text: str) -> tuple[int, int]:
        major, minor = text.split(".")[:2]
        return int(major), int("".join(character for character in minor if character.isdigit()))

    major, minor = number(release)
    apart = {name: (abs(number(name)[0] - major), abs(number(name)[1] - minor)) for name in KERNELS}
    return min(reversed(list(KERNELS)), key=lambda name: apart[name])


def tools(release: str) -> str:
    """Return the Debian release of a guest's tools by its kernel's name or release."""
    return [suite for since, suite in TOOLS.items() if since <= version_of(release)][-1]
