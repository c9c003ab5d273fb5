# SPDX-License-Identifier: Apache-2.0
"""Nested tables as one table with the path to each value for its key."""

from collections.abc import Iterator
from typing import Any

Key = tuple[str, ...]


def flat(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """(key, value) of everything in nested tables and lists of tables, by place in a list; empty tables say nothing."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple) and value and all(isinstance(one, dict) for one in value):
        items = list(enumerate(value))
    else:
        yield key, value
        return
    for name, inner in items:
        yield from flat(inner, (*key, str(name)))
