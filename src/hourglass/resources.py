# SPDX-License-Identifier: Apache-2.0
"""List the paths of the package's files: in a checkout, links to its folders; in a wheel, copies."""

from importlib.resources import files
from pathlib import Path

DATA = Path(str(files("hourglass"))) / "data"
AGENT = DATA / "agent"
"""The agent's sources."""
KERNEL = DATA / "kernel"
"""Everything that turns a Linux source tree into a guest kernel."""
SCENARIOS = DATA / "scenarios"
PRESETS = SCENARIOS / "presets"
"""The preset testbeds."""
