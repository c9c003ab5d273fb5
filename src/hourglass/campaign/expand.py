# SPDX-License-Identifier: Apache-2.0
"""Axes → assignments: the cross product of all axes, zipped axes as one, less what is excluded.

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


def values(key: str, given: object) -> Values:
    """The values of an axis: a list as it is, or a range with both ends.

    `{from, to, step}` adds (step 1 if not given), `{from, to, factor}` multiplies; `unit` is put behind each number.
    """
    if isinstance(given, list):
        found = given
    elif isinstance(given, Mapping):
        found = _range(key, given)
    else:
        raise refusal(key, given, 'a list of values, or a range like { from = 1, to = 5, step = 2, unit = "ms" }')
    if not found:
        raise refusal(key, given, "has no value")
    if len(found) > MOST_VALUES:
        raise refusal(key, given, f"has more than {MOST_VALUES} values")
    if any(one == other for place, one in enumerate(found) for other in found[:place] if type(one) is type(other)):
        raise refusal(key, given, "holds a value twice")
    return list(found)


def _range(key: str, given: Mapping[str, Any]) -> Values:
    if unknown := set(given) - set(RANGE_ORDER):
        raise refusal(f"{key}.{min(unknown)}", given[min(unknown)], f"unknown key of a range; {', '.join(RANGE_ORDER)}")
    for word in ("from", "to"):
        if word not in given:
            raise refusal(f"{key}.{word}", None, "a range needs from and to")
    if "step" in given and "factor" in given:
        raise refusal(f"{key}.factor", given["factor"], "a range has a step or a factor, not both")
    first, last = (_number(f"{key}.{word}", given[word]) for word in ("from", "to"))
    unit = given.get("unit", "")
    if not isinstance(unit, str):
        raise refusal(f"{key}.unit", unit, 'text to be put behind each number, like "ms"')
    if last < first:
        raise refusal(f"{key}.to", given["to"], "at least `from`")
    return [_written(number, unit) for number in _numbers(key, given, first, last)]


def _numbers(key: str, given: Mapping[str, Any], first: Decimal, last: Decimal) -> list[Decimal]:
    """All numbers from `first` to `last`, exactly: decimals, no binary fractions."""
    step, factor = _number(f"{key}.step", given.get("step", 1)), _number(f"{key}.factor", given.get("factor", 1))
    if "factor" in given and (factor <= 1 or first <= 0):
        raise refusal(f"{key}.factor", given["factor"], "more than 1, and `from` above 0")
    if step <= 0:
        raise refusal(f"{key}.step", given["step"], "more than 0")
    numbers: list[Decimal] = []
    number = first
    while number <= last and len(numbers) <= MOST_VALUES:
        numbers.append(number)
        number = number * factor if "factor" in given else number + step
    return numbers


def _number(key: str, value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(key, value, "a number; its unit goes into `unit`")
    number = Decimal(repr(value))
    if not number.is_finite():
        raise refusal(key, value, "a finite number")
    return number


def _written(number: Decimal, unit: str) -> int | float | str:
    plain = format(number.normalize(), "f")
    if unit:
        return plain + unit
    return int(plain) if "." not in plain else float(plain)


def expand(
    axes: Mapping[str, Values], zips: Sequence[Mapping[str, Values]], excludes: Sequence[Mapping[str, Any]]
) -> list[Assignment]:
    """All assignments, in order. `axes`: crossed; each of `zips`: its keys go forward together; both crossed.

    An assignment that agrees with all keys of one of `excludes` is left out.
    """
    columns: list[list[Assignment]] = [[{key: value} for value in found] for key, found in axes.items()]
    columns += [[dict(zip(tied, row, strict=True)) for row in zip(*tied.values(), strict=True)] for tied in zips]
    total = 1
    for column in columns:
        total *= len(column)
    if total > MOST_CELLS:
        raise refusal("axes", total, f"runs at most {MOST_CELLS} of them in one sweep")
    crossed = [_merged(parts) for parts in itertools.product(*columns)]
    return [one for one in crossed if not any(_agrees(one, rule) for rule in excludes)]


def _merged(parts: Sequence[Assignment]) -> Assignment:
    return {key: value for part in parts for key, value in part.items()}


def _agrees(one: Assignment, rule: Mapping[str, Any]) -> bool:
    """Whether an assignment has all values of the rule; a list in a rule is any of its values."""
    return all(one[key] in wanted if isinstance(wanted, list) else one[key] == wanted for key, wanted in rule.items())
