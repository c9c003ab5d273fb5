# SPDX-License-Identifier: Apache-2.0
"""Open a run directory as a `Recording`."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from hourglass import files
from hourglass.contract.plan import Plan
from hourglass.contract.run_json import RunInfo
from hourglass.contract.summary import Summary
from hourglass.errors import HourglassError, InputError
from hourglass.results import plan_versions
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, TrafficPlan
from hourglass.results.records import Tables
from hourglass.results.run_files import PLAN_FILE, RECORDS_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE, TABLE_FILE
from hourglass.results.summarize import code_version, summarize

if TYPE_CHECKING:
    from hourglass.scenario import Scenario

Model = TypeVar("Model", bound=BaseModel)


def open_run(path: Path, axes: Mapping[str, str] | None = None, sweep: str = "") -> Recording:
    """Return the run in directory `path`, of a sweep of this name with these axes (`Recording.axes`). Raises
    `InputError` if the directory holds no run, a failed run, or a run of an older version of Hourglass."""
    if not path.is_dir():
        raise InputError(
            "run", str(path), "no such directory, and not a .flent.gz file; `hourglass run` makes a run directory"
        )
    if (path / TABLE_FILE).is_file():
        raise InputError("run", str(path), "is a sweep's folder with many runs; open it with hourglass.load_all")
    if not (path / RUN_FILE).is_file():
        raise InputError("run", str(path), f"is not a run directory: it lacks {RUN_FILE}")
    return Recording(RunDirectory(path), axes, sweep)


class RunDirectory:
    """A run directory as the source of a recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        info, plan_document = self._read_completed()
        self._plan = self._read_plan(plan_document)
        self._info = self._checked(RunInfo, RUN_FILE, info)

    def _read_completed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return run.json and plan.json of a run that completed and is readable."""
        info = self._json(RUN_FILE)
        if info.get("status") != "complete":
            reason = info.get("error", "unknown reason")
            raise InputError("run", str(self.path), f"is a run that did not complete ({reason}); rerun the scenario")
        plan_document = self._json(PLAN_FILE)
        plan_versions.check(self.path, info, plan_document)  # before files that only some versions' runs have
        return info, plan_document

    def _read_plan(self, plan_document: dict[str, Any]) -> Plan:
        try:
            upgraded = plan_versions.upgrade(plan_document)
        except (KeyError, TypeError, AttributeError) as error:
            raise HourglassError(f"{self.path / PLAN_FILE}: is not a plan ({error!r}); rerun the scenario") from error
        return self._checked(Plan, PLAN_FILE, upgraded)

    def info(self) -> RunInfo:
        return self._info

    def experiment(self) -> Experiment:
        scenario_document = self._json(SCENARIO_FILE)
        try:
            return _experiment(scenario_document, self._info.virtual_s if self._plan.apps_end else None)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise HourglassError(f"{self.path / SCENARIO_FILE}: is not a scenario ({error!r})") from error

    def traffic(self) -> TrafficPlan:
        plan = self._plan
        return TrafficPlan(
            min(plan.end_ns, round(self._info.virtual_s * NS_PER_S)) if plan.apps_end else plan.end_ns,
            tuple(plan.nodes),
            tuple(plan.streams),
            tuple(plan.paths),
            tuple(plan.radios),
            tuple(plan.apps),
            tuple(plan.rooms),
        )

    def scenario(self) -> "Scenario | None":
        from hourglass.scenario.load import load  # takes a fifth of a second, and few readers of a run need it

        try:
            return load(self._json(SCENARIO_FILE), folder=self.path)  # may be a stranger's
        except HourglassError:
            return None

    def tables(self) -> Tables:
        return Tables(self.path / RECORDS_FILE)

    def summary(self, recording: Recording) -> Summary:
        """Return the summary that was stored when the run ended, if the same code of this package wrote it; else
        compute it from the records."""
        if not (self.path / SUMMARY_FILE).is_file():
            return summarize(recording)
        if self._info.results == code_version():
            return self._checked(Summary, SUMMARY_FILE, self._json(SUMMARY_FILE))
        return summarize(Recording(self))  # the tables of many older runs are too many to cache

    def _checked(self, model: type[Model], name: str, document: dict[str, Any]) -> Model:
        try:
            return model.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            problem = f"{key}: {first['msg']}" if key else first["msg"]
            raise HourglassError(f"{self.path / name}: cannot be read ({problem}); rerun the scenario") from error

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            value = files.parsed(files.regular(path, JSON_MAX))
        except FileNotFoundError:
            raise HourglassError(f"{path}: the run directory lacks this file; rerun the scenario") from None
        except OSError as error:
            raise HourglassError(f"{path}: cannot be read: {error.strerror}; rerun the scenario") from error
        except ValueError as error:
            raise HourglassError(f"{path}: cannot be read ({error}); rerun the scenario") from error
        if not isinstance(value, dict):
            raise HourglassError(f"{path}: is not a JSON object; rerun the scenario")
        return value


def _module_settings(module: dict[str, Any]) -> dict[str, Any]:
    """Return a module's parameters, and digests of its files instead of their texts."""
    files = {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in module["files"].items()}
    return {**files, **module.get("parameters", {})}


def _experiment(scenario: dict[str, Any], virtual_s: float | None) -> Experiment:
    """Return the experiment of a stored scenario. `virtual_s`: its length, if programs decide it."""
    test = scenario["test"]
    parameters = {key: text(value) for key, value in test.items() if key not in COMMON_KEYS and value not in (None, [])}
    info = TestInfo(
        name=test["name"],
        client=test["client"],
        server=test["server"],
        hosts=tuple(test.get("hosts") or [test["server"]]),
        length_s=test["length"] if virtual_s is None else virtual_s,
        delay_s=test["delay"],
        step_s=test["step"],
        parameters=parameters,
    )
    configured = {key: value for key, value in scenario.items() if key != "check"}
    if "module" in configured:
        configured["module"] = {module["name"]: _module_settings(module) for module in configured["module"]}
    settings = dict(flat(configured))
    expected = {app["name"]: app["expect"] for app in scenario.get("app", [])}
    description = scenario.get("description", "")
    return Experiment(scenario["name"], description, info, settings, scenario.get("check", {}), expected)


NS_PER_S = 10**9
JSON_MAX = 512 * 2**20
"""The most bytes of a JSON file of a run: a scenario may include files of 8 MiB each."""
COMMON_KEYS = ("name", "client", "server", "hosts", "length", "delay", "step")
"""Keys of every test."""


def text(value: object) -> str:
    """Return a parameter as users write it on a command line: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
