# SPDX-License-Identifier: Apache-2.0
"""Single numbers in the prose and in tables: a run's figure, in as many significant digits as the page gives it."""

import json
import re
from math import floor, log10
from pathlib import Path

from hourglass.results.stats import short

from .pages import ROOT


def figure(source: str, key: str) -> float:
    """A figure by its dotted key, as `ping_ms.icmp.p50`: of the run in directory `source`, from its `summary.json`, or
    of a JSON file of the sources. `*100` behind it: in percent; `1000/` before it: 1000 by it."""
    file = ROOT / source if source.endswith(".json") else Path(source) / "summary.json"
    inverse, key = key.startswith("1000/"), key.removeprefix("1000/")
    path, _, factor = key.partition("*")
    value = json.loads(file.read_text())
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return 1000 / float(value) if inverse else float(value) * float(factor or 1)


def written(value: float, like: str) -> str:
    """A value in as many significant digits as `like` has, whole digits always: 45.63 like "760" is "45.6", 226.4 like
    "46" is "226"; from 10,000 on with commas."""
    digits = max(len(re.sub(r"[.,]", "", like).lstrip("0")), len(f"{value:.0f}"))
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0:
        return "0"
    places = max(0, digits - 1 - floor(log10(abs(rounded))))
    return f"{rounded:,.{places}f}" if rounded >= 10_000 else f"{rounded:.{places}f}"


def cell(template: str, run: Path) -> str:
    """A table's cell: `{KEY}` of the template replaced as the terminal writes figures."""
    parts = template.split("{")
    return parts[0] + "".join(
        short(figure(str(run), key)) + rest for key, _, rest in (part.partition("}") for part in parts[1:])
    )
