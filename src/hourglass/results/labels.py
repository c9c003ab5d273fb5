# SPDX-License-Identifier: Apache-2.0
"""What to call runs that stand side by side: by what tells them apart.

Runs of a sweep are told apart by its axes, whatever stands beside them; others by the names and keys of their
scenarios. A key has as many of its last words as tell it from the others; keys that change together to the same values
are one; a table that some run lacks is one ("shaper=router:eth1 38mbit"). Parameters that one of two tests does not
have go without saying.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence

from hourglass.results.files import RUNS_FOLDER
from hourglass.results.flat import Key
from hourglass.results.recording import Recording

MOST_TERMS = 4
"""More that differs than this makes no label; the run's directory does."""
WIDEST = 32
"""Letters of a value."""

SAID_OTHERWISE = ("name", "description")
TEST, SEED, ENGINE = ("test", "name"), ("seed",), ("engine",)
WEIGHT = ("test", "stack", "testbed", "links")
"""Tables whose keys decide most, in this order."""
FOLLOWS = ("burst",)
"""Keys of a table that say little beside the others."""
HASH = re.compile("[0-9a-f]{16}")
"""What a sweep calls a run's directory."""
NONE = "-"
"""What stands for a value that a run does not have."""

Settings = dict[Key, str]
"""Of a run, every value that it has."""


def labels(runs: Sequence[Recording], seeds: bool = True) -> list[str]:
    """One label per run: of a sweep's the values of the axes that differ in it, in whatever company; of others the
    scenario's name where all names differ, or the keys that do ("tsq=off"). Without `seeds`, those do not count."""
    companies: dict[tuple[str, ...], list[int]] = {}
    for place, run in enumerate(runs):
        companies.setdefault(tuple(run.axes), []).append(place)
    found = [""] * len(runs)
    for axes, places in companies.items():
        members = [runs[place] for place in places]
        named = _of_sweeps(members, seeds, alone=len(companies) == 1) if axes else _of_others(members, seeds)
        for place, name in zip(places, named, strict=True):
            found[place] = name
    taken = Counter(found)
    return [_further(run, name) if taken[name] > 1 else name for run, name in zip(runs, found, strict=True)]


def _of_sweeps(runs: Sequence[Recording], seeds: bool, alone: bool) -> list[str]:
    """By the axes that differ; where none does and other runs are there, by all."""
    axes = [key for key in runs[0].axes if seeds or key != SEED[0]]
    differ = [key for key in axes if len({run.axes[key] for run in runs}) > 1]
    keys = differ or ([] if alone else axes)
    return [", ".join(run.axes[key] for key in keys) or run.name for run in runs]


def _of_others(runs: Sequence[Recording], seeds: bool) -> list[str]:
    names = [run.name for run in runs]
    if len(set(names)) == len(runs):
        return names
    terms = told(runs, seeds)
    heads = [[] if len(set(names)) == 1 else [name] for name in names]
    found = [", ".join(head + parts) for head, parts in zip(heads, terms, strict=True)]
    if len(set(found)) == len(runs) and max(map(len, terms)) <= MOST_TERMS:
        return found
    return [_folder(run) for run in runs]


def _further(run: Recording, name: str) -> str:
    """What tells a run from another of the same label."""
    return f"{run.sweep}, {name}" if run.axes else _folder(run)


def _folder(run: Recording) -> str:
    """The run directory's name; the scenario's where nobody chose that."""
    place = run.path.resolve()
    return run.name if place.parent.name == RUNS_FOLDER and HASH.fullmatch(place.name) else place.name


def told(runs: Sequence[Recording], seeds: bool = True, weighed: bool = False) -> list[list[str]]:
    """Of each run what is not the same in all, as "key=value". `weighed`: the test's keys first, then the stack's; of
    different scenarios what some lack is told of the stack alone."""
    settings = [_settings(run) for run in runs]
    terms: dict[Key, tuple[str, ...]] = {}
    for key in dict.fromkeys(key for one in settings for key in one):
        if key[0] in SAID_OTHERWISE or (key == SEED and not seeds) or len({one.get(key) for one in settings}) == 1:
            continue
        table = _table(key, settings)
        terms[table] = tuple(_value(table, one) for one in settings)
    terms = {key: values for key, values in terms.items() if key[0] != "module" or NONE not in values}  # their names do
    if TEST in terms:
        terms = {key: values for key, values in terms.items() if key[0] != "test" or NONE not in values}
    if weighed and len({run.name for run in runs}) > 1:
        terms = {key: values for key, values in terms.items() if key[0] == "stack" or len({*values} - {NONE}) > 1}
    kept = list({(key[-1], values): key for key, values in reversed(terms.items())}.values())[::-1]
    if weighed:
        kept.sort(key=lambda key: WEIGHT.index(key[0]) if key[0] in WEIGHT else len(WEIGHT))
    names = short_names(kept)
    return [[f"{names[key]}={terms[key][place]}" for key in kept] for place in range(len(runs))]


def _settings(run: Recording) -> Settings:
    """The scenario's, and the engine; what is null or an empty list is not there."""
    there = {key: value for key, value in run.experiment.settings.items() if value is not None and value != []}
    return {key: written(value) for key, value in there.items()} | {ENGINE: run.info.engine}


def _table(key: Key, settings: Sequence[Settings]) -> Key:
    """The outermost table of the testbed that holds the key and is not there in some run; the key itself if none is."""
    for length in range(2, len(key) if key[0] == "testbed" else 0):
        if any(all(other[:length] != key[:length] for other in one) for one in settings):
            return key[:length]
    return key


def _value(table: Key, settings: Settings) -> str:
    """The values of a key or table."""
    values = [value for key, value in settings.items() if key[: len(table)] == table and key[-1] not in FOLLOWS]
    found = " ".join(values)
    return textwrap.shorten(found, WIDEST, placeholder=" …") if found else NONE


def written(value: object) -> str:
    """A value as one writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(written, value)) if isinstance(value, list | tuple) else str(value)


def short_names(keys: Sequence[Key]) -> dict[Key, str]:
    """Each key by as many of its last words as no other ends with; the test's name is the test."""
    words = {key: key[:-1] if key == TEST else key for key in keys}
    return {key: ".".join(_last(words[key], [words[one] for one in keys if one != key])) for key in keys}


def _last(key: Key, others: Sequence[Key]) -> Key:
    for count in range(1, len(key)):
        found = key[-count:]
        if not found[0].isdecimal() and all(one[-count:] != found for one in others):
            return found
    return key
