# SPDX-License-Identifier: Apache-2.0
"""Finds the shortest command that repeats a run, and checks that it gives exactly the stored scenario. If the scenario
is not close to a built-in, the command uses the run's `scenario.json`."""

import json
import shlex
from functools import cache
from typing import Any

from hourglass.contract.capabilities import VIRTUAL
from hourglass.errors import HourglassError
from hourglass.results.flat import Key, flat
from hourglass.results.recording import Recording
from hourglass.results.run_files import SCENARIO_FILE
from hourglass.scenario import Scenario, builtin, load

MOST_SETTINGS = 8


def command(run: Recording) -> str:
    """Return `hourglass run …` with the run's kernel, seed and engine; for a Flent file, a similar `flent` command."""
    if run.info.elsewhere:
        return _flent_command(run)
    short = _short_command(run.scenario) if run.scenario else None
    engine = "" if run.info.engine == VIRTUAL else f" --engine {run.info.engine}"
    return (short if short else f"hourglass run {shlex.quote(str(run.path / SCENARIO_FILE))}") + engine


def _flent_command(run: Recording) -> str:
    test = run.test
    arguments = ["flent", test.name, *(argument for host in test.hosts for argument in ("-H", host)),
             "-l", f"{test.length_s:g}", "-s", f"{test.step_s:g}", "-t", run.name,
             *(word for key, value in test.parameters.items() for word in ("--te", f"{key}={value}"))]  # fmt: skip
    return " ".join(shlex.quote(word) for word in arguments)


@cache
def _builtin(name: str) -> str | None:
    """Return a built-in scenario as canonical JSON."""
    return load(name).to_json().decode() if name in dict(builtin()) else None


def _short_command(stored: Scenario) -> str | None:
    name = stored.name
    text = _builtin(name)
    if text is None:
        return None
    base, values = (dict(flat(json.loads(value))) for value in (text, stored.to_json()))
    if not set(base) <= set(values):
        return None
    changed = {key: value for key, value in values.items() if base.get(key) != value}
    settings = [f"{_dotted(key)}={_value_text(value)}" for key, value in changed.items() if len(key) > 1]
    options = [[f"--{key[0]}", str(value)] for key, value in changed.items() if len(key) == 1]
    if len(settings) > MOST_SETTINGS or any(key[0] not in ("kernel", "seed") for key in changed if len(key) == 1):
        return None
    try:
        rebuilt = load(name, settings, kernel=stored.kernel, seed=stored.seed)
    except HourglassError:
        return None
    if rebuilt != stored:
        return None
    arguments = ["hourglass", "run", name, *(word for setting in settings for word in ("--set", setting)),
             *(word for option in options for word in option)]  # fmt: skip
    return " ".join(shlex.quote(word) for word in arguments)


def _dotted(key: Key) -> str:
    """Return the key for `--set`: parts with dots are quoted, except after `sysctl`."""
    return ".".join(f'"{part}"' if "." in part and "sysctl" not in key else part for part in key)


def _value_text(value: Any) -> str:
    """Return the value for `--set`: plain text if it is unambiguous, otherwise TOML (as JSON's lists and numbers)."""
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit() and value not in ("true", "false"):
        return value
    return json.dumps(value)
