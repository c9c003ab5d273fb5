# SPDX-License-Identifier: Apache-2.0
"""Expand axes into assignments: the cross product of all axes, zipped axes as one, without the excluded combinations.

The order is that of the file: the first axis varies slowest. Pure functions on plain data.
"""

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from hourglass.scenario.blame import refusal

Assignment = dict[str, Any]
Values = list[Any]

MOST_CELLS = 100_000
MOST_VALUES = 10_000
RANGE_ORDER = ("from", "to", "step", "factor", "unit")


def values(key: str, entry: object) -> Values:
    """Return the values of an axis: a list as it is, or a range with both ends.

    `{from, to, step}` adds (step 1 by default), `{from, to, factor}` multiplies. `unit` is appended to each number.
    """
    if isinstance(entry, list):
        listed = entry
    elif isinstance(entry, Mapping):
        listed = _range(key, entry)
    else:
        raise refusal(
            key, entry, 'must be a list of values, or a range like { from = 1, to = 5, step = 2, unit = "ms" }'
        )
    if not listed:
        raise refusal(key, entry, "has no value")
    if len(listed) > MOST_VALUES:
        raise refusal(key, entry, f"has more than {MOST_VALUES} values")
    pairs = ((value, earlier) for index, value in enumerate(listed) for earlier in listed[:index])
    if any(value == earlier for value, earlier in pairs if type(value) is type(earlier)):
        raise refusal(key, entry, "contains a value twice")
    return list(listed)


def _range(key: str, entry: Mapping[str, Any]) -> Values:
    if unknown := set(entry) - set(RANGE_ORDER):
        raise refusal(
            f"{key}.{min(unknown)}", entry[min(unknown)], f"unknown key. Keys of a range: {', '.join(RANGE_ORDER)}"
        )
    for end in ("from", "to"):
        if end not in entry:
            raise refusal(f"{key}.{end}", None, "is missing; a range needs from and to")
    if "step" in entry and "factor" in entry:
        raise refusal(f"{key}.factor", entry["factor"], "a range has a step or a factor, not both")
    first, last = (_number(f"{key}.{end}", entry[end]) for end in ("from", "to"))
    unit = entry.get("unit", "")
    if not isinstance(unit, str):
        raise refusal(f"{key}.unit", unit, 'must be text, which is appended to each number, like "ms"')
    if last < first:
        raise refusal(f"{key}.to", entry["to"], "must be at least `from`")
    return [_number_text(number, unit) for number in _numbers(key, entry, first, last)]


def _numbers(key: str, entry: Mapping[str, Any], first: Decimal, last: Decimal) -> list[Decimal]:
    """Return all numbers from `first` to `last`, exactly: decimals, no binary fractions."""
    step, factor = _number(f"{key}.step", entry.get("step", 1)), _number(f"{key}.factor", entry.get("factor", 1))
    if "factor" in entry and (factor <= 1 or first <= 0):
        raise refusal(f"{key}.factor", entry["factor"], "must be above 1, and `from` above 0")
    if step <= 0:
        raise refusal(f"{key}.step", entry["step"], "must be above 0")
    numbers: list[Decimal] = []
    number = first
    while number <= last and len(numbers) <= MOST_VALUES:
        numbers.append(number)
        number = number * factor if "factor" in entry else number + step
    return numbers


def _number(key: str, value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(key, value, "must be a number; its unit goes into `unit`")
    number = Decimal(repr(value))
    if not number.is_finite():
        raise refusal(key, value, "must be a finite number")
    return number


def _number_text(number: Decimal, unit: str) -> int | float | str:
    plain = format(number.normalize(), "f")
    if unit:
        return plain + unit
    return int(plain) if "." not in plain else float(plain)


def expand(
    axes: Mapping[str, Values], zips: Sequence[Mapping[str, Values]], excludes: Sequence[Mapping[str, Any]]
) -> list[Assignment]:
    """Return all assignments, in order. `axes` are crossed with each other and with each of `zips`, whose keys advance
    together.

    An assignment that agrees with all keys of one of `excludes` is left out.
    """
    columns: list[list[Assignment]] = [[{key: value} for value in listed] for key, listed in axes.items()]
    columns += [[dict(zip(tied, row, strict=True)) for row in zip(*tied.values(), strict=True)] for tied in zips]
    total = 1
    for column in columns:
        total *= len(column)
    if total > MOST_CELLS:
        raise refusal("axes", total, f"a study has at most {MOST_CELLS} runs")
    crossed = [_merged(parts) for parts in itertools.product(*columns)]
    return [assignment for assignment in crossed if not any(agrees(assignment, rule) for rule in excludes)]


def _merged(parts: Sequence[Assignment]) -> Assignment:
    return {key: value for part in parts for key, value in part.items()}


def agrees(assignment: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """Tell if an assignment has all values of the rule; a list in a rule is any of its values."""
    return all(
        assignment.get(key) in value if isinstance(value, list) else assignment.get(key) == value
        for key, value in rule.items()
    )
