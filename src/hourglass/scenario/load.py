# SPDX-License-Identifier: Apache-2.0
"""`load`: from a file, a built-in's name or a table, with changes, to a checked `Scenario`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario import module
from hourglass.scenario import overrides as changes
from hourglass.scenario.app_values import DEBIAN_ROOT, file_content
from hourglass.scenario.blame import explain, refusal
from hourglass.scenario.bounds import flat
from hourglass.scenario.check import resolve
from hourglass.scenario.check_apps import END_S, NONE
from hourglass.scenario.model import Scenario
from hourglass.scenario.source import Data, names, read, read_file, read_preset, read_trace

_GRAPH = ("node", "link", "wifi", "shaper", "netem")


def load(
    source: str | Path | Mapping[str, Any] | Scenario,
    overrides: Sequence[str | tuple[str, Any]] = (),
    *,
    seed: int | None = None,
    kernel: str | None = None,
) -> Scenario:
    """The scenario, checked, with every default spelled out.

    `source` is a built-in's name, a TOML file, a scenario as JSON (`scenario.json` of a run; its name ends in .json), a
    table of the same keys, or a scenario. `overrides` are "dotted.key=value", or pairs of the two, and see the testbed
    written out, preset or not; `testbed.preset` replaces the testbed. `seed` and `kernel` win over both. Raises
    `InputError` for whatever is wrong.
    """
    data, folder = read(source.model_dump(mode="json") if isinstance(source, Scenario) else source)
    parsed = [changes.parse(one) for one in overrides]
    _choose_preset(data, [value for parts, value in parsed if parts == ["testbed", "preset"]])
    _expand_preset(data)
    if isinstance(data.get("check"), dict):
        data["check"] = flat(data["check"])
    rest = [change for change in parsed if change[0] != ["testbed", "preset"]]
    changes.apply(data, sorted(rest, key=lambda change: change[0] != ["test", "name"]))
    data.update({key: value for key, value in (("seed", seed), ("kernel", kernel)) if value is not None})
    _read_traces(data, folder)
    _complete_apps(data, folder)
    module.take(data, folder)
    try:
        scenario = Scenario.model_validate(data, context=module.names(data))
    except ValidationError as error:
        raise explain(error, data) from None
    return resolve(scenario)


def builtin() -> list[tuple[str, str]]:
    """(name, description) of the built-in scenarios."""
    return [(name, str(read(name)[0].get("description", ""))) for name in names(SCENARIOS)]


def presets() -> list[tuple[str, str]]:
    """(name, description) of the preset testbeds."""
    return [(name, str(read(PRESETS / f"{name}.toml")[0].get("description", ""))) for name in names(PRESETS)]


def _choose_preset(data: Data, chosen: list[Any]) -> None:
    if not chosen:
        return
    testbed = data.setdefault("testbed", {})
    if isinstance(testbed, dict):
        for key in _GRAPH:
            testbed.pop(key, None)
        testbed["preset"] = chosen[-1]


def _expand_preset(data: Data) -> None:
    """Writes the preset's testbed in place of its name."""
    testbed = data.get("testbed")
    if not isinstance(testbed, dict) or "preset" not in testbed:
        return
    for key in _GRAPH:
        if key in testbed:
            raise refusal(f"testbed.{key}", testbed[key], "goes without preset: a testbed is a preset or spelled out")
    preset = read_preset(testbed.pop("preset"))
    data["testbed"] = preset | testbed


def _read_traces(data: Data, folder: Path) -> None:
    """Puts the content of trace files in the place of their names: a scenario is data."""
    testbed = data.get("testbed")
    links = testbed.get("link") if isinstance(testbed, dict) else None
    for index, link in enumerate(links if isinstance(links, list) else []):
        trace = link.get("trace") if isinstance(link, dict) else None
        key = f"testbed.link.{index}.trace"
        if isinstance(trace, str):
            link["trace"] = read_trace(key, trace, folder)
        elif isinstance(trace, dict):
            for way, one in trace.items():
                if way in ("there", "back") and isinstance(one, str):
                    trace[way] = read_trace(f"{key}.{way}", one, folder)


def _complete_apps(data: Data, folder: Path) -> None:
    """Puts the content of programs' files in the place of their names, and roots' whole paths; programs are the test
    where none is named."""
    apps, rows = data.get("apps"), data.get("app")
    tables = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for index, row in enumerate(tables):
        files: Any = row.get("files")
        for path, name in list(files.items()) if isinstance(files, dict) else ():
            if isinstance(name, str):
                files[path] = file_content(*read_file(f"app.{index}.files.{path}", name, folder))
    for table in [*tables, *([apps] if isinstance(apps, dict) else [])]:
        root = table.get("root")
        if isinstance(root, str) and root and root.isprintable() and not root.startswith(DEBIAN_ROOT):
            table["root"] = str((folder / root).absolute())
    if tables and isinstance(test := data.setdefault("test", {}), dict) and test.setdefault("name", NONE) == NONE:
        test.setdefault("length", END_S)
