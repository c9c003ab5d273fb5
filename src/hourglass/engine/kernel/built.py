# SPDX-License-Identifier: Apache-2.0
"""A kernel that was built."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BuiltKernel:
    """A guest kernel in the cache. `linux` is the program to start, `key` stands for all that went into it."""

    name: str
    release: str
    key: str
    linux: Path
    config: Path
    hz: int
    untuned: str = ""
    """Why it is slower than it could be: what went wrong in its training runs (`tune.py`)."""
