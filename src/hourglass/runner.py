# SPDX-License-Identifier: Apache-2.0
"""Scenario → plan → engine → run directory: the one way to make a run, for the command line and for Python alike."""

import contextlib
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import hourglass.plan as plans
from hourglass.contract.run import SCHEMA, FailedRun, RunInfo
from hourglass.engine import engines
from hourglass.engine.base import Preload
from hourglass.errors import GuestError, HourglassError
from hourglass.results.directory import Staging, readable_errors, refuse_another, staging
from hourglass.results.files import RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.scenario import Scenario

if TYPE_CHECKING:
    from hourglass.results.recording import Recording

RUNS = Path("runs")
"""Where runs go that are given no place, below the current directory."""


class Progress(Protocol):
    """What is told while a run is made. Both are called from the thread that called `run`."""

    def kernel(self, fraction: float, step: str) -> None:
        """A kernel is being built: how far it is (0 to 1) and what is being done."""

    def time(self, reached_s: float, total_s: float) -> None:
        """The guest runs: virtual seconds reached, and of how many."""


class Silent:
    """Progress nobody looks at."""

    def kernel(self, fraction: float, step: str) -> None:
        pass

    def time(self, reached_s: float, total_s: float) -> None:
        pass


def run(
    scenario: Scenario,
    out: Path | None = None,
    *,
    engine: str = engines.DEFAULT,
    progress: Progress | None = None,
    preload: Preload | None = None,
    force: bool = False,
) -> "Recording":
    """Runs the scenario; the run directory is `out`, or `runs/<name>-<hash of scenario and engine>`.

    `engine`: one of `engine.engines.ENGINES`. A guest's kernel is built first if it is not there. An older complete run
    at the same place is replaced when the new one is complete; one of another scenario only with `force`. Raises
    `InputError` for what the user can change, `GuestError` when the guest failed (its log is then under
    `<out>.failed`), `MissingError` when the machine lacks something. `preload` loads what the caller will need when the
    run is made: it is called in a thread while the plan is at work.
    """
    progress = progress or Silent()
    kind = engines.chosen(engine)
    plan = plans.build(scenario, kind.capabilities)
    described = scenario.to_json()
    if out is not None and not force:
        refuse_another(out, described, engine)
    ready = kind.ready(scenario.kernel, progress.kernel)
    identity = ready.identity(bool(plan.radios))
    place = out or default_place(scenario.name, described, identity)

    def load_further() -> None:
        from hourglass.results import opening  # noqa: F401

        if preload is not None:
            preload()

    with staging(place) as stage:
        (stage.path / SCENARIO_FILE).write_bytes(described)
        about: dict[str, Any] = {"schema": SCHEMA, "engine": ready.name, "kernel": ready.kernel, "identity": identity}
        about["seed"] = scenario.seed
        try:
            outcome = ready.run(plan, stage.path, progress=progress.time, preload=load_further)
            from hourglass.results.opening import open_run
            from hourglass.results.summarize import code

            complete = RunInfo(**about, **asdict(outcome), results=code(), status="complete")
            _write(stage, RUN_FILE, complete.model_dump(by_alias=True))
            made = open_run(stage.path)
            _write(stage, SUMMARY_FILE, made.summary.data())
        except (HourglassError, KeyboardInterrupt) as error:
            with contextlib.suppress(HourglassError):
                failed = FailedRun(**about, status="failed", error=_reason(error))
                _write(stage, RUN_FILE, failed.model_dump(by_alias=True))
            raise
        stage.publish()
    made.moved(place)
    return made


def default_place(name: str, scenario_json: bytes, identity: str) -> Path:
    """`runs/<name>-<first 10 hex of sha256>`: what gives the same records always goes to the same place."""
    return RUNS / f"{name}-{hashlib.sha256(scenario_json + identity.encode()).hexdigest()[:10]}"


def _reason(error: BaseException) -> str:
    if isinstance(error, GuestError):
        return error.reason
    return str(error) if isinstance(error, HourglassError) else "interrupted"


def _write(stage: Staging, name: str, value: dict[str, Any]) -> None:
    with readable_errors(stage.place):
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        (stage.path / name).write_text(f"{text}\n", "utf-8")
