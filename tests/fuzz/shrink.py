# SPDX-License-Identifier: Apache-2.0
"""Less of a scenario that is as wrong: whole tables are left out first, then keys, as long as the same is wrong."""

import copy
from collections.abc import Callable
from typing import Any

from .draw import Data, refused

TRIES = 80

Way = tuple[str | int, ...]


def shrunk(data: Data, still_wrong: Callable[[Data], bool], tries: int = TRIES) -> Data:
    """The smallest that was found within so many tries."""
    found = True
    while found and tries > 0:
        found = False
        for way in ways(data):
            less = copy.deepcopy(data)
            if not without(less, way) or refused(less) is not None:
                continue
            tries -= 1
            if still_wrong(less):
                data, found = less, True
                break
            if tries <= 0:
                break
    return data


def ways(data: Data) -> list[Way]:
    """The way to each table and key, those nearer to the top first."""
    found: list[Way] = []

    def walk(table: Any, way: Way) -> None:
        items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
        for key, inner in items:
            found.append((*way, key))
            walk(inner, (*way, key))

    walk(data, ())
    return sorted(found, key=len)


def without(data: Data, way: Way) -> bool:
    """Takes out what is there; False if it is not."""
    table: Any = data
    for key in way[:-1]:
        try:
            table = table[key]
        except (KeyError, IndexError, TypeError):
            return False
    try:
        del table[way[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
