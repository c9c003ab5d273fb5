# SPDX-License-Identifier: Apache-2.0
"""Shrink a scenario by delta debugging, as long as the smaller scenario still shows the effect. Halves of lists go
first, then tables and keys, then the digits of numbers."""

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from math import floor, log10
from typing import Any

Data = dict[str, Any]
KeyPath = tuple[str | int, ...]
Edits = Callable[[Data], Iterator[Data]]

TRIES = 80
LONG = 4
"""Items of a list whose halves are removed at once."""
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:\.\d+)?(?=[A-Za-z%]*(?: |$))", re.ASCII)


def shrunk(
    data: Data,
    holds: Callable[[Sequence[Data]], Sequence[bool]],
    *,
    valid: Callable[[Data], bool] = lambda _: True,
    fixed: Sequence[str] = (),
    tries: int = TRIES,
    at_once: int = 1,
) -> Data:
    """Return the smallest scenario within a number of tries. `holds` returns for each scenario whether it still
    shows the effect. It gets `at_once` scenarios; their number does not change the result. Scenarios that are not
    `valid` do not count as tries. Keys whose names begin with `fixed` stay as they are."""
    progressed = True
    while progressed and tries > 0:
        progressed = False
        for edits in (_without_halves, partial(_without_keys, fixed=fixed), partial(_with_fewer_digits, fixed=fixed)):
            position = 0
            while tries > 0:
                candidates = _valid(edits, data, position, valid, min(at_once, tries))
                if not candidates:
                    break
                holding = holds([candidate for _, candidate in candidates])
                first = next((number for number, holds_still in enumerate(holding) if holds_still), None)
                tries -= len(candidates) if first is None else first + 1
                position = candidates[-1][0] + 1
                if first is not None:
                    (position, data), progressed = candidates[first], True
    return data


def _valid(
    edits: Edits, data: Data, position: int, valid: Callable[[Data], bool], number: int
) -> list[tuple[int, Data]]:
    """Return the next valid smaller scenarios, each with its position."""
    numbered = islice(enumerate(edits(data)), position, None)
    return list(islice(((index, each) for index, each in numbered if valid(each)), number))


def key_paths(data: Data) -> list[KeyPath]:
    """Return the path of each table and key, the shortest first."""
    return sorted((path for path, _ in _values(data)), key=len)


def _values(table: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, inner in items:
        yield (*path, key), inner
        yield from _values(inner, (*path, key))


def _without_halves(data: Data) -> Iterator[Data]:
    for path, value in list(_values(data)):
        if isinstance(value, list) and len(value) >= LONG:
            middle = len(value) // 2
            for half in (value[:middle], value[middle:]):
                yield _replaced(data, path, half)


def _without_keys(data: Data, fixed: Sequence[str]) -> Iterator[Data]:
    for path in key_paths(data):
        name = ".".join(map(str, path))
        if _is_fixed(path, fixed) or any(key.startswith(f"{name}.") for key in fixed):
            continue
        smaller = copy.deepcopy(data)
        del _inside(smaller, path[:-1])[path[-1]]
        yield smaller


def _is_fixed(path: KeyPath, fixed: Sequence[str]) -> bool:
    name = ".".join(map(str, path))
    return any(name == key or name.startswith(f"{key}.") for key in fixed)


def _with_fewer_digits(data: Data, fixed: Sequence[str]) -> Iterator[Data]:
    """Yield scenarios with a number of one or two significant digits."""
    for path, value in list(_values(data)):
        for digits in () if _is_fixed(path, fixed) else (1, 2):
            rounder = _rounded(value, digits)
            if rounder != value:
                yield _replaced(data, path, rounder)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, str):
        return _NUMBER.sub(lambda match: _decimal(Fraction(match[0]), digits), value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return type(value)(float(_decimal(Fraction(repr(value)), digits)))


def _decimal(number: Fraction, digits: int) -> str:
    if number == 0:
        return "0"
    step = Fraction(10) ** (floor(log10(abs(number))) - digits + 1)
    return f"{float(round(number / step) * step):.12f}".rstrip("0").rstrip(".")


def _replaced(data: Data, path: KeyPath, value: Any) -> Data:
    changed = copy.deepcopy(data)
    _inside(changed, path[:-1])[path[-1]] = value
    return changed


def _inside(data: Data, path: KeyPath) -> Any:
    table: Any = data
    for key in path:
        table = table[key]
    return table
