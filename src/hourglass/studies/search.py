# SPDX-License-Identifier: Apache-2.0
"""Search the conditions in which a control does much worse than another would.

The control is a congestion control, or the value of another key. A condition is a scenario with the open places of
`--over` filled (space.py). Its *shortfall* says how many times worse the control is than the best rival in the same
condition with the same seed. A condition in which nobody does well has the shortfall 1, so it is no finding.

    round      conditions are proposed (optimiser.py), run and valued (evaluate.py); the rivals run where the control
               is among the worst quarter; a round ends some batches after a shortfall of `factor`
    shrinking  the scenario gets smaller while its shortfall stays above `factor` (shrink.py)
    judgement  three other seeds; the finding counts if most of them have a shortfall of `factor`

The optimiser sees first the conditions with a shortfall, then those without rivals by their value, then those in which
the rivals are no better. The size of a batch does not depend on the number of CPUs, so neither do the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

from hourglass import runner, scenario
from hourglass.contract.capabilities import VIRTUAL
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.host import hardware
from hourglass.scenario import Scenario
from hourglass.scenario.load import listed_overrides, merged, parse_override
from hourglass.scenario.source_files import with_marks
from hourglass.studies.evaluate import Evaluator, Trial
from hourglass.studies.expression import Expression, parse
from hourglass.studies.finding_page import write
from hourglass.studies.findings import Finding, Judgement, SearchResult, shortfall
from hourglass.studies.optimiser import Optimiser
from hourglass.studies.over import split_values
from hourglass.studies.pool import WorkerPool
from hourglass.studies.runs import SilentStudy, StudyProgress
from hourglass.studies.shrink import TRIES as SHRINK
from hourglass.studies.shrink import shrunk
from hourglass.studies.space import Point, Space
from hourglass.studies.space import parse as parse_space
from hourglass.studies.store import Store
from hourglass.studies.study import STUDIES

RIVALS = "stack.cc=cubic,reno,bbr"
FACTOR = 2.0
TRIES = 200
BATCH = 8
ROUND = 96
"""The most conditions of a round."""
LATER_BATCHES = 3
"""Batches of a round after its first finding: they often make it worse."""
OTHER_SEEDS = 3
ON_CLUSTER = 16
"""Attempts to shrink that a cluster makes at once."""
FIXED = ("name", "kernel", "seed", "test.length", "test.delay", "measure")
"""Keys that shrinking does not remove: defaults would make runs longer."""
UNJUDGED, IMPOSSIBLE, REFUSED = 1.0, 2.0, 3.0
"""The order in which the optimiser sees conditions; those with a shortfall are below 0."""


class SearchProgress(StudyProgress, Protocol):
    """The callbacks of a search."""

    def search(self, reached: int, total: int, text: str) -> None:
        """Conditions that were tried, of `total`; the state as text."""


class SilentSearch(SilentStudy):
    """Progress that is not shown."""

    def search(self, reached: int, total: int, text: str) -> None:
        pass


@dataclass(frozen=True)
class SearchTask:
    """The question of a search."""

    source: Any
    overrides: Sequence[str | tuple[str, Any]]
    base: Scenario
    expression: Expression
    space: Space
    key: str
    control: Any
    rivals: Mapping[str, Any]
    factor: float

    def table(self, point: Point) -> dict[str, Any]:
        """Return the scenario at a point. Raises `InputError`."""
        changes = [*self.overrides, *self.space.changes(point)]
        return merged(self.source, changes, seed=self.base.seed, kernel=self.base.kernel)


def search(
    source: str | Path | Mapping[str, Any],
    worst: str,
    over: Sequence[str],
    *,
    rivals: str = RIVALS,
    factor: float = FACTOR,
    tries: int = TRIES,
    shrink: int = SHRINK,
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    seed: int | None = None,
    kernel: str | None = None,
    engine: str = engines.DEFAULT,
    jobs: int | None = None,
    dask: str | None = None,
    out: Path | None = None,
    progress: SearchProgress | None = None,
) -> SearchResult:
    """Search the conditions in which a control of a scenario is `factor` times worse than the best of its rivals.

    `worst`: an expression whose small values are bad; `over`: the conditions, each KEY=VALUE with values left open.
    `rivals`: KEY=A,B, the key of the control and the values to compare with. `tries`: the number of conditions;
    `shrink`: the most attempts to shrink one. `seed`: of the runs and of the proposals. `out`: the folder; a search
    that was interrupted continues there. `jobs`, `dask`: as for `study`. Raises `InputError`, and `MissingError`
    without Optuna.
    """
    for option, number, least in (("--tries", tries, 1), ("--shrink", shrink, 0), ("-j", jobs, 1)):
        if number is not None and number < least:
            raise InputError(option, number, f"must be at least {least}")
    task = _task(source, worst, over, rivals, factor, overrides, seed, kernel)
    engines.get(engine, kernel)
    folder = out or STUDIES / f"search-{task.base.name}"
    display = progress or SilentSearch()
    at_once = ON_CLUSTER if dask else jobs or hardware.cpus()
    store = Store(folder, "records")
    with store.locked(), WorkerPool() as workers:
        evaluator = Evaluator(task.expression, task.key, store, task.base.kernel, engine, jobs, dask, workers, display)
        searching = _Search(task, evaluator, display, tries, shrink, at_once)
        searching.run()
        result = SearchResult(
            task.base.name, task.expression.text, task.key, str(task.control), searching.findings, searching.attempts,
            evaluator.completed, tuple(evaluator.refusals), folder,
        )  # fmt: skip
        for finding in result.findings:
            trial = Trial(finding.table, task.control, task.base.seed)
            write(result, finding, evaluator.recording(trial))
    return result


def _task(
    source: str | Path | Mapping[str, Any], worst: str, over: Sequence[str], rivals: str, factor: float,
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]], seed: int | None, kernel: str | None,
) -> SearchTask:  # fmt: skip
    """Check everything before the first run. Raises `InputError`."""
    if not factor > 1:
        raise InputError("--factor", factor, "must be above 1")
    expression = parse(worst, "--worst")
    changes = listed_overrides(overrides)
    base = scenario.load(source, changes, seed=seed, kernel=kernel)
    key, parsed = _parsed_rivals(rivals)
    control = _control(base, key)
    alternatives = {str(value): value for value in parsed if value != control}
    if not alternatives:
        raise InputError("--rivals", rivals, f"needs another value than {control}, which the scenario has")
    _check_effect(base, key, next(iter(alternatives.values())))
    return SearchTask(source, changes, base, expression, parse_space(over, base), key, control, alternatives, factor)


def _parsed_rivals(text: str) -> tuple[str, list[Any]]:
    key, _, written = (part.strip() for part in text.partition("="))
    values = list(split_values(written))
    if not key or not all(values):
        raise InputError("--rivals", text, f"must be KEY=A,B, like {RIVALS}")
    return key, [parse_override(f"{key}={value}")[1] for value in values]


def _control(base: Scenario, key: str) -> Any:
    """Return the value that a scenario has for a key."""
    value: Any = base.model_dump(mode="json")
    for part in parse_override(f"{key}=x")[0]:
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        raise InputError("--rivals", key, "has no value in this scenario; add --set KEY=VALUE with the judged value")
    return value


def _check_effect(base: Scenario, key: str, rival: Any) -> None:
    """Refuse rivals that change no flow, because another key decides."""
    if key.split(".")[-1] != "cc":
        return
    flows = [
        [(stream.name, stream.cc) for stream in runner.planned(each, VIRTUAL).streams if stream.kind == "flow"]
        for each in (base, scenario.load(base, [(key, with_marks(rival))]))
    ]
    if flows[0] == flows[1]:
        allowed = "decides no flow of this scenario; name the key that does, like stack.client.cc or test.flow_cc"
        raise InputError("--rivals", key, allowed)


@dataclass
class _Search:
    """The rounds of a search."""

    task: SearchTask
    evaluator: Evaluator
    progress: SearchProgress
    tries: int
    shrink: int
    at_once: int
    attempts: int = 0
    findings: list[Finding] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def run(self) -> None:
        while self.attempts < self.tries:
            if (hit := self.round()) is not None:
                self.add(*hit)

    def round(self) -> tuple[int, dict[str, Any], Judgement] | None:
        """Try conditions until some batches after the first with a shortfall of the factor. Return the number, the
        scenario and the judgement of the worst; None if there is none."""
        optimiser = Optimiser(self.task.space.places, self.task.base.seed * 1000 + self.attempts)
        worst: tuple[int, dict[str, Any], Judgement] | None = None
        values: list[float] = []
        end = min(self.tries, self.attempts + ROUND)
        while self.attempts < end:
            tables = self.tables(optimiser.ask(min(BATCH, end - self.attempts)))
            judged = self.judged(tables, values)
            optimiser.tell([_order(each) for each in judged])
            for table, judgement in zip(tables, judged, strict=True):
                self.attempts += 1
                if table is not None and judgement.shortfall >= self.task.factor:
                    if worst is None:
                        end = min(end, self.attempts + LATER_BATCHES * BATCH)
                    if worst is None or judgement.shortfall > worst[2].shortfall:
                        worst = self.attempts, table, judgement
            if not values and self.attempts >= BATCH and self.evaluator.refusals:
                raise InputError("--over", "every condition", f"has no value: {self.evaluator.refusals[0]}")
            reached = f"worst {max(each.shortfall for each in judged):.3g} times" if judged else ""
            self.progress.search(self.attempts, self.tries, f"{len(self.findings)} findings, {reached}")
        return worst

    def tables(self, points: Sequence[Point]) -> list[dict[str, Any] | None]:
        """Return the scenarios of points; None for those that cannot be."""
        tables: list[dict[str, Any] | None] = []
        for point in points:
            try:
                tables.append(self.task.table(point))
            except InputError as error:
                self.evaluator.refusals.append(str(error).splitlines()[0])
                tables.append(None)
        return tables

    def judged(self, tables: Sequence[dict[str, Any] | None], round_values: list[float]) -> list[Judgement]:
        """Return the judgements of a batch: with rivals where the value is in the worst quarter of `round_values`.
        Adds the batch's values to `round_values`."""
        seed = self.task.base.seed
        present = [table for table in tables if table is not None]
        of_present = iter(self.evaluator.values([Trial(table, self.task.control, seed) for table in present]))
        values = [None if table is None else next(of_present) for table in tables]
        round_values += [value for value in values if value is not None]
        limit = sorted(round_values)[len(round_values) // 4] if round_values else 0.0
        chosen = [
            table for table, value in zip(tables, values, strict=True)
            if table is not None and value is not None and value <= limit
        ]  # fmt: skip
        of_rivals = iter(self.rivals(chosen, seed))
        return [
            Judgement(seed, value, next(of_rivals) if value is not None and value <= limit else {})
            for value in values
        ]  # fmt: skip

    def rivals(self, tables: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, float | None]]:
        """Return the values of all rivals in several scenarios."""
        trials = [Trial(table, rival, seed) for table in tables for rival in self.task.rivals.values()]
        values = iter(self.evaluator.values(trials))
        return [{name: next(values) for name in self.task.rivals} for _ in tables]

    def add(self, attempt: int, table: dict[str, Any], judgement: Judgement) -> None:
        """Shrink a condition and add it to the findings, unless it is one of them."""
        runs = len(self.evaluator.keys)
        self.progress.search(self.attempts, self.tries, f"shrinking condition {attempt}")
        small = self.shrunk(table, judgement)
        if (kind := _kind(small)) in self.kinds:
            return
        self.kinds.add(kind)
        first = self.task.base.seed
        seeds = range(first, first + 1 + OTHER_SEEDS)
        values = self.evaluator.values([Trial(small, self.task.control, seed) for seed in seeds])
        judgements = tuple(
            Judgement(seed, value, self.rivals([small], seed)[0]) for seed, value in zip(seeds, values, strict=True)
        )
        complete = merged(small, [(self.task.key, self.task.control)])
        number = len(self.findings) + 1
        self.findings.append(Finding(number, attempt, runs, complete, judgement, judgements, self.task.factor))

    def shrunk(self, table: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
        """Return the smallest scenario that shows half of the shortfall, as powers, above the factor."""
        needed = sqrt(self.task.factor * min(judgement.shortfall, 100.0))
        rival, best, seed = self.task.rivals[judgement.rival], judgement.best, judgement.seed

        def holds(candidates: Sequence[dict[str, Any]]) -> list[bool]:
            values = self.evaluator.values([Trial(each, self.task.control, seed) for each in candidates])
            bad = [shortfall(value, best) >= needed for value in values]
            trials = [Trial(each, rival, seed) for each, is_bad in zip(candidates, bad, strict=True) if is_bad]
            rival_values = iter(self.evaluator.values(trials))
            return [
                is_bad and shortfall(value, next(rival_values)) >= needed
                for value, is_bad in zip(values, bad, strict=True)
            ]

        plain = {key: value for key, value in table.items() if key != "description"}
        return shrunk(plain, holds, valid=self._is_valid, fixed=FIXED, tries=self.shrink, at_once=self.at_once)

    def _is_valid(self, table: dict[str, Any]) -> bool:
        try:
            self.evaluator.cell(Trial(table, self.task.control, self.task.base.seed))
        except InputError:
            return False
        return True


def _order(judgement: Judgement) -> float:
    """Return the value that the optimiser sees."""
    if judgement.value is None:
        return REFUSED
    if not judgement.rivals:
        return UNJUDGED + judgement.value / (2 + 2 * abs(judgement.value))
    return -judgement.shortfall if judgement.shortfall > 1 else IMPOSSIBLE


def _kind(table: Mapping[str, Any]) -> str:
    """Return the keys of a scenario, by which findings are the same."""

    def names(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: names(inner) for key, inner in sorted(value.items())}
        return [names(inner) for inner in value] if isinstance(value, list) else ""

    return repr(names(table))
