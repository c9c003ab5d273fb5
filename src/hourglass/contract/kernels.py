# SPDX-License-Identifier: Apache-2.0
"""The kernels that are there by name. This is the one list: a row here, and hooks that fit, are a new kernel."""

from typing import Final

KERNELS: Final[dict[str, str]] = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie"}
"""Name → the Debian release whose package linux-source-NAME it is, oldest first."""

DEFAULT: Final = "6.1"
"""The kernel of a scenario that names none."""

CHOICES: Final = ", ".join(KERNELS)
"""For messages: "5.10, 6.1, 6.12"."""

VARIANT: Final = "+"
"""What stands in a label before each thing that a kernel is built with or without ("6.1+kunit"): tests ask for them."""
