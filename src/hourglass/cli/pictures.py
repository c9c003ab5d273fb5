# SPDX-License-Identifier: Apache-2.0
"""Loads what draws. Matplotlib keeps a list of the fonts it found: in our cache, not in the user's home."""

import os
from importlib import import_module
from types import ModuleType

from hourglass.engine import paths


def package() -> str:
    """The name of the package that draws, for who wants it loaded in time: that takes a second the first time."""
    os.environ.setdefault("MPLCONFIGDIR", str(paths.cache() / "matplotlib"))
    return "hourglass.plots"


def plots() -> ModuleType:
    """The package that draws."""
    return import_module(package())
