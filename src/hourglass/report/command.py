# SPDX-License-Identifier: Apache-2.0
"""The command that repeats a run, as short as it can be made and checked: it stands for the stored scenario, byte by
byte. A scenario that is no built-in, or is too far from one, is repeated from the run's own `scenario.json`."""

import json
import shlex
from functools import cache
from typing import Any

from hourglass.contract.capabilities import VIRTUAL
from hourglass.errors import HourglassError
from hourglass.results.files import SCENARIO_FILE
from hourglass.results.flat import Key, flat
from hourglass.results.recording import Recording
from hourglass.scenario import Scenario, builtin, load

MOST_SETTINGS = 8


def command(run: Recording) -> str:
    """`hourglass run …` with kernel, seed and engine of the run; of a file of Flent's, what measures the like."""
    if run.info.elsewhere:
        return _flent(run)
    short = _short(run.scenario) if run.scenario else None
    engine = "" if run.info.engine == VIRTUAL else f" --engine {run.info.engine}"
    return (short if short else f"hourglass run {shlex.quote(str(run.path / SCENARIO_FILE))}") + engine


def _flent(run: Recording) -> str:
    test = run.test
    words = ["flent", test.name, *(word for host in test.hosts for word in ("-H", host)),
             "-l", f"{test.length_s:g}", "-s", f"{test.step_s:g}", "-t", run.name,
             *(word for key, value in test.parameters.items() for word in ("--te", f"{key}={value}"))]  # fmt: skip
    return " ".join(shlex.quote(word) for word in words)


@cache
def _builtin(name: str) -> str | None:
    """A built-in scenario as canonical JSON."""
    return load(name).to_json().decode() if name in dict(builtin()) else None


def _short(stored: Scenario) -> str | None:
    name = stored.name
    text = _builtin(name)
    if text is None:
        return None
    base, mine = (dict(flat(json.loads(value))) for value in (text, stored.to_json()))
    if not set(base) <= set(mine):
        return None
    changed = {key: value for key, value in mine.items() if base.get(key) != value}
    settings = [f"{_dotted(key)}={_word(value)}" for key, value in changed.items() if len(key) > 1]
    options = [[f"--{key[0]}", str(value)] for key, value in changed.items() if len(key) == 1]
    if len(settings) > MOST_SETTINGS or any(key[0] not in ("kernel", "seed") for key in changed if len(key) == 1):
        return None
    try:
        again = load(name, settings, kernel=stored.kernel, seed=stored.seed)
    except HourglassError:
        return None
    if again != stored:
        return None
    words = ["hourglass", "run", name, *(word for one in settings for word in ("--set", one)),
             *(word for option in options for word in option)]  # fmt: skip
    return " ".join(shlex.quote(word) for word in words)


def _dotted(key: Key) -> str:
    """As `--set` reads it: parts with dots are quoted, those behind `sysctl` are not."""
    return ".".join(f'"{part}"' if "." in part and "sysctl" not in key else part for part in key)


def _word(value: Any) -> str:
    """A value as `--set` reads it: text as it is when nothing else reads so, else TOML (JSON's lists and numbers)."""
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit() and value not in ("true", "false"):
        return value
    return json.dumps(value)
