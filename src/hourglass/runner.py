# SPDX-License-Identifier: Apache-2.0
"""Scenario → plan → engine → run directory: the one way to make a run, for the command line and for Python alike."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import hourglass.plan as plans
from hourglass import __version__, files, locks
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.run import SCHEMA, FailedRun, RunInfo
from hourglass.engine import engines
from hourglass.engine.base import Engine, Preload
from hourglass.errors import GuestError, HourglassError
from hourglass.results.directory import Staging, readable_errors, refuse_another, staging
from hourglass.results.files import APPS_FOLDER, PLAN_FILE, RECORDS_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.scenario import Scenario

if TYPE_CHECKING:
    from hourglass.results.recording import Recording

RUNS = Path("runs")
"""Where runs go that are given no place, below the current directory."""


Recorded = Callable[[Path], object]
"""Told where the records of a run are complete, before figures are made of them: a directory that is renamed later."""


class Progress(Protocol):
    """What is told while a run is made. They are called from the thread that called `run`."""

    def kernel(self, fraction: float, step: str) -> None:
        """A kernel is being built: how far it is (0 to 1) and what is being done."""

    def root(self, fraction: float, step: str) -> None:
        """A root of programs is being made, likewise."""

    def time(self, reached_s: float, total_s: float) -> None:
        """The guest runs: virtual seconds reached, and of how many."""


class Silent:
    """Progress nobody looks at."""

    def kernel(self, fraction: float, step: str) -> None:
        pass

    def root(self, fraction: float, step: str) -> None:
        pass

    def time(self, reached_s: float, total_s: float) -> None:
        pass


def run(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    engine: str = engines.DEFAULT,
    progress: Progress | None = None,
    preload: Preload | None = None,
    recorded: Recorded | None = None,
    force: bool = False,
) -> "Recording":
    """Runs the scenario; the run directory is `out`, or `runs/<name>-<hash of scenario and engine>`.

    `engine`: one of `engine.engines.ENGINES`. A guest's kernel is built first if it is not there. An older complete run
    at the same place is replaced when the new one is complete; one of another scenario only with `force`. Where time is
    real, and no `out` is given, none is: the next one's name ends in `-2`. Raises
    `InputError` for what the user can change, `GuestError` when the guest failed (its log is then under
    `<out>.failed`), `MissingError` when the machine lacks something. `preload` loads what the caller will need when the
    run is made: it is called in a thread while the plan is at work. `recorded` is told where the records are.
    """
    progress, place = progress or Silent(), None if out is None else Path(out)
    if place is not None and not force:
        refuse_another(place, scenario.unchecked().to_json(), engine)
    return make(prepare(scenario, engine, progress), place, progress, preload, recorded)


def run_once(
    scenario: Scenario,
    folder: Path | None = None,
    *,
    engine: str = engines.DEFAULT,
    progress: Progress | None = None,
    preload: Preload | None = None,
) -> "Recording":
    """The run of a scenario as it is there already, or made: in `folder` under its key, or where `run` puts it.

    It is the same run when scenario, plan and engine are; bounds may differ, and those stored are then these. Where
    time is real, no two runs are the same. Whoever asks for one that is being made, in another process too, waits.
    """
    progress = progress or Silent()
    prepared = prepare(scenario, engine, progress)
    place = prepared.place if folder is None else folder / prepared.key
    with locks.held(place.with_name(f".{place.name}.lock")):
        if prepared.engine.capabilities.virtual_time and _is_there(prepared, place):
            return _bounded(scenario, place)
        return make(prepared, place, progress, preload)


@dataclass(frozen=True)
class Prepared:
    """A run that can begin. `identity`: what of the engine decides its records."""

    scenario: Scenario
    plan: Plan
    engine: Engine
    identity: str

    @property
    def described(self) -> bytes:
        """The scenario but for its bounds, which decide nothing."""
        return self.scenario.unchecked().to_json()

    @property
    def place(self) -> Path:
        return default_place(self.scenario.name, self.described, self.identity)

    @property
    def key(self) -> str:
        """32 hex of all that decides the run directory: scenario, plan, engine."""
        parts = (self.described, self.plan.to_json(), f"{self.engine.name} {self.identity}".encode())
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]


def planned(scenario: Scenario, engine: str, able: Capabilities | None = None) -> Plan:
    """The plan of a run. `able`: it is made for less than the engine can do. Raises `InputError`."""
    return plans.build(scenario, able or engines.chosen(engine).capabilities)


def prepare(scenario: Scenario, engine: str, progress: Progress, able: Capabilities | None = None) -> Prepared:
    """Plan and engine of a run; `able` as of `planned`. Raises as `run`."""
    plan = planned(scenario, engine, able)
    ready = engines.chosen(engine).ready(scenario.kernel, progress.kernel, [one.of_kernel() for one in scenario.module])
    return Prepared(scenario, plan, ready, ready.identity(bool(plan.radios), plan.roots, progress.root))


def make(
    prepared: Prepared,
    out: Path | None,
    progress: Progress | None = None,
    preload: Preload | None = None,
    recorded: Recorded | None = None,
) -> "Recording":
    """Makes the run, whatever is there. Raises as `run`."""
    progress = progress or Silent()
    scenario, plan, ready = prepared.scenario, prepared.plan, prepared.engine
    place = out or (prepared.place if ready.capabilities.virtual_time else unused(prepared.place))

    def load_further() -> None:
        from hourglass.results import opening  # noqa: F401

        if preload is not None:
            preload()

    with staging(place) as stage:
        (stage.path / SCENARIO_FILE).write_bytes(scenario.to_json())
        about: dict[str, Any] = {"schema": SCHEMA, "version": __version__, "engine": ready.name, "kernel": ready.kernel}
        about |= {"identity": prepared.identity, "seed": scenario.seed}
        try:
            outcome = ready.run(plan, stage.path, progress=progress.time, preload=load_further)
            from hourglass.results.opening import open_run
            from hourglass.results.summarize import code

            about["kernel"] = ready.kernel
            complete = RunInfo(**about, **asdict(outcome), results=code(), status="complete")
            _write(stage, RUN_FILE, complete.model_dump(by_alias=True))
            if recorded is not None:
                recorded(stage.path)
            made = open_run(stage.path)
            _write(stage, SUMMARY_FILE, made.summary.data())
            _write_outputs(stage, made)
        except (HourglassError, KeyboardInterrupt) as error:
            with contextlib.suppress(HourglassError):
                failed = FailedRun(**about, status="failed", error=_reason(error))
                _write(stage, RUN_FILE, failed.model_dump(by_alias=True))
            raise
        stage.publish()
    made.moved(place)
    return made


def _write_outputs(stage: Staging, made: "Recording") -> None:
    """What each program wrote, with its times."""
    if made.apps:
        from hourglass.results.apps import stamped
    with readable_errors(stage.place):
        for name, program in made.apps.items():
            files.write(stage.path / APPS_FOLDER / f"{name}.log", stamped(program).encode())


def _is_there(prepared: Prepared, place: Path) -> bool:
    """Whether the run directory at a place is the complete run of the same scenario, plan and engine."""
    try:
        made = json.loads((place / RUN_FILE).read_bytes())
        stored = json.loads((place / SCENARIO_FILE).read_bytes())
        planned = (place / PLAN_FILE).read_bytes()
    except (OSError, ValueError):
        return False
    same = (made.get("status"), made.get("engine"), made.get("identity"))
    return (
        same == ("complete", prepared.engine.name, prepared.identity)
        and {**stored, "check": {}} == {**json.loads(prepared.described), "check": {}}
        and planned == prepared.plan.to_json()
        and (place / RECORDS_FILE).is_file()
    )


def _bounded(scenario: Scenario, place: Path) -> "Recording":
    """The run at a place, with the bounds of the scenario."""
    from hourglass.results.opening import open_run

    if (place / SCENARIO_FILE).read_bytes() != scenario.to_json():
        (place / SUMMARY_FILE).unlink(missing_ok=True)  # it holds verdicts on the old ones
        files.write(place / SCENARIO_FILE, scenario.to_json())
    return open_run(place)


def default_place(name: str, scenario_json: bytes, identity: str) -> Path:
    """`runs/<name>-<first 10 hex of sha256>`: what gives the same records always goes to the same place."""
    return RUNS / f"{name}-{hashlib.sha256(scenario_json + identity.encode()).hexdigest()[:10]}"


def unused(place: Path) -> Path:
    """The first of a place, `-2`, `-3` … that is free: where time is real, each run is a measurement of its own."""
    numbered = (place if number == 1 else place.with_name(f"{place.name}-{number}") for number in count(1))
    return next(one for one in numbered if not one.exists())


def _reason(error: BaseException) -> str:
    if isinstance(error, GuestError):
        return error.reason
    return str(error) if isinstance(error, HourglassError) else "interrupted"


def _write(stage: Staging, name: str, value: dict[str, Any]) -> None:
    with readable_errors(stage.place):
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        (stage.path / name).write_text(f"{text}\n", "utf-8")
