# SPDX-License-Identifier: Apache-2.0
"""The kernels that are there by name. This is the one list: a row here, and hooks that fit, are a new kernel."""

from typing import Final

KERNELS: Final[dict[str, str]] = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "7.3": "trixie-backports"}
"""Name → the Debian suite whose package linux-source-NAME it is, oldest first."""

DEFAULT: Final = "6.1"
"""The kernel of a scenario that names none."""

TOOLS: Final[dict[tuple[int, int], str]] = {(0, 0): "bookworm", (7, 0): "forky"}
"""From which kernel version on → the Debian release whose ip, tc, ethtool, iw and hostapd its guest has, oldest first.
Debian 12's tc does not know dualpi2, and its ip none of what sockets say since."""

NEWEST: Final = "newest"
"""The name of whatever source the suite of the last row has now."""

SUITES: Final[dict[str, str]] = KERNELS | {NEWEST: [*KERNELS.values()][-1]}
"""All names that stand for a package, and where it is."""

TRIED: Final[dict[str, str]] = {"5.10": "5.10.262", "6.1": "6.1.192", "6.12": "6.12.117", "7.3": "7.3.4"}
"""The release of each with which all was tested. Later ones of the suite are taken as long as the hooks fit."""

CHOICES: Final = ", ".join(SUITES)
"""For messages: "5.10, 6.1, 6.12, 7.3, newest"."""

VARIANT: Final = "+"
"""What stands in a label before each thing that a kernel is built with or without ("6.1+kunit"): tests ask for them."""


def tools(version: str) -> str:
    """The Debian release of a guest's tools, by its kernel's version or release ("6.12", "7.3.4-hourglass")."""
    major, minor = version.split("-")[0].split(".")[:2]
    return [release for since, release in TOOLS.items() if since <= (int(major), int(minor))][-1]
