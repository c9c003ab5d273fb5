# SPDX-License-Identifier: Apache-2.0
"""Opens a run directory as a `Recording`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from hourglass.contract.plan import Plan
from hourglass.contract.run import RunInfo
from hourglass.contract.summary import Summary
from hourglass.errors import HourglassError, InputError
from hourglass.results import older
from hourglass.results.files import PLAN_FILE, RECORDS_FILE, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE, TABLE_FILE
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, Traffic
from hourglass.results.records import Tables
from hourglass.results.summarize import code, summarize

if TYPE_CHECKING:
    from hourglass.scenario import Scenario

Model = TypeVar("Model", bound=BaseModel)


def open_run(path: Path, axes: Mapping[str, str] | None = None, sweep: str = "") -> Recording:
    """The run in directory `path`, of a sweep of this name with these axes (`Recording.axes`). Raises `InputError` when
    there is none, when it failed, or when an older version of Hourglass made it."""
    if not path.is_dir():
        raise InputError(
            "run", str(path), "there is no such directory, and it is no .flent.gz file; `hourglass run` makes one"
        )
    if (path / TABLE_FILE).is_file():
        raise InputError("run", str(path), "is the folder of a sweep, of many runs: hourglass.load_all opens them")
    if not (path / RUN_FILE).is_file():
        raise InputError("run", str(path), f"is not a run directory: it holds no {RUN_FILE}")
    return Recording(RunDirectory(path), axes, sweep)


class RunDirectory:
    """A run directory as the source of a recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        written, planned = self._completed()
        self._plan = self._read_plan(planned)
        self._info = self._checked(RunInfo, RUN_FILE, written)

    def _completed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What run.json and plan.json say, of a run that came to its end and can be read."""
        written = self._json(RUN_FILE)
        if written.get("status") != "complete":
            reason = written.get("error", "unknown reason")
            raise InputError(
                "run", str(self.path), f"is a run that did not complete ({reason}); run the scenario again"
            )
        planned = self._json(PLAN_FILE)
        older.check(self.path, written, planned)  # before what only some versions' runs hold
        return written, planned

    def _read_plan(self, planned: dict[str, Any]) -> Plan:
        try:
            written = older.current(planned)
        except (KeyError, TypeError) as error:
            raise HourglassError(f"{self.path / PLAN_FILE}: is no plan ({error!r}); run the scenario again") from error
        return self._checked(Plan, PLAN_FILE, written)

    def info(self) -> RunInfo:
        return self._info

    def experiment(self) -> Experiment:
        written = self._json(SCENARIO_FILE)
        try:
            return _experiment(written, self._info.virtual_s if self._plan.apps_end else None)
        except (KeyError, TypeError, ValueError) as error:
            raise HourglassError(f"{self.path / SCENARIO_FILE}: is no scenario ({error!r})") from error

    def traffic(self) -> Traffic:
        known = self._plan
        return Traffic(
            min(known.end_ns, round(self._info.virtual_s * NS_PER_S)) if known.apps_end else known.end_ns,
            tuple(known.nodes),
            tuple(known.streams),
            tuple(known.paths),
            tuple(known.radios),
            tuple(known.apps),
            tuple(known.rooms),
        )

    def scenario(self) -> "Scenario | None":
        from hourglass.scenario.load import load  # costs a fifth of a second, and few readers of a run ask for it

        try:
            return load(self._json(SCENARIO_FILE))
        except HourglassError:
            return None

    def tables(self) -> Tables:
        return Tables(self.path / RECORDS_FILE)

    def summary(self, recording: Recording) -> Summary:
        """As it was written when the run ended, if that was by the same code of this package; else from the records."""
        if not (self.path / SUMMARY_FILE).is_file():
            return summarize(recording)
        if self._info.results == code():
            return self._checked(Summary, SUMMARY_FILE, self._json(SUMMARY_FILE))
        return summarize(Recording(self))  # of many older runs, all tables are too many to be kept

    def _checked(self, model: type[Model], name: str, written: dict[str, Any]) -> Model:
        try:
            return model.model_validate(written)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            problem = f"{where}: {first['msg']}" if where else first["msg"]
            raise HourglassError(f"{self.path / name}: cannot be read ({problem}); run the scenario again") from error

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            value = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise HourglassError(f"{path}: the run directory lacks this file; run the scenario again") from None
        except (OSError, ValueError) as error:
            raise HourglassError(f"{path}: cannot be read ({error}); run the scenario again") from error
        if not isinstance(value, dict):
            raise HourglassError(f"{path}: is not a JSON object; run the scenario again")
        return value


def _told(module: dict[str, Any]) -> dict[str, Any]:
    """A module's parameters, and its files by what stands for their texts."""
    files = {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in module["files"].items()}
    return {**files, **module.get("parameters", {})}


def _experiment(scenario: dict[str, Any], virtual_s: float | None) -> Experiment:
    """What the resolved scenario, as it is stored, says of the test. `virtual_s`: how long it took, if programs say."""
    test = scenario["test"]
    told = {key: text(value) for key, value in test.items() if key not in PLAIN and value not in (None, [])}
    info = TestInfo(
        name=test["name"],
        client=test["client"],
        server=test["server"],
        hosts=tuple(test.get("hosts") or [test["server"]]),
        length_s=test["length"] if virtual_s is None else virtual_s,
        delay_s=test["delay"],
        step_s=test["step"],
        parameters=told,
    )
    asked = {key: value for key, value in scenario.items() if key != "check"}
    if "module" in asked:
        asked["module"] = {one["name"]: _told(one) for one in asked["module"]}
    settings = dict(flat(asked))
    expected = {one["name"]: one["expect"] for one in scenario.get("app", [])}
    described = scenario.get("description", "")
    return Experiment(scenario["name"], described, info, settings, scenario.get("check", {}), expected)


NS_PER_S = 10**9
PLAIN = ("name", "client", "server", "hosts", "length", "delay", "step")
"""Keys of every test."""


def text(value: object) -> str:
    """A parameter as one writes it on a command line: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
