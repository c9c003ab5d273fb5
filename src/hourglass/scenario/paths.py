# SPDX-License-Identifier: Apache-2.0
"""Where the built-in scenarios and the preset testbeds lie. Nothing else of the package knows."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
SCENARIOS = REPOSITORY / "scenarios"
PRESETS = SCENARIOS / "presets"
