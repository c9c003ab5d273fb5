# SPDX-License-Identifier: Apache-2.0
"""`tune`: find the settings of a stack that minimise a figure within limits, for a scenario and links near to it.

The value of a setting is that of its worst condition (`neighbourhood.py`), where a condition's value is the mean over
the seeds. A limit must be met in every condition. The settings are raced, by successive halving (Jamieson and Talwalkar
2016), with a third instead of a half:

    round   settings                                 conditions    seeds
    1       all                                      the scenario  the first
    2       the best third, at least `LEAST[0]`      all           the first
    3       the best third of these, `LEAST[1]`      all           all

Each round also compares the scenario's own settings, and the best setting of each limited figure, to which "95 % of
best" refers. Of the settings within `CLOSE` of the best value, the one with the fewest changes is chosen. Then it and
the scenario's own settings run with further seeds, which had no part in the choice. These alone give the margin: the
mean of the paired differences over conditions and seeds, with a bootstrapped interval.

Runs are those of studies, in their store: none is made twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hourglass import files, scenario
from hourglass.errors import InputError
from hourglass.results.intervals import MIN_BLOCKS, draws, excludes_zero, interval
from hourglass.results.run_directory import open_run
from hourglass.results.run_files import RUNS_FOLDER
from hourglass.results.stats import rounded
from hourglass.scenario import Scenario
from hourglass.studies import pareto
from hourglass.studies.cells import GridCell
from hourglass.studies.grid import SEED, Grid, text
from hourglass.studies.neighbourhood import Condition, conditions
from hourglass.studies.over import read_over
from hourglass.studies.runs import SilentStudy, StudyProgress, make, planned
from hourglass.studies.store import Store
from hourglass.studies.study import STUDIES
from hourglass.studies.tune_goals import EARLY_SLACK, GOODPUT, TunedFigure, TuneLimit, read_figure, read_limit

SEEDS = (1, 2, 3)
LEAST = (6, 3)
"""The least number of settings that the second and the third round have."""
CLOSE = 0.01
MOST_SETTINGS = 2000
MOST_VALUES = 4
"""The number of values of a range."""
FURTHER_PAIRS = 6
"""The least number of pairs of further runs, if the conditions and `FURTHER_SEEDS` give fewer."""
FURTHER_SEEDS = 2
DRAW_SEED = 1

Values = dict[str, list[float]]
"""By condition, a value for each seed."""


@dataclass
class TunedSetting:
    """A setting: the keys that differ from the scenario, and by figure its values. `failure`: of its runs."""

    changes: dict[str, Any]
    values: dict[str, Values] = field(default_factory=dict)
    failure: str = ""

    @property
    def name(self) -> str:
        """The changes as text."""
        return ", ".join(f"{key}={text(value)}" for key, value in self.changes.items()) or "default"

    def mean(self, figure: TunedFigure, condition: str) -> float:
        """Return the mean over the seeds."""
        return float(np.mean(self.values[figure.name][condition]))

    def worst(self, figure: TunedFigure, within: Iterable[str] = ()) -> float:
        """Return the value of the worst condition."""
        return figure.worst([self.mean(figure, name) for name in within or self.values[figure.name]])


@dataclass(frozen=True)
class TuneMargin:
    """A figure with the scenario's own and with the chosen settings, by the seeds that did not choose. `interval`: 95 %
    of the mean difference."""

    figure: TunedFigure
    default: float
    chosen: float
    interval: tuple[float, float] | None

    @property
    def is_certain(self) -> bool:
        """Tell if the interval excludes 0."""
        return excludes_zero(self.interval)


@dataclass(frozen=True)
class TuneResult:
    """The settings of a scenario, the `chosen` one and its margins. `finalists`: the settings of the last round.
    `table`: a row per setting, by the runs of the scenario itself, with `front`. `unmet`: the limits that the further
    seeds miss. `runs`: the number of runs that the search and the margin needed."""

    scenario: Scenario
    goal: TunedFigure
    limits: tuple[TuneLimit, ...]
    conditions: tuple[Condition, ...]
    settings: tuple[TunedSetting, ...]
    finalists: tuple[TunedSetting, ...]
    chosen: TunedSetting
    margins: tuple[TuneMargin, ...]
    table: pl.DataFrame
    unmet: tuple[str, ...]
    seeds: tuple[int, ...]
    further_seeds: tuple[int, ...]
    runs: int
    out: Path

    @property
    def default(self) -> TunedSetting:
        """The scenario's own settings."""
        return self.settings[0]

    @property
    def tuned(self) -> Scenario:
        """The scenario with the chosen settings."""
        return scenario.load(self.scenario, list(self.chosen.changes.items()))


def tune(
    source: str | Path | Mapping[str, Any] | Scenario,
    *,
    over: Sequence[str],
    minimise: str = "",
    maximise: str = "",
    keep: Sequence[str] = (),
    near: Sequence[str] = (),
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    seeds: Sequence[int] = (),
    kernel: str | None = None,
    exhaustive: bool = False,
    out: Path | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    progress: StudyProgress | None = None,
) -> TuneResult:
    """Return the settings that minimise or maximise a figure of a scenario within limits.

    `over`: the keys and their values (`over.py`). `keep`: limits (`tune_goals.py`). `near`: other conditions
    (`neighbourhood.py`). `seeds`: those that choose; default 1 to 3. `exhaustive`: run all settings under all
    conditions with all seeds. `out`: the folder; default: `studies/tune-NAME`. Raises `InputError`.
    """
    if bool(minimise) == bool(maximise):
        raise InputError("--minimise", minimise, "needs a figure, either here or in --maximise")
    goal = read_figure("--minimise", minimise, "less") if minimise else read_figure("--maximise", maximise, "more")
    limits = tuple(map(read_limit, keep))
    loaded = scenario.load(source, overrides, kernel=kernel)
    folder = out or STUDIES / f"tune-{loaded.name}"
    store = Store(folder, "records", STUDIES / RUNS_FOLDER if out is None else None)
    race = _Race(loaded, goal, limits, conditions(loaded, near), store, progress or SilentStudy())
    race.making = {"jobs": jobs, "dask": dask}
    race.force = force
    settings = race.distinct(_combined(over))
    return race.result(settings, tuple(seeds) or SEEDS, exhaustive)


def _combined(over: Sequence[str]) -> list[TunedSetting]:
    """Return all combinations of the values, the scenario's own settings first."""
    keys = read_over(over)
    lists = [[(key.key, value) for value in key.values_of(MOST_VALUES)] for key in keys]
    number = int(np.prod([len(each) for each in lists], dtype=object))
    if number > MOST_SETTINGS:
        raise InputError("--over", ", ".join(over), f"gives {number} settings; at most {MOST_SETTINGS}")
    return [TunedSetting({}), *(TunedSetting(dict(pairs)) for pairs in product(*lists))]


class _Race:
    """The runs of settings under conditions."""

    def __init__(
        self, base: Scenario, goal: TunedFigure, limits: tuple[TuneLimit, ...], near: list[Condition], store: Store,
        progress: StudyProgress,
    ) -> None:  # fmt: skip
        self.base, self.goal, self.limits, self.near = base, goal, limits, near
        self.store, self.progress = store, progress
        self.making: dict[str, Any] = {}
        self.force = False
        self.attempted: set[str] = set()
        self.keys: set[str] = set()
        limited = {limit.figure.name: limit.figure for limit in limits if limit.figure.name != goal.name}
        opposite = TunedFigure("tcp_rtt.p50", "less") if goal.name == GOODPUT else TunedFigure(GOODPUT, "more")
        self.figures = [goal, *(limited.values() or [opposite])]
        """The goal, then the others. The picture has the first two."""

    def distinct(self, settings: list[TunedSetting]) -> list[TunedSetting]:
        """Return the settings without changes that have no effect, each scenario once. Raises `InputError` for a wrong
        value."""
        before = _flat(self.base.model_dump(mode="json"))
        unique: dict[bytes, TunedSetting] = {}
        for setting in settings:
            changed = scenario.load(self.base, list(setting.changes.items()))
            if changed.to_json() not in unique:
                flat = _flat(changed.model_dump(mode="json"))
                effective = {
                    key: value for key, value in setting.changes.items()
                    if any(flat.get(name) != before.get(name) for name in {*flat, *before} if _below(name, key))
                }  # fmt: skip
                unique[changed.to_json()] = TunedSetting(effective)
        return list(unique.values())

    def run(self, settings: Sequence[TunedSetting], near: Sequence[Condition], seeds: Sequence[int]) -> None:
        """Make the missing runs and read the figures."""
        cells = {
            (number, condition.name): self._cells(setting, condition, seeds)
            for number, setting in enumerate(settings) if not setting.failure
            for condition in near
        }  # fmt: skip
        listed = [cell for group in cells.values() for cell in group]
        self.keys |= {cell.key for cell in listed}
        with self.store.locked(), files.writing(self.store.out, "the runs"):
            self.attempted |= make(
                listed, self.store, force=self.force, attempted=self.attempted, progress=self.progress, **self.making
            )
        for (number, condition), group in cells.items():
            self._read(settings[number], condition, group)
        if settings[0].failure:
            raise InputError("SCENARIO", self.base.name, f"the scenario itself failed: {settings[0].failure}")

    def _cells(self, setting: TunedSetting, condition: Condition, seeds: Sequence[int]) -> list[GridCell]:
        fixed = condition.changes | setting.changes
        cells = tuple({SEED: seed} for seed in seeds)
        name = f"{condition.name}: {setting.name}"
        grid = Grid(name, "", self.base, fixed, (SEED,), cells)
        return planned(grid, progress=self.progress)

    def _read(self, setting: TunedSetting, condition: str, group: list[GridCell]) -> None:
        for figure in self.figures:
            values = []
            for cell in group:
                if self.store.summary(cell.key) is None:
                    setting.failure = self.store.failure(cell.key) or "unknown reason"
                    return
                value = figure.of(open_run(self.store.directory(cell.key)))
                if value is None:
                    setting.failure = f"its run has no {figure.name}"
                    return
                values.append(rounded(value))
            setting.values.setdefault(figure.name, {})[condition] = values

    def result(self, settings: list[TunedSetting], seeds: tuple[int, ...], exhaustive: bool) -> TuneResult:
        """Race the settings, choose one, and measure its margin."""
        if exhaustive:
            self.run(settings, self.near, seeds)
            finalists = settings
        else:
            self.run(settings, self.near[:1], seeds[:1])
            first = self.survivors(settings, self.near[:1], LEAST[0])
            self.run(first, self.near, seeds[:1])
            finalists = self.survivors(first, self.near, LEAST[1])
            self.run(finalists, self.near, seeds)
        finalists = [setting for setting in finalists if not setting.failure]
        chosen = self.choose(finalists)
        table = self.table(settings)
        number = max(FURTHER_SEEDS, ceil(FURTHER_PAIRS / len(self.near)))
        further = tuple(range(max(seeds) + 1, max(seeds) + 1 + number))
        pair = [TunedSetting(finalists[0].changes), TunedSetting(chosen.changes)]
        self.run(pair, self.near, further)
        if pair[1].failure:
            raise InputError("SCENARIO", self.base.name, f"{chosen.name} failed: {pair[1].failure}")
        unmet = tuple(
            limit.text for limit in self.limits if not self._meets(pair[1], limit, finalists, pair[0], self.near)
        )
        return TuneResult(
            self.base, self.goal, self.limits, tuple(self.near), tuple(settings), tuple(finalists), chosen,
            tuple(_margin(figure, *pair) for figure in self.figures), table, unmet, seeds, further,
            len(self.keys), self.store.out,
        )  # fmt: skip

    def survivors(self, settings: list[TunedSetting], near: Sequence[Condition], least: int) -> list[TunedSetting]:
        """Return the scenario's own settings, the best third, and the best setting of each limited figure."""
        alive = [setting for setting in settings if not setting.failure]
        number = max(least, ceil(len(alive) / 3))
        names = [condition.name for condition in near]
        chosen = self._ranked(alive, near, EARLY_SLACK)[:number]
        for figure in (limit.figure for limit in self.limits):
            best = figure.best([each.worst(figure, names) for each in alive])
            chosen.append(next(each for each in alive if each.worst(figure, names) == best))
        return [setting for setting in alive if setting is alive[0] or any(setting is each for each in chosen)]

    def choose(self, finalists: list[TunedSetting]) -> TunedSetting:
        """Return the best setting; of those close to it, the one with the fewest changes. Raises `InputError` if none
        meets all limits."""
        allowed = self._ranked(finalists, self.near, 0.0)
        if not allowed:
            limits = "; ".join(limit.text for limit in self.limits)
            raise InputError("--keep", limits, f"no setting meets this in all conditions; {self._nearest(finalists)}")
        best = allowed[0].worst(self.goal)
        close = [each for each in allowed if abs(each.worst(self.goal) - best) <= CLOSE * abs(best)]
        return min(close, key=lambda each: len(each.changes))

    def _nearest(self, finalists: list[TunedSetting]) -> str:
        limit = self.limits[0]
        best = limit.figure.best([each.worst(limit.figure) for each in finalists])
        return f"the best {limit.figure.name} is {best:g} {limit.figure.unit}"

    def _ranked(self, alive: list[TunedSetting], near: Sequence[Condition], slack: float) -> list[TunedSetting]:
        """Return the settings that meet all limits, the best first. Equal ones are in the order of their means."""
        allowed = [
            each for each in alive
            if all(self._meets(each, limit, alive, alive[0], near, slack) for limit in self.limits)
        ]  # fmt: skip
        names = [condition.name for condition in near]
        sign = 1 if self.goal.better == "less" else -1
        return sorted(
            allowed,
            key=lambda each: (
                sign * each.worst(self.goal, names),
                sign * sum(each.mean(self.goal, name) for name in names),
                len(each.changes),
            ),
        )

    def _meets(
        self, setting: TunedSetting, limit: TuneLimit, alive: list[TunedSetting], default: TunedSetting,
        near: Sequence[Condition], slack: float = 0.0,
    ) -> bool:  # fmt: skip
        """Tell if a setting meets a limit in all conditions, compared with the best of `alive` and the default."""
        return all(
            limit.is_met(
                setting.mean(limit.figure, condition.name),
                limit.figure.best([each.mean(limit.figure, condition.name) for each in alive]),
                default.mean(limit.figure, condition.name),
                slack,
            )
            for condition in near
        )

    def table(self, settings: list[TunedSetting]) -> pl.DataFrame:
        """Return a row per setting: its name, the figures in the scenario itself, and `front`."""
        alive = [setting for setting in settings if not setting.failure]
        itself = self.near[0].name
        second = self.figures[1]
        columns = {figure.name: [each.mean(figure, itself) for each in alive] for figure in self.figures}
        more = [value if second.better == "more" else -value for value in columns[second.name]]
        less = [value if self.goal.better == "less" else -value for value in columns[self.goal.name]]
        return pl.DataFrame({"setting": [each.name for each in alive], **columns, "front": pareto.front(more, less)})


def _margin(figure: TunedFigure, default: TunedSetting, chosen: TunedSetting) -> TuneMargin:
    """Return the margin of a figure, by the pairs of all conditions and seeds."""
    before, after = (
        np.array([value for values in each.values[figure.name].values() for value in values])
        for each in (default, chosen)
    )
    pairs = [np.array([difference]) for difference in after - before]
    drawn = draws(pairs, "mean", DRAW_SEED) if len(pairs) >= MIN_BLOCKS else np.empty(0)
    return TuneMargin(
        figure, rounded(float(before.mean())), rounded(float(after.mean())), interval(np.zeros(drawn.size), drawn)
    )


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return all values of nested tables and lists, by their dotted keys."""
    entries: dict[str, Any] = {}
    for key, value in table.items():
        rows = {str(number): row for number, row in enumerate(value)} if isinstance(value, list) else value
        entries |= _flat(rows, f"{before}{key}.") if isinstance(rows, Mapping) else {f"{before}{key}": value}
    return entries


def _below(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")
