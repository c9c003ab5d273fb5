# SPDX-License-Identifier: Apache-2.0
"""Describe a built kernel."""

from dataclasses import dataclass
from pathlib import Path

from hourglass.contract.run_json import Kernel


@dataclass(frozen=True)
class BuiltKernel(Kernel):
    """A guest kernel in the cache. `linux` is the program to start."""

    linux: Path
    config: Path
    hz: int
