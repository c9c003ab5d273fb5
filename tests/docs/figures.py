# SPDX-License-Identifier: Apache-2.0
"""Single numbers in the prose and in tables: a run's figure, in as many significant digits as the page gives it."""

import json
import re
from math import floor, log10
from pathlib import Path

from hourglass.results.stats import short

from .pages import ROOT


def figure(source: str, key: str) -> float:
    """Return a figure by its dotted key, such as `ping_ms.icmp.p50`. `source`: the directory of a run, whose
    `summary.json` has the figure, or a JSON file of the sources. The suffix `*100` means percent. The prefix `1000/`
    divides 1000 by the figure."""
    file = ROOT / source if source.endswith(".json") else Path(source) / "summary.json"
    inverse, key = key.startswith("1000/"), key.removeprefix("1000/")
    path, _, factor = key.partition("*")
    value = json.loads(file.read_text())
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return 1000 / float(value) if inverse else float(value) * float(factor or 1)


def formatted(value: float, like: str) -> str:
    """Return a value in as many significant digits as `like`, but never without whole digits: 45.63 like "760" is
    "45.6", 226.4 like "46" is "226". From 10,000 on it has commas."""
    digits = max(len(re.sub(r"[.,]", "", like).lstrip("0")), len(f"{value:.0f}"))
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}" if rounded >= 10_000 else f"{rounded:.{decimals}f}"


def cell(template: str, run: Path) -> str:
    """Return a table's cell. Each `{KEY}` of the template is replaced with the figure in the terminal's format."""
    parts = template.split("{")
    return parts[0] + "".join(
        short(figure(str(run), key)) + suffix for key, _, suffix in (part.partition("}") for part in parts[1:])
    )
