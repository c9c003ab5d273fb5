# SPDX-License-Identifier: Apache-2.0
"""The goals of `tune`: a figure to minimise or maximise, and limits on others.

| limit | met, in every condition, when the figure is |
|---|---|
| `goodput >= 95% of best` | at least 95 % of the largest mean of all settings under this condition |
| `ping.icmp.p50 <= 110% of default` | at most 110 % of the mean of the scenario's own settings |
| `tcp_rtt.p99 < 40ms` | in the bound, as in `[check]` |

A figure has a name of a run's summary, or of a measure of studies that needs no parameters, like `goodput`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hourglass.contract import bounds, names
from hourglass.contract.bounds import Bound
from hourglass.contract.figures import figures
from hourglass.errors import InputError, closest
from hourglass.results.recording import Recording
from hourglass.studies.measures import MEASURES, MeasureContext

PLAIN = {name: measure for name, measure in MEASURES.items() if not measure.needs and not measure.compares}
"""The measures without parameters."""
GOODPUT = "goodput"
EARLY_SLACK = 0.05
"""The share by which a relative limit is wider while settings have one seed."""
_RELATIVE = re.compile(r"([^\s<>=]+)\s*(>=|<=)\s*([0-9]+(?:\.[0-9]+)?)\s*%\s+of\s+(best|default)", re.ASCII)
_NAMED = re.compile(r"([^\s<>=]+)\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class TunedFigure:
    """A figure, and the direction in which it is better."""

    name: str
    better: Literal["less", "more"]

    @property
    def unit(self) -> str:
        """The unit."""
        return PLAIN[self.name].unit if self.name in PLAIN else names.unit(self.name)

    def of(self, run: Recording) -> float | None:
        """Return the figure of a run. Raises `InputError` if several figures of the run have this name."""
        if self.name in PLAIN:
            return PLAIN[self.name].of(MeasureContext(run, {}))
        matching = names.matching(self.name, list(figures(run.summary)))
        if len(matching) > 1:
            raise InputError("figure", self.name, f"names several: {', '.join(each.name for each in matching)}")
        return None if not matching or matching[0].value is None else float(matching[0].value)

    def worst(self, values: Sequence[float]) -> float:
        """Return the worst of some values."""
        return max(values) if self.better == "less" else min(values)

    def best(self, values: Sequence[float]) -> float:
        """Return the best of some values."""
        return min(values) if self.better == "less" else max(values)


@dataclass(frozen=True)
class TuneLimit:
    """A limit on a figure: a share of the `best` or the `default` setting's, or a bound."""

    text: str
    figure: TunedFigure
    share: float = 1.0
    of: Literal["best", "default", ""] = ""
    bound: Bound | None = None

    def is_met(self, value: float, best: float, default: float, slack: float = 0.0) -> bool:
        """Tell if a setting's mean meets the limit under a condition."""
        if self.bound is not None:
            return self.bound.holds(value)
        limit = self.share * (best if self.of == "best" else default)
        return value >= limit * (1 - slack) if self.figure.better == "more" else value <= limit * (1 + slack)


def read_figure(option: str, name: str, better: Literal["less", "more"]) -> TunedFigure:
    """Return the figure of a name. Raises `InputError` if no run can have it."""
    if name in MEASURES and name not in PLAIN:
        raise InputError(option, name, "is a measure with parameters; use it in a study's file")
    if name not in PLAIN:
        try:
            names.unit(name)
        except InputError as error:
            raise InputError(option, name, f"{closest(name, PLAIN)}{error.allowed}") from None
    return TunedFigure(name, better)


def read_limit(text: str) -> TuneLimit:
    """Return the limit of `--keep`. Raises `InputError`."""
    written = " ".join(text.split())
    if match := _RELATIVE.fullmatch(written):
        name, sign, percent, of = match.groups()
        figure = read_figure("--keep", name, "more" if sign == ">=" else "less")
        return TuneLimit(written, figure, float(percent) / 100, "best" if of == "best" else "default")
    match = _NAMED.fullmatch(written)
    if not match or not match[2]:
        raise InputError("--keep", text, "a limit like 'goodput >= 95% of best' or 'ping.icmp.p99 < 20ms'")
    figure = read_figure("--keep", match[1], "more")
    try:
        bound = bounds.of_unit(match[1], match[2], figure.unit)
    except InputError as error:
        raise InputError("--keep", text, error.allowed) from None
    better: Literal["less", "more"] = "less" if bound.least is None else "more"
    return TuneLimit(written, TunedFigure(match[1], better), bound=bound)
