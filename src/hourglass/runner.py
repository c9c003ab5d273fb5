# SPDX-License-Identifier: Apache-2.0
"""Scenario → plan → engine → run directory: the one way to make a run, for the command line and for Python alike."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import hourglass.plan as plans
from hourglass import load
from hourglass.contract.capabilities import Capabilities
from hourglass.engine import virtual
from hourglass.engine.kernel import store as kernels
from hourglass.errors import GuestError, HourglassError
from hourglass.results.directory import Workshop, readable_errors, workshop
from hourglass.results.files import PLAN_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE
from hourglass.scenario import Scenario

if TYPE_CHECKING:
    from hourglass.results.run import Run

RUNS = Path("runs")
"""Where runs go that are given no place, below the current directory."""

ENGINE = "virtual"
CAPABILITIES = Capabilities(nic="wire", own_kernel=True, virtual_time=True, radios=True, captures=True, layers=True)
READER = "hourglass.results.run"

SCHEMA = 1
"""Schema of `run.json`."""


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
    progress: Progress | None = None,
    meanwhile: Sequence[str] = (),
) -> "Run":
    """Runs the scenario; the run directory is `out`, or `runs/<name>-<hash of scenario and kernel>`.

    The kernel is built first if it is not there. An older complete run at the same place is replaced when the new one
    is complete. Raises `InputError` for what the user can mend, `GuestError` when the guest failed (its log is then
    under `<out>.failed`), `MissingError` when the machine lacks something. `meanwhile`: modules the caller will need
    when the run is made, loaded while the guest runs, which takes a while.
    """
    progress = progress or Silent()
    plan = plans.build(scenario, CAPABILITIES)
    kernel = kernels.ensure(scenario.kernel, progress=progress.kernel)
    described = scenario.to_json()
    place = out or default_place(scenario.name, described, kernel.key)
    with workshop(place) as shop:
        plan_json = plan.to_json()
        (shop.path / SCENARIO_FILE).write_bytes(described)
        (shop.path / PLAN_FILE).write_bytes(plan_json)
        info = {
            "schema": SCHEMA,
            "engine": ENGINE,
            "kernel": {"name": kernel.name, "release": kernel.release, "key": kernel.key},
            "seed": scenario.seed,
        }
        try:
            outcome = virtual.run(
                plan_json,
                kernel,
                shop.path,
                seed=scenario.seed,
                progress=progress.time,
                meanwhile=lambda: [import_module(name) for name in (READER, *meanwhile)],
            )
            from hourglass.results.summary import code

            info |= {"virtual_s": outcome.virtual_s, "wall_s": outcome.wall_s, "digest": outcome.digest}
            info |= {"results": code()}
            _write(shop, RUN_FILE, info | {"status": "complete", "warnings": list(outcome.warnings)})
            made = load(shop.path)
            _write(shop, SUMMARY_FILE, made.summary)
        except (HourglassError, KeyboardInterrupt) as error:
            with contextlib.suppress(HourglassError):
                _write(shop, RUN_FILE, info | {"status": "failed", "error": _reason(error)})
            raise
        shop.publish()
    made.moved(place)
    return made


def default_place(name: str, scenario_json: bytes, kernel_key: str) -> Path:
    """`runs/<name>-<first 10 hex of sha256>`: the same scenario on the same kernel always goes to the same place."""
    return RUNS / f"{name}-{hashlib.sha256(scenario_json + kernel_key.encode()).hexdigest()[:10]}"


def _reason(error: BaseException) -> str:
    if isinstance(error, GuestError):
        return error.reason
    return str(error) if isinstance(error, HourglassError) else "interrupted"


def _write(shop: Workshop, name: str, value: dict[str, Any]) -> None:
    with readable_errors(shop.place):
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        (shop.path / name).write_text(f"{text}\n", "utf-8")
