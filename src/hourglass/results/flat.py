# SPDX-License-Identifier: Apache-2.0
"""Flatten nested tables to one table with the path to each value as its key."""

from collections.abc import Iterator
from typing import Any

Key = tuple[str, ...]


def flat(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield (key, value) of all values in nested tables and lists of tables, by index in a list; empty tables yield
    nothing."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple) and value and all(isinstance(item, dict) for item in value):
        items = list(enumerate(value))
    else:
        yield key, value
        return
    for name, inner in items:
        yield from flat(inner, (*key, str(name)))
