# SPDX-License-Identifier: Apache-2.0
"""Folders for tests."""

import os
from pathlib import Path


def nest(top: Path, depth: int) -> None:
    """Create a folder `d` in a folder, another one in this one, and so on. A path may be too long for it."""
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
