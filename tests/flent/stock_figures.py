# SPDX-License-Identifier: Apache-2.0
"""Answers requests about files and tests with stock Flent's own code. It runs in stock Flent's environment.

Each line of the input is a request in JSON, each line of the output its answer:

- `{"test": NAME, "settings": {...}, "parameters": {...}}`: the test's lengths and its series, each with the keys of
  `KEYS` that stock Flent gives it;
- `{"path": PATH, "zone": ZONE, "questions": [[series, reducer, cutoff], ...]}`: for each question the reducer's value
  and its number of samples. `cutoff` is null or [start, end] in s. An end up to 0 is relative to the total length.
  With `settings` and `parameters`, the series that the file's test computes are added first;
- `{}`: the names of all tests.
"""

import json
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from flent import combiners, resultset, runners
from flent.settings import DEFAULT_SETTINGS, Settings, parser
from flent.testenv import TEST_PATH

KEYS = ("runner", "test", "length", "delay", "units", "udp")


def load_test(name: str, settings: dict[str, Any], parameters: dict[str, str]) -> Any:
    """Return stock Flent's settings after it read the test's definition."""
    return _load_test(name, json.dumps(settings), json.dumps(parameters))


@cache
def _load_test(name: str, settings: str, parameters: str) -> Any:
    loaded = parser.parse_args(args=[], namespace=Settings(DEFAULT_SETTINGS))
    for key, value in json.loads(settings).items():
        setattr(loaded, key, value)
    loaded.TEST_PARAMETERS = json.loads(parameters)
    loaded.load_test(name, informational=True)
    return loaded


def describe(test: str, settings: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
    """Return the lengths and series of a test."""
    loaded = load_test(test, settings, parameters)
    series = {name: {key: keys[key] for key in KEYS if key in keys} for name, keys in loaded.DATA_SETS.items()}
    computed = [
        name for name, keys in series.items() if issubclass(runners.get(keys["runner"]), runners.ComputingRunner)
    ]
    total_length = getattr(loaded, "TOTAL_LENGTH", None)
    return {"length": loaded.LENGTH, "total_length": total_length, "series": series, "computed": computed}


def answers(path: str, zone: str, questions: list[list[Any]], **test: Any) -> list[list[Any]]:
    """Return (value, samples) for each question. The series that a test computes are added first."""
    os.environ["TZ"] = zone
    time.tzset()
    file = resultset.load(path)
    if test:
        load_test(file.meta("NAME"), test["settings"], test["parameters"]).compute_missing_results(file)
    values = []
    for series, reducer, cutoff in questions:
        reduce = combiners.get_reducer(reducer, cutoff, [])
        value = reduce(file, {"data": series})
        values.append([None if value is None else float(value), reduce.N])
    return values


def serve() -> None:
    """Answer until the input ends. The messages of stock Flent go to the error output."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if "path" in request:
            answer = answers(**request)
        elif "test" in request:
            answer = describe(**request)
        else:
            answer = sorted(path.stem for path in Path(TEST_PATH).glob("*.conf"))
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    serve()
