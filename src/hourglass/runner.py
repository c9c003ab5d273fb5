# SPDX-License-Identifier: Apache-2.0
"""Make a run from a scenario: plan, engine, run directory. The command line and Python both use this module."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import hourglass.plan as plans
from hourglass import __version__, files, locks
from hourglass import scenario as scenarios
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import Plan
from hourglass.contract.run_json import SCHEMA, FailedRun, RunInfo
from hourglass.engine import engines
from hourglass.engine.base import Engine, Preload
from hourglass.errors import GuestError, HourglassError, ProgramError
from hourglass.results.run_files import APPS_FOLDER, PLAN_FILE, RECORDS_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.results.staging import Staging, readable_errors, refuse_another, staging
from hourglass.scenario import Scenario

if TYPE_CHECKING:
    from hourglass.results.recording import Recording

RUNS = Path("runs")
"""The folder for runs without an explicit path, relative to the current directory."""


Staged = Callable[[Path], object]
"""Called with the directory into which the run is written, before the guest starts. The directory is renamed later."""
Recorded = Callable[[Path], object]
"""Called with the directory of the complete records, before figures are computed. The directory is renamed later."""


class RunProgress(Protocol):
    """Receives the progress of a run, in the thread that called `run`."""

    def kernel(self, fraction: float, step: str) -> None:
        """Report a kernel build: the share from 0 to 1, and the current step."""

    def root(self, fraction: float, step: str) -> None:
        """Report the build of a root of programs in the same way."""

    def time(self, reached_s: float, total_s: float) -> None:
        """Report virtual seconds of the running guest, and their total."""


class SilentRunProgress:
    """Ignores all progress."""

    def kernel(self, fraction: float, step: str) -> None:
        pass

    def root(self, fraction: float, step: str) -> None:
        pass

    def time(self, reached_s: float, total_s: float) -> None:
        pass


def run(
    source: str | Path | Mapping[str, Any] | Scenario,
    out: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    seed: int | None = None,
    kernel: str | None = None,
    engine: str = engines.DEFAULT,
    progress: RunProgress | None = None,
    preload: Preload | None = None,
    recorded: Recorded | None = None,
    force: bool = False,
) -> "Recording":
    """Run a scenario. The run directory is `out`, or `runs/<name>-<hash of scenario and engine>`.

    `source`, `overrides`, `seed` and `kernel` are those of `scenario.load`. `engine`: one of `engine.engines.ENGINES`.
    A missing guest kernel is built first. A complete run replaces an older one at the same path, one of another
    scenario only with `force`. In real time and without `out`, older runs stay: the next one's name ends in `-2`.
    `preload` loads what the caller needs after the run; it is called in a thread during the run. `recorded` receives
    the directory of the records. Raises `InputError` for mistakes of the user, `GuestError` if the guest failed (its
    log is then in `<out>.failed`), `MissingError` if the machine lacks something.
    """
    progress, directory = progress or SilentRunProgress(), None if out is None else Path(out)
    if isinstance(source, str | Path | Mapping) or overrides or seed is not None or kernel is not None:
        engines.get(engine, kernel)
        source = scenarios.load(source, overrides, seed=seed, kernel=kernel)
    scenario = source
    if directory is not None and not force:
        refuse_another(directory, scenario.unchecked().to_json(), engine)
    return make(prepare(scenario, engine, progress), directory, progress, preload, recorded)


def run_once(
    scenario: Scenario,
    folder: Path | None = None,
    *,
    engine: str = engines.DEFAULT,
    progress: RunProgress | None = None,
    preload: Preload | None = None,
) -> "Recording":
    """Return the stored run of a scenario, or make it: in `folder` under its key, or where `run` puts it.

    Runs are the same if scenario, plan and engine are. Their bounds may differ; those of this scenario are then stored.
    In real time, no two runs are the same. While another process makes the same run, this call waits.
    """
    progress = progress or SilentRunProgress()
    prepared = prepare(scenario, engine, progress)
    directory = prepared.directory if folder is None else folder / prepared.key
    with locked(directory):
        if prepared.repeatable and _is_complete(prepared, directory):
            return _bounded(scenario, directory)
        return make(prepared, directory, progress, preload)


def locked(directory: Path) -> AbstractContextManager[None]:
    """Lock a run directory against other processes that make the same run."""
    return locks.exclusive(directory.with_name(f".{directory.name}.lock"))


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to start. `identity`: the engine's part of what decides its records."""

    scenario: Scenario
    plan: Plan
    engine: Engine
    identity: str

    @property
    def described(self) -> bytes:
        """Return the scenario without its bounds, which do not affect the records."""
        return self.scenario.unchecked().to_json()

    @property
    def repeatable(self) -> bool:
        """Return whether another run has the same records: not in real time, nor with folders that may change."""
        return self.engine.capabilities.virtual_time and all(root.kind != "mount" for root in self.plan.roots)

    @property
    def directory(self) -> Path:
        return default_directory(self.scenario.name, self.described, self.identity)

    @property
    def key(self) -> str:
        """Return 32 hex digits of the digest of scenario, plan and engine."""
        parts = (self.described, self.plan.to_json(), f"{self.engine.name} {self.identity}".encode())
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]


def planned(scenario: Scenario, engine: str, able: Capabilities | None = None) -> Plan:
    """Return the plan of a run. `able` limits it to less than the engine's capabilities. Raises `InputError`."""
    return plans.build(scenario, able or engines.get(engine).capabilities)


def prepare(scenario: Scenario, engine: str, progress: RunProgress, able: Capabilities | None = None) -> Prepared:
    """Return plan and engine of a run; `able` as in `planned`. Raises like `run`."""
    plan = planned(scenario, engine, able)
    ready = engines.get(engine).ready(
        scenario.kernel, progress.kernel, [module.of_kernel() for module in scenario.module]
    )
    return Prepared(scenario, plan, ready, ready.identity(bool(plan.radios), plan.roots, progress.root))


def _import_threaded_libraries() -> None:
    """Import the libraries whose import starts threads, before programs may use up the host's processes. Without a
    thread, NumPy's OpenBLAS sends SIGINT to this process, and Polars panics."""
    import numpy  # noqa: F401
    import polars  # noqa: F401


def make(
    prepared: Prepared,
    out: Path | None,
    progress: RunProgress | None = None,
    preload: Preload | None = None,
    recorded: Recorded | None = None,
    staged: Staged | None = None,
) -> "Recording":
    """Make the run, even if it exists. Raises like `run`."""
    progress = progress or SilentRunProgress()
    scenario, plan, ready = prepared.scenario, prepared.plan, prepared.engine
    directory = out or (prepared.directory if ready.capabilities.virtual_time else unused(prepared.directory))

    def load_results() -> None:
        """Import in a thread what the end of the run needs. If the guest fails first, Python ends during the imports
        and refuses them: nobody needs them then. Other errors recur in the main thread."""
        with contextlib.suppress(Exception):
            from hourglass.results import run_directory  # noqa: F401

            if preload is not None:
                preload()

    with staging(directory) as stage:
        (stage.path / SCENARIO_FILE).write_bytes(scenario.to_json())
        about: dict[str, Any] = {"schema": SCHEMA, "version": __version__, "engine": ready.name, "kernel": ready.kernel}
        about |= {"identity": prepared.identity, "seed": scenario.seed, "sandbox": engines.layers(ready)}
        if staged is not None:
            staged(stage.path)
        if plan.apps:
            _import_threaded_libraries()
        try:
            outcome = ready.run(plan, stage.path, progress=progress.time, preload=load_results)
            from hourglass.results.run_directory import open_run
            from hourglass.results.summarize import code_version

            about["kernel"] = ready.kernel
            complete = RunInfo(**about, **asdict(outcome), results=code_version(), status="complete")
            _write(stage, RUN_FILE, complete.model_dump(by_alias=True))
            if recorded is not None:
                recorded(stage.path)
            recording = open_run(stage.path)
            _write(stage, SUMMARY_FILE, recording.summary.data())
            _write_outputs(stage, recording)
        except (HourglassError, KeyboardInterrupt) as error:
            with contextlib.suppress(HourglassError):
                failed = FailedRun(**about, status="failed", **_cause(error))
                _write(stage, RUN_FILE, failed.model_dump(by_alias=True))
            raise
        stage.publish()
    recording.relocate(directory)
    return recording


def _write_outputs(stage: Staging, recording: "Recording") -> None:
    """Write the output of each program with timestamps."""
    if recording.apps:
        from hourglass.results.apps import stamped_output
    with readable_errors(stage.target):
        for name, program in recording.apps.items():
            files.write(stage.path / APPS_FOLDER / f"{name}.log", stamped_output(program).encode())


def _is_complete(prepared: Prepared, directory: Path) -> bool:
    """Return whether a directory has the complete run of the same scenario, plan and engine."""
    try:
        info = json.loads((directory / RUN_FILE).read_bytes())
        stored = json.loads((directory / SCENARIO_FILE).read_bytes())
        planned = (directory / PLAN_FILE).read_bytes()
    except (OSError, ValueError):
        return False
    same = (info.get("status"), info.get("engine"), info.get("identity"))
    return (
        same == ("complete", prepared.engine.name, prepared.identity)
        and {**stored, "check": {}} == {**json.loads(prepared.described), "check": {}}
        and planned == prepared.plan.to_json()
        and (directory / RECORDS_FILE).is_file()
    )


def _bounded(scenario: Scenario, directory: Path) -> "Recording":
    """Return the run in a directory, with the bounds of the scenario."""
    from hourglass.results.run_directory import open_run

    if (directory / SCENARIO_FILE).read_bytes() != scenario.to_json():
        (directory / SUMMARY_FILE).unlink(missing_ok=True)  # its verdicts are about the old bounds
        files.write(directory / SCENARIO_FILE, scenario.to_json())
    return open_run(directory)


def default_directory(name: str, scenario_json: bytes, identity: str) -> Path:
    """Return `runs/<name>-<first 10 hex of sha256>`: runs with the same records have the same path."""
    return RUNS / f"{name}-{hashlib.sha256(scenario_json + identity.encode()).hexdigest()[:10]}"


def unused(directory: Path) -> Path:
    """Return the path, or the first free one with `-2`, `-3` …: in real time, each run is a separate measurement."""
    numbered = (directory if number == 1 else directory.with_name(f"{directory.name}-{number}") for number in count(1))
    return next(candidate for candidate in numbered if not candidate.exists())


def _cause(error: HourglassError | KeyboardInterrupt) -> dict[str, Any]:
    """Return the keys of run.json about an error."""
    if isinstance(error, KeyboardInterrupt):
        return {"error": "interrupted", "code": "interrupted"}
    if isinstance(error, ProgramError):
        error = error.with_output(None)  # it is in the same folder
    return error.data() | ({"error": error.reason} if isinstance(error, GuestError) else {})


def _write(stage: Staging, name: str, value: dict[str, Any]) -> None:
    with readable_errors(stage.target):
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        files.write(stage.path / name, f"{text}\n".encode())
