# SPDX-License-Identifier: Apache-2.0
"""Loads what draws. Matplotlib keeps a list of the fonts it found: in our cache, not in the user's home."""

import os
from importlib import import_module
from types import ModuleType

from hourglass.engine import paths


def plots() -> ModuleType:
    """The package that draws; to load it takes a second the first time."""
    os.environ.setdefault("MPLCONFIGDIR", str(paths.cache() / "matplotlib"))
    return import_module("hourglass.plots")
