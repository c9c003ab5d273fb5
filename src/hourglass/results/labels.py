# SPDX-License-Identifier: Apache-2.0
"""Labels of runs in a comparison, made from their differences.

The axes of a sweep distinguish its runs, in any comparison. Names and keys of the scenarios distinguish others. A key
has as many of its last words as make it unique. Keys that change together to the same values are one; a table that some
run lacks is one ("shaper=router:eth1 38mbit"). Parameters that only one of two tests has are left out. The names of
files distinguish files of Flent that have the same title and settings.
"""

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hourglass.results.flat import Key
from hourglass.results.recording import Recording
from hourglass.results.run_files import RUNS_FOLDER, flent_stem

TERMS_MAX = 4
"""The longest difference for a label; beyond it, the run's directory is the label."""
WIDEST = 32
"""The most letters of a value."""

SHOWN_ELSEWHERE = ("name", "description")
TEST, SEED, ENGINE = ("test", "name"), ("seed",), ("engine",)
WEIGHT = ("test", "stack", "testbed", "links")
"""Tables whose keys matter most, in this order."""
MINOR_KEYS = ("burst",)
"""Keys of a table that matter little next to the others."""
HASH = re.compile("[0-9a-f]{16}")
"""The pattern of a run's directory in a sweep."""
FILE_HEAD = re.compile(r".+-\d{4}-\d\d-\d\dT\d{6}\.\d+\.")
"""The pattern of test and time, which Flent writes before the title in a file's name."""
NONE = "-"
"""The text for a value that a run lacks."""

Settings = dict[Key, str]
"""All values of a run."""


def labels(runs: Sequence[Recording], seeds: bool = True) -> list[str]:
    """Return one label per run. For a sweep's runs: the values of the axes that differ in it. For others: the
    scenario's name if all names differ, or the keys that do ("tsq=off"). Without `seeds`, seeds do not count."""
    groups: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault((run.info.elsewhere, tuple(run.axes)), []).append(index)
    names = [""] * len(runs)
    for (_, axes), indices in groups.items():
        members = [runs[index] for index in indices]
        group_names = _of_sweeps(members, seeds, alone=len(groups) == 1) if axes else _of_others(members, seeds)
        for index, name in zip(indices, group_names, strict=True):
            names[index] = name
    uses = Counter(names)
    return [_disambiguated(run, name) if uses[name] > 1 else name for run, name in zip(runs, names, strict=True)]


def _of_sweeps(runs: Sequence[Recording], seeds: bool, alone: bool) -> list[str]:
    """Return labels by the axes that differ; by all axes if none differs and other runs are compared."""
    axes = [key for key in runs[0].axes if seeds or key != SEED[0]]
    by_values = {(*(_word_and_value(run.axes[key]) for run in runs),): key for key in reversed(axes)}
    differ = [key for values, key in reversed(by_values.items()) if len(set(values)) > 1]
    keys = differ or ([] if alone else axes)
    return [", ".join(run.axes[key] for key in keys) or run.name for run in runs]


def _word_and_value(label: str) -> str:
    """Return "rate=10mbit" for "shaper.0.rate=10mbit"."""
    name, equals, value = label.partition("=")
    return f"{name.rpartition('.')[2]}{equals}{value}"


def _of_others(runs: Sequence[Recording], seeds: bool) -> list[str]:
    names = [run.name for run in runs]
    if len(set(names)) == len(runs):
        return names
    terms = difference_terms(runs, seeds)
    heads = [[] if len(set(names)) == 1 else [name] for name in names]
    combined = [", ".join(head + parts) for head, parts in zip(heads, terms, strict=True)]
    if len(set(combined)) == len(runs) and max(map(len, terms)) <= TERMS_MAX:
        return combined
    if runs[0].info.elsewhere:
        files = _file_names([run.path for run in runs])
        return _numbered([", ".join([*head, file]) for head, file in zip(heads, files, strict=True)])
    return [_folder(run) for run in runs]


def _file_names(paths: Sequence[Path]) -> list[str]:
    """Return the titles in the files' names, or the names, with as many folders as distinguish the files."""
    places = [(*path.absolute().parent.parts, flent_stem(path)) for path in paths]
    titles = [FILE_HEAD.sub("", place[-1]) for place in places]
    endings = (["/".join(place[-length:]) for place in places] for length in range(1, max(map(len, places)) + 1))
    different = len(set(places))
    return next(names for names in (titles, *endings) if len(set(names)) == different)


def _numbered(names: list[str]) -> list[str]:
    """Return the names with numbers where they are equal: a file may be given twice."""
    uses = Counter(names)
    numbers = {name: itertools.count(1) for name in uses}
    return [f"{name} #{next(numbers[name])}" if uses[name] > 1 else name for name in names]


def _disambiguated(run: Recording, name: str) -> str:
    """Return a label that differs from that of another run."""
    if run.info.elsewhere:
        return flent_stem(run.path) if name == run.name else name
    return f"{run.sweep}, {name}" if run.axes else _folder(run)


def _folder(run: Recording) -> str:
    """Return the run directory's name; the scenario's if the name was generated."""
    folder = run.path.resolve()
    return run.name if folder.parent.name == RUNS_FOLDER and HASH.fullmatch(folder.name) else folder.name


def difference_terms(runs: Sequence[Recording], seeds: bool = True, ranked: bool = False) -> list[list[str]]:
    """Return for each run the values of `differences`, as "key=value"."""
    selected = differences(runs, seeds, ranked)
    names = short_names(list(selected))
    return [[f"{names[key]}={values[index]}" for key, values in selected.items()] for index in range(len(runs))]


def differences(runs: Sequence[Recording], seeds: bool = True, ranked: bool = False) -> dict[Key, tuple[str, ...]]:
    """Return the keys and the runs' values that are not the same in all. `ranked`: the test's keys first, then the
    stack's; for different scenarios, missing values count only in the stack."""
    settings = [_settings(run) for run in runs]
    terms: dict[Key, tuple[str, ...]] = {}
    for key in dict.fromkeys(key for run_settings in settings for key in run_settings):
        if key[0] in SHOWN_ELSEWHERE or (key == SEED and not seeds):
            continue
        table = _table(key, settings)
        values = tuple(_value(table, run_settings) for run_settings in settings)
        if len(set(values)) > 1:
            terms[table] = values
    terms = {key: values for key, values in terms.items() if key[0] != "module" or NONE not in values}  # their names do
    if TEST in terms:
        terms = {key: values for key, values in terms.items() if key[0] != "test" or NONE not in values}
    if ranked and len({run.name for run in runs}) > 1:
        terms = {key: values for key, values in terms.items() if key[0] == "stack" or len({*values} - {NONE}) > 1}
    selected = list({(key[-1], values): key for key, values in reversed(terms.items())}.values())[::-1]
    if ranked:
        selected.sort(key=lambda key: WEIGHT.index(key[0]) if key[0] in WEIGHT else len(WEIGHT))
    return {key: terms[key] for key in selected}


def _settings(run: Recording) -> Settings:
    """Return the scenario's values, and the engine; nulls and empty lists are left out."""
    present = {key: value for key, value in run.experiment.settings.items() if value is not None and value != []}
    return {key: value_text(value) for key, value in present.items()} | {ENGINE: run.info.engine}


def _table(key: Key, settings: Sequence[Settings]) -> Key:
    """Return the outermost table of the testbed that holds the key and that some run lacks; the key itself if none."""
    for length in range(2, len(key) if key[0] == "testbed" else 0):
        if any(all(candidate[:length] != key[:length] for candidate in run_settings) for run_settings in settings):
            return key[:length]
    return key


def _value(table: Key, settings: Settings) -> str:
    """Return the values of a key or table."""
    values = [value for key, value in settings.items() if key[: len(table)] == table and key[-1] not in MINOR_KEYS]
    joined = " ".join(values)
    return textwrap.shorten(joined, WIDEST, placeholder=" …") if joined else NONE


def value_text(value: object) -> str:
    """Return a value as users write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(value_text, value)) if isinstance(value, list | tuple) else str(value)


def short_names(keys: Sequence[Key]) -> dict[Key, str]:
    """Return each key as the shortest unique ending; the test's name is the test."""
    parts = {key: key[:-1] if key == TEST else key for key in keys}
    return {key: ".".join(_last(parts[key], [parts[other] for other in keys if other != key])) for key in keys}


def _last(key: Key, other_keys: Sequence[Key]) -> Key:
    for count in range(1, len(key)):
        suffix = key[-count:]
        if not suffix[0].isdecimal() and all(other[-count:] != suffix for other in other_keys):
            return suffix
    return key
