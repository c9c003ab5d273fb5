# SPDX-License-Identifier: Apache-2.0
"""Where the files are that come with the package: in a checkout links to its folders, in a wheel copies of them."""

from importlib.resources import files
from pathlib import Path

DATA = Path(str(files("hourglass"))) / "data"
AGENT = DATA / "agent"
"""The agent's sources."""
KERNEL = DATA / "kernel"
"""What makes a Linux source tree a guest kernel."""
SCENARIOS = DATA / "scenarios"
PRESETS = SCENARIOS / "presets"
"""The preset testbeds."""
CHARTS = DATA / "vega.js"
"""The report's charting library: in released wheels alone."""
