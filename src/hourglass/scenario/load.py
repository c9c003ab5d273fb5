# SPDX-License-Identifier: Apache-2.0
"""`load`: from a file, a built-in's name or a table, with overrides, to a checked `Scenario`.

An override, `--set KEY=VALUE`, changes one value before it is checked. KEY is dotted; a list's items are numbers. A
part may be quoted, and everything after `sysctl` or `check` is one part. VALUE is a TOML value if it parses as TOML,
else text. Keys of earlier releases get their current names (`OLD_DIRECTIONS`), which the next release will refuse.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario import module
from hourglass.scenario.app_values import DEBIAN_ROOT, file_content
from hourglass.scenario.blame import dotted, refusal
from hourglass.scenario.bounds import flat
from hourglass.scenario.check_apps import END_S, NONE
from hourglass.scenario.check_scenario import resolve
from hourglass.scenario.check_streams import OF_FLOWS
from hourglass.scenario.edge import DIRECTIONS
from hourglass.scenario.mistakes import explain
from hourglass.scenario.scenario_model import Scenario
from hourglass.scenario.source_files import (
    Data,
    UserText,
    locate_folder,
    mark_as_from,
    names,
    read,
    read_delays,
    read_file,
    read_preset,
    read_trace,
    with_marks,
)
from hourglass.scenario.testkinds import PARAMETERS, TESTS

_GRAPH = ("node", "link", "wifi", "shaper", "netem")
_PART = re.compile(r'"([^"]*)"|([^."=]+)')
_TEXT_KEYS = (["kernel"], ["name"], ["description"])
"""Keys that are always text, so that --set kernel=5.10 is not the number 5.1."""

OLD_DIRECTIONS = {"there": "forward", "back": "reverse"}
OLD_TABLES = ("trace", "policer", "shaper")
"""Tables of a link whose tables for a direction had these names."""

Change = tuple[list[str], Any]


def load(
    source: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    *,
    seed: int | None = None,
    kernel: str | None = None,
    folder: Path | None = None,
) -> Scenario:
    """Return the scenario, checked, with every default spelled out.

    `source` is a built-in's name, a TOML file, a scenario as JSON (`scenario.json` of a run; its name ends in .json), a
    table of the same keys, or a scenario. `overrides` are "dotted.key=value", pairs or a mapping of the two. They apply
    to the spelled-out testbed, even of a preset; `testbed.preset` replaces the testbed. `seed` and `kernel` win over
    both. Raises `InputError` if the scenario is wrong.

    A scenario file names only files at or below its folder. Overrides and tables name any file, unless `folder` is
    given: the folder of the file from which they were read.
    """
    data = merged(source, overrides, seed=seed, kernel=kernel, folder=folder)
    try:
        scenario = Scenario.model_validate(data, context=module.registered_names(data))
    except ValidationError as error:
        raise explain(error, data) from None
    return resolve(scenario)


def merged(
    source: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
    *,
    seed: int | None = None,
    kernel: str | None = None,
    folder: Path | None = None,
) -> Data:
    """Return the table that `load` checks: with the overrides, and the files' content instead of their names. Without
    defaults."""
    base_folder = folder
    data, folder = read(source.model_dump(mode="json") if isinstance(source, Scenario) else source, base_folder)
    parsed = [_parsed(override, base_folder) for override in listed_overrides(overrides)]
    _choose_preset(data, [value for parts, value in parsed if parts == ["testbed", "preset"]])
    _expand_preset(data)
    if isinstance(data.get("check"), dict):
        data["check"] = flat(data["check"])
    other_changes = [change for change in parsed if change[0] != ["testbed", "preset"]]
    _apply(data, sorted(other_changes, key=lambda change: change[0] != ["test", "name"]))
    data.update({key: value for key, value in (("seed", seed), ("kernel", kernel)) if value is not None})
    _read_traces(data, folder)
    _complete_apps(data, folder)
    module.extract_modules(data, folder)
    return data


def _parsed(override: str | tuple[str, Any], folder: Path | None) -> Change:
    """Return an override whose texts are marked with their author: the user, or a file in `folder`."""
    parts, value = parse_override(override)
    if folder is None or isinstance(override, UserText):
        return parts, with_marks(value, UserText)
    return parts, with_marks(value, mark_as_from(folder))


def builtin() -> list[tuple[str, str]]:
    """Return (name, description) of the built-in scenarios."""
    return [(name, str(read(name)[0].get("description", ""))) for name in names(SCENARIOS)]


def presets() -> list[tuple[str, str]]:
    """Return (name, description) of the preset testbeds."""
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
    """Replace the preset's name by its testbed."""
    testbed = data.get("testbed")
    if not isinstance(testbed, dict) or "preset" not in testbed:
        return
    for key in _GRAPH:
        if key in testbed:
            raise refusal(
                f"testbed.{key}",
                testbed[key],
                "cannot be combined with preset; give a preset, or spell the testbed out",
            )
    preset = read_preset(testbed.pop("preset"))
    data["testbed"] = preset | testbed


def _read_traces(data: Data, folder: Path) -> None:
    """Replace the names of trace files by their content: a scenario is data."""
    testbed = data.get("testbed")
    links = testbed.get("link") if isinstance(testbed, dict) else None
    for index, link in enumerate(links if isinstance(links, list) else []):
        trace = link.get("trace") if isinstance(link, dict) else None
        key = f"testbed.link.{index}.trace"
        tables = {key: trace}
        if isinstance(trace, dict):
            tables |= {f"{key}.{direction}": trace.get(direction) for direction in DIRECTIONS}
        for name, table in tables.items():
            if isinstance(table, dict) and isinstance(file := table.get("delay"), str):
                table["delay"] = read_delays(f"{name}.delay", file, folder)
        if isinstance(trace, str):
            link["trace"] = read_trace(key, trace, folder)
        elif isinstance(trace, dict):
            for direction, trace_name in trace.items():
                if direction in DIRECTIONS and isinstance(trace_name, str):
                    trace[direction] = read_trace(f"{key}.{direction}", trace_name, folder)


def _complete_apps(data: Data, folder: Path) -> None:
    """Replace the names of programs' files by their content, and roots by absolute paths. Without `test.name`,
    programs are the test."""
    apps, rows = data.get("apps"), data.get("app")
    tables = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for index, row in enumerate(tables):
        files: Any = row.get("files")
        for path, name in list(files.items()) if isinstance(files, dict) else ():
            if isinstance(name, str):
                files[path] = file_content(*read_file(f"app.{index}.files.{path}", name, folder))
        mounts: Any = row.get("mounts")
        for path, name in list(mounts.items()) if isinstance(mounts, dict) else ():
            if isinstance(name, str):
                mounts[path] = str(locate_folder(f"app.{index}.mounts.{path}", name, folder))
    for table in [*tables, *([apps] if isinstance(apps, dict) else [])]:
        root = table.get("root")
        if isinstance(root, str) and root and root.isprintable() and not root.startswith(DEBIAN_ROOT):
            table["root"] = str((folder / root).absolute())
    if tables and isinstance(test := data.setdefault("test", {}), dict) and test.setdefault("name", NONE) == NONE:
        test.setdefault("length", END_S)


def listed_overrides(overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]]) -> list[str | tuple[str, Any]]:
    """Return changes as a list: the pairs of a mapping, or the text of a single text."""
    if isinstance(overrides, str):
        return [overrides]
    return list(overrides.items() if isinstance(overrides, Mapping) else overrides)


def parse_override(text: object) -> Change:
    """Return (["a", "b"], 1) for `a.b=1`, and for the pair ("a.b", 1)."""
    if isinstance(text, tuple):
        return _parse_pair(*text)
    if not isinstance(text, str) or not (split := _split_override(text)):
        raise refusal("--set", text, "must be KEY=VALUE, with a dotted key, like stack.tsq=off")
    parts, value = split
    return _renamed(parts), _toml_value(value, always_text=parts in _TEXT_KEYS)


def _parse_pair(key: str, value: Any) -> Change:
    split = _split_override(f"{key}=")
    if not split:
        raise refusal(key, value, "must be a dotted key, like stack.tsq")
    return _renamed(split[0]), value


def _renamed(parts: list[str]) -> list[str]:
    match parts:
        case ["testbed", "link", number, table, direction, *keys] if table in OLD_TABLES:
            return ["testbed", "link", number, table, OLD_DIRECTIONS.get(direction, direction), *keys]
    return parts


def _split_override(text: str) -> tuple[list[str], str] | None:
    parts, offset = [], 0
    while match := _PART.match(text, offset):
        quoted, bare = match.groups()
        parts.append(quoted if quoted is not None else bare.strip())
        offset = match.end()
        if text[offset : offset + 1] == "=":
            return (_join_parts(parts), text[offset + 1 :].strip()) if all(parts) else None
        if text[offset : offset + 1] != ".":
            return None
        offset += 1
    return None


def _join_parts(parts: list[str]) -> list[str]:
    if parts[0] == "check":
        return ["check", ".".join(parts[1:])] if parts[1:] else parts
    if parts[0] == "stack" and "sysctl" in parts[1:-1]:
        start = parts.index("sysctl", 1) + 1
        return [*parts[:start], ".".join(parts[start:])]
    return parts


def _toml_value(text: str, always_text: bool) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:
        if text.startswith("{"):
            raise refusal(
                "--set", text, f'is not an inline table: {error}; write it like {{ file = "my_cc.c" }}'
            ) from None
        return text
    value = table["value"]
    if len(table) != 1 or (always_text and not isinstance(value, str)):
        return text
    return value


def _apply(data: dict[str, Any], changes: Sequence[Change]) -> None:
    """Set the values, in order, and give all keys their current names."""
    _rename(data)
    for parts, value in changes:
        if parts == ["test", "name"]:
            _forget_parameters(data.get("test"), value)
        _set_value(data, parts, value)
    _rename(data)


def _rename(data: dict[str, Any]) -> None:
    """Rename old keys. An old name next to the current one stays, and is refused."""
    testbed = data.get("testbed")
    links = testbed.get("link") if isinstance(testbed, dict) else None
    for link in links if isinstance(links, list) else []:
        for name in OLD_TABLES if isinstance(link, dict) else ():
            table = link.get(name)
            if isinstance(table, dict) and not table.keys() & set(OLD_DIRECTIONS.values()):
                link[name] = {OLD_DIRECTIONS.get(key, key): value for key, value in table.items()}


def _forget_parameters(test: object, name: object) -> None:
    """Change the test: parameters of the file's test do not apply to it."""
    kind = TESTS.get(name) if isinstance(name, str) else None
    if not isinstance(test, dict) or kind is None:
        return
    for key in PARAMETERS:
        if key not in kind.parameters:
            test.pop(key, None)
    for key in () if kind.bulk else OF_FLOWS:
        test.pop(key, None)
    if not kind.loaded and not test.get("datagrams"):
        test.pop("delay", None)


def _set_value(data: dict[str, Any], parts: list[str], value: Any) -> None:
    table: Any = data
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(table, list):
            if not part.isdecimal() or len(part) > 6 or int(part) >= len(table):
                valid = f"0 to {len(table) - 1}" if table else "none"
                raise refusal(f"--set {dotted(parts)}", value, f"{dotted(parts[:depth])} is a list; its items: {valid}")
            if last:
                table[int(part)] = value
            else:
                table = table[int(part)]
        elif isinstance(table, dict):
            if last:
                table[part] = value
            else:
                table = table.setdefault(part, {})
        else:
            raise refusal(f"--set {dotted(parts)}", value, f"{dotted(parts[:depth])} is not a table")
