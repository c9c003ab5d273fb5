# SPDX-License-Identifier: Apache-2.0
"""`check`: bounds judged by runs that are there, and by runs made on the spot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hourglass import load_all, runner, scenario
from hourglass.contract import bounds as language
from hourglass.contract.bounds import Bound
from hourglass.contract.summary import Check
from hourglass.engine import engines
from hourglass.errors import HourglassError, InputError
from hourglass.flent import read
from hourglass.results.checks import judge
from hourglass.results.recording import Recording
from hourglass.runner import Progress
from hourglass.scenario import Scenario

Target = str | Path | Mapping[str, Any] | Scenario | Recording
Bounds = Mapping[str, str] | Sequence[str]


@dataclass(frozen=True)
class Verdict:
    """What came of a run's bounds. `error`: the run could not be made, and there is none. `name`: the scenario's."""

    name: str
    run: Recording | None
    checks: list[Check] = field(default_factory=list)
    error: HourglassError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and all(one.ok for one in self.checks)

    @property
    def missed(self) -> list[Check]:
        return [one for one in self.checks if not one.ok]


def check(
    *targets: Target,
    bounds: Bounds = (),
    overrides: Sequence[str | tuple[str, Any]] = (),
    seed: int | None = None,
    kernel: str | None = None,
    engine: str = engines.DEFAULT,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Judges runs: directories, folders of sweeps, Flent files, recordings, or scenarios, which `scenario.load` takes
    with `overrides`, `seed` and `kernel`. A scenario's run is made unless it is there, where `run` would put it.

    `bounds` ("ping.icmp.p99 < 20ms", or {name: bound}) come after the scenario's own. Raises `InputError` for what is
    wrong with targets or bounds, before any run is made; a run that fails is a verdict with an error.
    """
    given = parsed(bounds)
    changes = {"--set": overrides or None, "--seed": seed, "--kernel": kernel}
    engines.chosen(engine, kernel)
    todo = [one for target in targets for one in _runs(target, given, changes, overrides, seed, kernel)]
    return [_verdict(one, given, engine, progress) for one in todo]


def parsed(given: Bounds) -> list[Bound]:
    """Bounds as the language has them. Raises `InputError`."""
    if isinstance(given, Mapping):
        return [language.parse(name, text) for name, text in given.items()]
    return [language.read(text) for text in ([given] if isinstance(given, str) else given)]


def _runs(
    target: Target,
    given: list[Bound],
    changes: Mapping[str, Any],
    overrides: Sequence[str | tuple[str, Any]],
    seed: int | None,
    kernel: str | None,
) -> list[Recording | Scenario]:
    """What a target stands for. Refuses what has no bound, and changes to a run that is over."""
    found: list[Recording | Scenario]
    if isinstance(target, Recording):
        found = [target]
    elif isinstance(target, str | Path) and (Path(target).is_dir() or read.is_flent(Path(target))):
        found = list(load_all([Path(target)]))
    else:
        found = [scenario.load(target, overrides, seed=seed, kernel=kernel)]
    for one in found:
        own = one.experiment.checks if isinstance(one, Recording) else one.check
        change = next((option for option, value in changes.items() if value is not None), None)
        if isinstance(one, Recording) and change:
            raise InputError(change, str(one.path), "is a run already, which cannot be changed; give its scenario")
        if not own and not given:
            named = str(one.path) if isinstance(one, Recording) else one.name
            raise InputError("check", named, "there is no bound: the scenario has no [check], and none was given")
    return found


def _verdict(one: Recording | Scenario, given: list[Bound], engine: str, progress: Progress | None) -> Verdict:
    try:
        run = one if isinstance(one, Recording) else runner.run_once(one, engine=engine, progress=progress)
        summary = run.summary
    except HourglassError as error:
        return Verdict(one.name, None, error=error)
    return Verdict(one.name, run, [*summary.checks, *judge(given, summary)])
