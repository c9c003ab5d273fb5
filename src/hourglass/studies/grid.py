# SPDX-License-Identifier: Apache-2.0
"""The grid of a part: its axes expanded and checked. Raises `InputError` before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hourglass.errors import closest
from hourglass.scenario.blame import refusal, several
from hourglass.studies.axes import Assignment, Values, expand, values

BASE = "scenario"
"""The key of the base scenario. It may be an axis."""
ENGINE = "engine"
"""The axis of engines. It is not a key of a scenario."""
SEED = "seed"


@dataclass(frozen=True)
class Grid:
    """A checked grid. `keys`: the axes in order; `cells`: a value for each of them, in order. `folder`: the files that
    the grid names are in it."""

    name: str
    description: str
    base: Any
    fixed: Assignment
    keys: tuple[str, ...]
    cells: tuple[Assignment, ...]
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    folder: Path = Path()

    def label(self, key: str, value: object) -> str:
        """Return the label of an axis' value."""
        return self.labels.get(key, {}).get(text(value), text(value))


def text(value: object) -> str:
    """Return a value as readable text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text(item)}" for key, item in value.items())
    return ", ".join(map(text, value)) if isinstance(value, list) else str(value)


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return {"a.b": 1} for {"a": {"b": 1}}: keys may be quoted with dots or be tables; a range stays a table."""
    entries: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and "from" not in value and value:
            entries |= flat(value, f"{before}{key}.")
        else:
            entries[f"{before}{key}"] = value
    return entries


def build(
    name: str,
    description: str,
    base: Any,
    fixed: Assignment,
    axes: Mapping[str, Any],
    zips: Sequence[Mapping[str, Any]],
    excludes: Sequence[Mapping[str, Any]],
    labels: Mapping[str, Mapping[str, str]],
    folder: Path,
) -> Grid:
    """Expand and check a grid. `axes` and `zips` have lists or ranges."""
    crossed = {key: values(f"axes.{key}", entry) for key, entry in axes.items()}
    tied = [_zip(number, entry) for number, entry in enumerate(zips)]
    keys = _keys(crossed, tied)
    for key in fixed:
        if key in keys:
            raise refusal(f"set.{key}", fixed[key], "is an axis too")
    if not keys:
        raise refusal("axes", axes, 'a study needs an axis, like "stack.tsq" = ["off", "default"], or seeds')
    every = dict(crossed) | {key: column for columns in tied for key, column in columns.items()}
    for number, rule in enumerate(excludes):
        _check_rule(f"exclude.{number}", rule, every)
    cells = expand(crossed, tied, excludes)
    if not cells:
        raise refusal("exclude", list(excludes), "leaves nothing to run")
    if BASE in keys and base is not None:
        raise refusal(BASE, base, "is an axis too")
    if BASE not in keys and base is None:
        raise refusal(BASE, None, "is missing: the base scenario, a built-in's name or a file")
    _check_labels(labels, every)
    texts = {key: dict(names) for key, names in labels.items()}
    return Grid(name, description, base, dict(fixed), keys, tuple(cells), texts, folder)


def _zip(number: int, table: Mapping[str, Any]) -> dict[str, Values]:
    columns = {key: _tied_values(f"zip.{number}.{key}", entry) for key, entry in table.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) != 1:
        text_of_lengths = ", ".join(f"{length} of {key}" for key, length in lengths.items())
        raise refusal(f"zip.{number}", dict(table), f"these lists have different lengths: {text_of_lengths}")
    return columns


def _tied_values(key: str, entry: object) -> Values:
    """Return the values of a zipped key; a value may recur."""
    return list(entry) if isinstance(entry, list) and entry else values(key, entry)


def _keys(axes: Mapping[str, Values], zips: list[dict[str, Values]]) -> tuple[str, ...]:
    keys = list(axes)
    for number, columns in enumerate(zips):
        for key in columns:
            if key in keys:
                raise refusal(f"zip.{number}.{key}", columns[key], "is an axis already")
            keys.append(key)
    return tuple(keys)


def _check_rule(path: str, rule: Mapping[str, Any], axes: Mapping[str, Values]) -> None:
    if not rule:
        raise refusal(path, {}, "names no axis: it would leave nothing")
    for key, values_of_rule in rule.items():
        if key not in axes:
            raise refusal(
                f"{path}.{key}", values_of_rule, f"is not an axis. {closest(key, axes)}Axes: {', '.join(axes)}"
            )
        for value in values_of_rule if isinstance(values_of_rule, list) else [values_of_rule]:
            if value not in axes[key]:
                raise refusal(f"{path}.{key}", value, f"is not a value of this axis: {several(map(text, axes[key]))}")


def _check_labels(labels: Mapping[str, Mapping[str, str]], axes: Mapping[str, Values]) -> None:
    for key, names in labels.items():
        if key not in axes:
            raise refusal(f"labels.{key}", dict(names), f"is not an axis. {closest(key, axes)}Axes: {', '.join(axes)}")
        options = [text(value) for value in axes[key]]
        for value, name in names.items():
            if value not in options:
                hint = f"{value!r} is not a value of this axis. {closest(value, options)}Values: {several(options)}"
                raise refusal(f"labels.{key}", name, hint)
