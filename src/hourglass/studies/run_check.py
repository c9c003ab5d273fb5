# SPDX-License-Identifier: Apache-2.0
"""Compare runs with bounds: existing runs, or those of scenarios, which are made first if they do not exist."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hourglass import runner, scenario
from hourglass.api import load_all
from hourglass.contract import bounds as language
from hourglass.contract.bounds import Bound
from hourglass.contract.summary import CheckVerdict
from hourglass.engine import engines
from hourglass.errors import GuestError, HourglassError, InputError
from hourglass.flent import read
from hourglass.results.check_verdicts import judge
from hourglass.results.recording import Recording
from hourglass.runner import Prepared, RunProgress, SilentRunProgress
from hourglass.scenario import Scenario
from hourglass.studies.cells import GridCell
from hourglass.studies.runs import SilentStudy, StudyProgress, make
from hourglass.studies.store import Store

Target = str | Path | Mapping[str, Any] | Scenario | Recording
Overrides = Mapping[str, Any] | Sequence[str | tuple[str, Any]]
Bounds = Mapping[str, str] | Sequence[str]
Outcomes = dict[bytes, HourglassError | None]
"""By scenario the error of its run, None of a complete one."""


class CheckProgress(RunProgress, StudyProgress, Protocol):
    """The callbacks of a run and of a study: several runs are shown as a study."""


class SilentCheck(SilentRunProgress, SilentStudy):
    """Progress that is not shown."""


@dataclass(frozen=True)
class RunVerdict:
    """The verdicts on a run's bounds. `error`: the run failed; `run` is then None. `name`, `seed`: the scenario's."""

    name: str
    run: Recording | None
    checks: list[CheckVerdict] = field(default_factory=list)
    error: HourglassError | None = None
    seed: int | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and all(check.ok for check in self.checks)

    @property
    def reason(self) -> str:
        """Return the error of the run, or the value of the first bound."""
        if self.error is not None:
            return str(self.error).splitlines()[0]
        return next((f"{check.figure} is {check.value} {check.unit}" for check in self.checks), "")

    @property
    def missed(self) -> list[CheckVerdict]:
        return [check for check in self.checks if not check.ok]


@dataclass(frozen=True)
class CheckedRun(GridCell):
    """A run where `hourglass run` puts it."""

    directory: Path = Path()

    @property
    def key(self) -> str:
        return self.directory.name


def check(
    *targets: Target,
    bounds: Bounds = (),
    overrides: Overrides = (),
    seed: int | None = None,
    seeds: Sequence[int] = (),
    kernel: str | None = None,
    engine: str = engines.DEFAULT,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    progress: CheckProgress | None = None,
) -> list[RunVerdict]:
    """Compare runs with bounds: directories, folders of sweeps, Flent files, recordings, or scenarios. Scenarios are
    loaded with `overrides`, `kernel` and `seed`, or once with each of `seeds`. A scenario's run is made unless it
    exists where `run` would put it, and with `force` even then. `jobs` and `dask` are those of `study`.

    `bounds` ("ping.icmp.p99 < 20ms", or {name: bound}) follow the scenario's bounds. Raises `InputError` for mistakes
    in targets or bounds, before any run is made. A failed run is a verdict with an error.
    """
    extra, progress = language.read_all(bounds), progress or SilentCheck()
    numbers = tuple(seeds) or (seed,)
    changes = {"--set": overrides or None, "--seeds": seeds or seed, "--kernel": kernel}
    engines.get(engine, kernel)
    if jobs is not None and jobs < 1:
        raise InputError("jobs", jobs, "must be at least 1")
    todo: list[Recording | Scenario] = []
    for target in targets:
        if isinstance(target, Recording):
            todo.append(target)
        elif isinstance(target, str | Path) and (Path(target).is_dir() or read.is_flent(Path(target))):
            todo += load_all([Path(target)])
        else:
            todo += [scenario.load(target, overrides, seed=number, kernel=kernel) for number in numbers]
    for each in todo:
        _refuse(each, extra, next((option for option, value in changes.items() if value is not None), None))
    scenarios = [each for each in todo if isinstance(each, Scenario)]
    outcomes = _make_missing(scenarios, engine, jobs, dask, force, progress) if dask or len(scenarios) > 1 else {}
    return [_verdict(each, extra, engine, outcomes, force, progress) for each in todo]


def _refuse(source: Recording | Scenario, extra: list[Bound], change: str | None) -> None:
    """Refuse a source without a bound, and changes to a complete run. Raises `InputError`."""
    if isinstance(source, Recording):
        label, bounded = str(source.path), bool(source.experiment.checks or source.apps)
        if change:
            raise InputError(change, label, "is a finished run, which cannot be changed; give its scenario")
    else:
        label, bounded = source.name, bool(source.check or source.app)
    if not bounded and not extra:
        raise InputError("check", label, "has no bound: no [check], no program, and no --bound")


def _make_missing(
    scenarios: Sequence[Scenario], engine: str, jobs: int | None, dask: str | None, force: bool, progress: CheckProgress
) -> Outcomes:
    """Make the runs that do not exist, in parallel. Runs that are never the same again are left out."""
    outcomes: Outcomes = {}
    cells: dict[bytes, CheckedRun] = {}
    for each in scenarios:
        try:
            prepared = runner.prepare(each, engine, progress)
        except HourglassError as error:
            outcomes[each.to_json()] = error
            continue
        if prepared.repeatable:
            cells[each.to_json()] = _cell(each, prepared)
    store = Store(runner.RUNS, "records", runner.RUNS)
    with ExitStack() as locked:
        for directory in sorted({cell.directory for cell in cells.values()}):
            locked.enter_context(runner.locked(directory))
        make(cells.values(), store, jobs=jobs, dask=dask, force=force, progress=progress)
        for scenario_json, cell in cells.items():
            failure = None if store.done(cell.key) else store.failure(cell.key)
            log, code = store.log(cell.key), store.failure_code(cell.key)
            outcomes[scenario_json] = None if failure is None else GuestError(failure, log, code=code)
    return outcomes


def _cell(loaded: Scenario, prepared: Prepared) -> CheckedRun:
    name, seconds = f"{loaded.name} seed={loaded.seed}", loaded.test.length + 2 * loaded.test.delay
    return CheckedRun(
        name, {}, loaded.to_json(), loaded.kernel, prepared.identity, seconds, prepared.engine.name,
        directory=prepared.directory,
    )  # fmt: skip


def _verdict(
    source: Recording | Scenario,
    extra: list[Bound],
    engine: str,
    outcomes: Outcomes,
    force: bool,
    progress: CheckProgress,
) -> RunVerdict:
    if isinstance(source, Recording):
        seed = None if source.info.elsewhere else source.info.seed
        return _judged(source.name, source, extra, seed)
    scenario_json = source.to_json()
    try:
        if (error := outcomes.get(scenario_json)) is not None:
            raise error
        if force and scenario_json not in outcomes:
            run = runner.run(source, engine=engine, progress=progress)
        else:
            run = runner.run_once(source, engine=engine, progress=progress)
        return _judged(source.name, run, extra, source.seed)
    except HourglassError as error:
        return RunVerdict(source.name, None, error=error, seed=source.seed)


def _judged(name: str, run: Recording, extra: list[Bound], seed: int | None) -> RunVerdict:
    summary = run.summary
    return RunVerdict(name, run, [*summary.checks, *judge(extra, summary)], seed=seed)
