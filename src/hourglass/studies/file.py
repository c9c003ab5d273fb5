# SPDX-License-Identifier: Apache-2.0
"""The file of a study, as pydantic models; `reader.py` reads it.

A study has a grid of scenarios, or several: each `[[part]]` is one. The grid's keys at the top hold for all parts. The
descriptions of the fields are those of the JSON Schema.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from hourglass.contract import names
from hourglass.contract.bounds import Bound, of_unit
from hourglass.results.intervals import MIN_VALUES
from hourglass.scenario.blame import refusal
from hourglass.studies.axes import agrees
from hourglass.studies.grid import flat
from hourglass.studies.measures import MEASURES, Better

SELF = "self"
EVERY = "*"
"""The name of all figures of a comparison."""
MOST_SEEDS = 1000
SeedList = tuple[int, ...]


def _line(value: str) -> str:
    return " ".join(value.split())


def _file_name(value: str) -> str:
    if "/" in value or value.startswith("."):
        raise ValueError("must be text that can name a folder")
    return value


def _id(value: str) -> str:
    if not value.isascii() or not value.replace("-", "").isalnum():
        raise ValueError("must be a word of letters, digits and -, which names the part")
    return value


def seed_range(value: object) -> SeedList:
    """Return the seeds of `5` (1 to 5), "7" or "11-15". Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_SEEDS:
        return tuple(range(1, value + 1))
    first, dash, last = str(value).partition("-") if isinstance(value, str) else ("", "", "")
    if first.isdecimal() and (last.isdecimal() or not dash) and int(first) <= int(last or first) < int(first) + 10**4:
        return tuple(range(int(first), int(last or first) + 1))
    raise ValueError(f'must be a number of seeds from 1 to {MOST_SEEDS}, or a range like "11-15"')


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


MarkedText = Annotated[Any, AfterValidator(_text), WithJsonSchema({"type": "string"})]
"""A text that keeps its mark of origin (`scenario.source_files`): it may name a file."""
OneLine = Annotated[str, AfterValidator(_line)]
SettingsTable = Annotated[dict[str, Any], AfterValidator(flat)]
SeedRange = Annotated[SeedList, BeforeValidator(seed_range)]


class StudyTable(BaseModel):
    """A table of the file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Seeds(StudyTable):
    """The seeds of each setting."""

    range: SeedRange = Field(description='A number of seeds, or a range like "11-15".')
    until: Literal["", "decided"] = Field(
        "", description='"decided": only as many of the seeds as the verdicts need, but at least `least`.'
    )
    least: int = Field(MIN_VALUES, ge=MIN_VALUES, description="With `until`: the first number of seeds.")
    reference: int = Field(3, ge=1, description="With `until`: the number of seeds of the reference.")

    @model_validator(mode="after")
    def _has_enough(self) -> "Seeds":
        if self.until and len(self.range) < max(self.least, self.reference):
            raise ValueError(f"must have at least {max(self.least, self.reference)} seeds: `least` and `reference`")
        return self


def _seeds(value: object) -> object:
    return value if isinstance(value, Mapping | Seeds) else {"range": value}


class Criterion(StudyTable):
    """A bound of a figure, and its source."""

    bound: str | dict[str, str] = Field(
        description='A bound like ">= 90%"; "self": the harm that the victim does to itself; with `by` a table.'
    )
    source: OneLine = Field("", description="The RFC, draft or paper that sets the bound. It is required.")
    by: str = Field("", description="An axis; `bound` is then a table: a bound for each of its values.")
    where: dict[str, Any] = Field({}, description="Axis = value or values: the cells that it applies to.")
    missed: OneLine = Field("", description="The mechanism of a miss, where it is known.")

    def expanded(self) -> "list[Criterion]":
        """Return a criterion for each value of `by`, or this one."""
        if isinstance(self.bound, str):
            return [self]
        rows = self.bound.items()
        return [
            self.model_copy(update={"bound": bound, "by": "", "where": {**self.where, self.by: value}})
            for value, bound in rows
        ]

    def applies(self, setting: Mapping[str, Any]) -> bool:
        """Tell if it applies to a cell. `setting`: its values, that of the compared axis included."""
        return agrees(setting, self.where)


class ScoreScale(StudyTable):
    """The place of a figure in a score: its part, and the values that count 0 and 1. Between them, it is linear."""

    part: str = Field(description="The part of the score: a key of `weights`.")
    worst: float = Field(description="The value that counts 0, like every worse one, and like no value.")
    best: float = Field(description="The value that counts 1, like every better one.")

    def utility(self, value: float | None) -> float:
        """Return the share of the way from `worst` to `best`, from 0 to 1."""
        return 0.0 if value is None else min(1.0, max(0.0, (value - self.worst) / (self.best - self.worst)))


class StudyFigure(StudyTable):
    """A figure that is reported for each setting of a part, with its criteria."""

    name: str = Field(
        description='A figure of a run (`totals.fairness`), one of the measures, or "*": all figures of '
        "`hourglass compare`. Of these, a figure misses if it differs from the reference by more than its seeds do."
    )
    label: OneLine = Field("", description="Its label; default: that of the measure, or the name.")
    better: Better = Field("", description="The direction of an improvement.")
    parameters: dict[str, Any] = Field({}, alias="with", description="The parameters of a measure.")
    alone: str = Field("", description="The part with the run of the same setting that a measure compares with.")
    victim: str = Field("", description="The axis whose value is the column of that run; default: the same column.")
    tolerance: str = Field("", description="The largest difference from the reference, in %, like 5%.")
    criterion: list[Criterion] = Field([], description="The first that applies to a cell decides its verdict.")
    score: ScoreScale | None = Field(None, description="Its place in `hourglass score`.")

    @property
    def unit(self) -> str:
        """The unit of the figure."""
        return MEASURES[self.name].unit if self.name in MEASURES else names.unit(self.name)

    @property
    def title(self) -> str:
        """The label of the figure."""
        return self.label or (MEASURES[self.name].label if self.name in MEASURES else self.name)

    @property
    def direction(self) -> Better:
        """The direction of an improvement."""
        return MEASURES[self.name].better if self.name in MEASURES else self.better

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria, one bound each."""
        return [single for criterion in self.criterion for single in criterion.expanded()]

    def check_tolerance(self, key: str = "tolerance") -> float:
        """Return the tolerance in %; 0 if there is none. Raises `InputError`."""
        return percent(self.tolerance, key) if self.tolerance else 0.0

    def bound_of(self, criterion: Criterion) -> Bound | None:
        """Return the bound of a criterion; None for `self`."""
        return None if criterion.bound == SELF else of_unit(self.name, criterion.bound, self.unit)


def percent(text: str, key: str) -> float:
    """Return the number of "5%" or "5"; it is above 0. Raises `InputError`."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise refusal(key, text, "must be a number above 0, in %, like 5%")
    return number


class GridTable(StudyTable):
    """A grid of scenarios, and the figures that are reported."""

    scenario: Any = Field(None, description="The base: a built-in's name, a file next to this one, or a table.")
    fixed: SettingsTable = Field({}, alias="set", description="Keys of the scenario that are the same in all runs.")
    axes: SettingsTable = Field({}, description="Lists or ranges; all are crossed, the first varies slowest.")
    zips: list[SettingsTable] = Field([], alias="zip", description="Keys that advance together.")
    excludes: list[SettingsTable] = Field([], alias="exclude", description="Combinations of values that are left out.")
    seeds: Annotated[Seeds | None, BeforeValidator(_seeds)] = Field(None, description="The seeds of each setting.")
    labels: dict[str, dict[str, str]] = Field({}, description="By key: value = its label in tables and pictures.")
    label_by: list[str] = Field([], description="The axes whose values label a setting; default: all.")
    quick: dict[str, list[Any]] = Field({}, description="Axis = the values that --quick runs, with one seed.")
    figure: list[StudyFigure] = Field([], description="The figures and their criteria.")


class PartTable(GridTable):
    """A grid of a study that has several."""

    id: Annotated[str, AfterValidator(_id)] = Field(description="A word that names the part.")
    title: OneLine = Field("", description="A line; default: the id.")
    about: OneLine = Field("", description="The runs and their purpose.")
    columns: list[str] = Field([], description="The values of the compared axis that it is about; default: all.")
    without: dict[str, str] = Field({}, description="Value of the compared axis = why it is left out.")
    use: str = Field("", description="STUDY.PART of a built-in study: its runs, figures and criteria.")
    not_run: OneLine = Field("", description="The reason why it cannot be run. Such a part has no grid.")
    held_out: bool = Field(False, description="Only `hourglass score --held-out` counts it.")


class ComparedAxis(StudyTable):
    """The axis that is compared: a column for each of its values."""

    axis: str = Field(description='A key of the scenario, "kernel", "engine"; or a word NAME, used in `set` as {NAME}.')
    values: list[MarkedText] = Field([], description="Its values; default of the axis cc: all congestion controls.")
    reference: str = Field("", description="The value that the others are compared with; default: a baseline's file.")
    wire: bool = Field(
        False, description="With the axis engine: modelled NICs and cables in the guest, not the other's veth pairs."
    )


class StudyFile(GridTable):
    """The file of a study."""

    name: Annotated[str, AfterValidator(_file_name)] = Field("", description="Default: the file's name.")
    description: OneLine = Field("", description="One line.")
    about: OneLine = Field("", description="Background for the reader of the results.")
    compare: ComparedAxis | None = Field(None, description="The axis that is compared.")
    part: list[PartTable] = Field([], description="Several grids.")
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        {}, description="By part of a score its weight. `hourglass score` needs it."
    )
