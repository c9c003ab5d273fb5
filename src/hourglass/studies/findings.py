# SPDX-License-Identifier: Apache-2.0
"""The findings of a search: scenarios in which a control does much worse than a rival, with their judgements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from hourglass.scenario.toml_text import toml_text

MOST_FACTOR = 1e6


def shortfall(value: float | None, best: float | None) -> float:
    """Return how many times worse a value is than the best rival's: `best / value`, or `value / best` below 0. 1: not
    worse. `MOST_FACTOR` at most."""
    if value is None or best is None or value >= best:
        return 1.0
    ratio = best / value if value > 0 else inf if best >= 0 else value / best
    return min(ratio, MOST_FACTOR)


def _finite(value: float | None) -> float | str | None:
    return "crashed" if value is not None and value == -inf else value


@dataclass(frozen=True)
class Judgement:
    """The values of a condition with one seed: the control's and those of the rivals, by name."""

    seed: int
    value: float | None
    rivals: Mapping[str, float | None]

    @property
    def rival(self) -> str:
        """The best rival, "" if none has a value."""
        values = {name: value for name, value in self.rivals.items() if value is not None}
        return max(values, key=lambda name: values[name], default="")

    @property
    def best(self) -> float | None:
        """The value of the best rival."""
        return self.rivals.get(self.rival)

    @property
    def shortfall(self) -> float:
        """The factor by which the control is worse than the best rival; at most `MOST_FACTOR`."""
        return shortfall(self.value, self.best)


@dataclass(frozen=True)
class Finding:
    """A shrunk condition. `attempt`: the number of the condition that led to it; `before`: its judgement; `runs`: those
    until then. `judgements`: those of the shrunk scenario, with the search's seed first. `table`: the scenario."""

    number: int
    attempt: int
    runs: int
    table: Mapping[str, Any]
    before: Judgement
    judgements: tuple[Judgement, ...]
    factor: float

    @property
    def held(self) -> int:
        """The number of other seeds with a shortfall of the factor."""
        return sum(each.shortfall >= self.factor for each in self.judgements[1:])

    @property
    def stands(self) -> bool:
        """Tell if most of the other seeds show it."""
        return 2 * self.held > len(self.judgements) - 1

    @property
    def toml(self) -> str:
        """The scenario as TOML."""
        return toml_text(self.table)

    @property
    def lines(self) -> int:
        """The number of lines of the scenario, without empty ones."""
        return sum(bool(line) for line in self.toml.splitlines())

    def path(self, folder: Path, suffix: str) -> Path:
        """Return one of the finding's files."""
        return folder / f"finding-{self.number}{suffix}"

    def data(self, folder: Path) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {
            "scenario": str(self.path(folder, ".toml")),
            "lines": self.lines,
            "condition": self.attempt,
            "runs": self.runs,
            "stands": self.stands,
            "judgements": [
                {"seed": each.seed, "value": _finite(each.value), "rivals": dict(each.rivals),
                 "shortfall": each.shortfall}
                for each in self.judgements
            ],
        }  # fmt: skip


@dataclass(frozen=True)
class SearchResult:
    """The end of a search. `tried`: conditions; `runs`: made now; `refusals`: scenarios without a value, and why."""

    name: str
    expression: str
    key: str
    control: str
    findings: Sequence[Finding]
    tried: int
    runs: int
    refusals: Sequence[str]
    out: Path

    def data(self) -> dict[str, Any]:
        """Return the object of `--json`."""
        return {
            "schema": 1,
            "scenario": self.name,
            "worst": self.expression,
            "control": {self.key: self.control},
            "tried": self.tried,
            "runs": self.runs,
            "without_value": len(self.refusals),
            "findings": [finding.data(self.out) for finding in self.findings],
        }
