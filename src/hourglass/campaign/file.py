# SPDX-License-Identifier: Apache-2.0
"""The sweep file → a checked `Grid`. Raises `InputError` for whatever is wrong, before anything runs.

| key | what it is |
|---|---|
| `name` | names the sweep and its folder; default: the file's name |
| `description` | one line |
| `scenario` | the base: a built-in's name, a file (beside the sweep file), or a table; not needed if it is an axis |
| `[set]` | keys of the scenario that are the same in all runs |
| `[axes]` | key = list or range; all are crossed, the first varies slowest |
| `[[zip]]` | keys that go forward together; their lists have one length |
| `[[exclude]]` | key = value, or list of values: what agrees with all of them is left out |
| `repetitions` | so many seeds, from 1: the same as a last axis `seed = { from = 1, to = N }` |
| `[labels."KEY"]` | value = what to call it in the table and the pictures |
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hourglass.campaign.expand import Assignment, Values, expand, values
from hourglass.errors import InputError, closest
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.source import toml_problem

KEYS = ("name", "description", "scenario", "set", "axes", "zip", "exclude", "repetitions", "labels")
BASE = "scenario"
"""The key that stands for the base scenario itself; it may be an axis."""


@dataclass(frozen=True)
class Grid:
    """A checked sweep file. `keys`: the axes in order; `cells`: a value for each of them, in order."""

    name: str
    description: str
    base: Any
    fixed: Assignment
    keys: tuple[str, ...]
    cells: tuple[Assignment, ...]
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    folder: Path = Path()

    def label(self, key: str, value: object) -> str:
        """What to call a value of an axis."""
        return self.labels.get(key, {}).get(text(value), text(value))


def text(value: object) -> str:
    """A value as one reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text(one)}" for key, one in value.items())
    return ", ".join(map(text, value)) if isinstance(value, list) else str(value)


def read(source: str | Path | Mapping[str, Any]) -> Grid:
    """The grid of a sweep file or of a table of the same keys."""
    if isinstance(source, Mapping):
        return grid(dict(source), "sweep", Path())
    path = Path(source)
    try:
        content = path.read_text("utf-8")
        data = tomllib.loads(content)
    except OSError as error:
        raise InputError("sweep", str(source), f"cannot be read: {error.strerror or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError("sweep", str(source), f"is no TOML: {toml_problem(content, error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError("sweep", str(source), f"is no TOML: {' '.join(str(error).split())[:200]}") from None
    return grid(data, path.stem, path.parent)


def grid(data: dict[str, Any], name: str, folder: Path) -> Grid:
    """The grid of a table. `folder`: where the files it names are."""
    for key in data:
        if key not in KEYS:
            allowed = f"unknown key. {closest(key, KEYS)}Known in a sweep: {', '.join(KEYS)}"
            raise refusal(key, data[key], allowed)
    axes = {key: values(f"axes.{key}", given) for key, given in _table(data, "axes").items()}
    if "repetitions" in data:
        axes["seed"] = _seeds(data["repetitions"], axes)
    zips = [_zip(place, tied) for place, tied in enumerate(_tables(data, "zip"))]
    keys = _keys(axes, zips)
    fixed = _table(data, "set")
    for key in fixed:
        if key in keys:
            raise refusal(f"set.{key}", fixed[key], "is an axis too")
    if not keys:
        raise refusal("axes", data.get("axes"), 'a sweep needs an axis, like "stack.tsq" = ["off", "default"]')
    excludes = _tables(data, "exclude")
    for place, rule in enumerate(excludes):
        _check_rule(f"exclude.{place}", rule, keys, axes, zips)
    cells = expand(axes, zips, excludes)
    if not cells:
        raise refusal("exclude", excludes, "leaves nothing to run")
    found_name = data.get("name", name)
    if not isinstance(found_name, str) or not found_name or "/" in found_name or found_name.startswith("."):
        raise refusal("name", found_name, "text that can name a folder")
    return Grid(
        name=found_name,
        description=str(data.get("description", "")),
        base=_base(data, keys),
        fixed=fixed,
        keys=keys,
        cells=tuple(cells),
        labels=_labels(data, _every(axes, zips)),
        folder=folder,
    )


def _base(data: dict[str, Any], keys: tuple[str, ...]) -> Any:
    if BASE in keys:
        if BASE in data:
            raise refusal(BASE, data[BASE], "is an axis too")
        return None
    if BASE not in data:
        raise refusal(BASE, None, "is missing: the base scenario, a built-in's name or a file")
    return data[BASE]


def _seeds(count: object, axes: Mapping[str, Values]) -> Values:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1000:
        raise refusal("repetitions", count, "a whole number from 1 to 1000")
    if "seed" in axes:
        raise refusal("repetitions", count, "seed is an axis already")
    return list(range(1, count + 1))


def _zip(place: int, tied: Mapping[str, Any]) -> dict[str, Values]:
    found = {key: _tied_values(f"zip.{place}.{key}", given) for key, given in tied.items()}
    lengths = {key: len(one) for key, one in found.items()}
    if len(set(lengths.values())) != 1:
        raise refusal(f"zip.{place}", lengths, "lists of one length, as they go forward together")
    return found


def _tied_values(key: str, given: object) -> Values:
    """As of an axis, but a value may come again."""
    return list(given) if isinstance(given, list) and given else values(key, given)


def _keys(axes: Mapping[str, Values], zips: list[dict[str, Values]]) -> tuple[str, ...]:
    keys = list(axes)
    for place, tied in enumerate(zips):
        for key in tied:
            if key in keys:
                raise refusal(f"zip.{place}.{key}", tied[key], "is an axis already")
            keys.append(key)
    return tuple(keys)


def _check_rule(
    place: str,
    rule: Mapping[str, Any],
    keys: tuple[str, ...],
    axes: Mapping[str, Values],
    zips: list[dict[str, Values]],
) -> None:
    every = _every(axes, zips)
    if not rule:
        raise refusal(place, {}, "names no axis: it would leave nothing")
    for key, wanted in rule.items():
        if key not in keys:
            raise refusal(f"{place}.{key}", wanted, f"is no axis. {closest(key, keys)}Axes: {', '.join(keys)}")
        for one in wanted if isinstance(wanted, list) else [wanted]:
            if one not in every[key]:
                raise refusal(f"{place}.{key}", one, f"is no value of this axis: {several(map(text, every[key]))}")


def _every(axes: Mapping[str, Values], zips: list[dict[str, Values]]) -> dict[str, Values]:
    """The values of all axes, zipped ones too."""
    return dict(axes) | {key: found for tied in zips for key, found in tied.items()}


def _labels(data: dict[str, Any], axes: dict[str, Values]) -> dict[str, dict[str, str]]:
    labels = _table(data, "labels")
    for key, names in labels.items():
        if key not in axes:
            raise refusal(f"labels.{key}", names, f"is no axis. {closest(key, axes)}Axes: {', '.join(axes)}")
        if not isinstance(names, Mapping) or not all(isinstance(one, str) for one in names.values()):
            raise refusal(f"labels.{key}", names, "a table: value = what to call it")
        known = [text(value) for value in axes[key]]
        for value, name in names.items():
            if value not in known:
                told = f"{value!r} is no value of this axis. {closest(value, known)}Values: {several(known)}"
                raise refusal(f"labels.{key}", name, told)
    return {key: dict(names) for key, names in labels.items()}


def _table(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, Mapping):
        raise refusal(key, found, "a table")
    return flat(found) if key in ("set", "axes") else dict(found)


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} → {"a.b": 1}: keys may be quoted with dots or be tables; a range stays a table."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and "from" not in value and value:
            found |= flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def _tables(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise refusal(key, found, f"tables, each written below [[{key}]]")
    return [flat(one) for one in found]
