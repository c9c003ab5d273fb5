# SPDX-License-Identifier: Apache-2.0
"""Write the table of a scenario as short TOML: a value, table or list on one line if it fits."""

import json
from collections.abc import Mapping
from typing import Any

WIDTH = 100


def toml_text(data: Mapping[str, Any]) -> str:
    """Return the table as TOML. Tables that are long come last, because a key after them would be theirs."""
    long = [key for key, value in data.items() if isinstance(value, Mapping) and len(_line(key, value)) > WIDTH]
    plain = [_entry(key, value) for key, value in data.items() if key not in long]
    tables = [f"\n[{quoted(key)}]\n" + "".join(map(_entry, data[key], data[key].values())) for key in long]
    return "".join([*plain, *tables])


def _line(key: str, value: Any) -> str:
    return f"{quoted(key)} = {inline(value)}\n"


def _entry(key: str, value: Any) -> str:
    """Return a key on one line, or a long list of tables with as many tables on each line as fit."""
    line = _line(key, value)
    if len(line) <= WIDTH or not (isinstance(value, list | tuple) and value and isinstance(value[0], Mapping)):
        return line
    rows = [""]
    for item in map(inline, value):
        rows += [""] if len(rows[-1]) + len(item) > WIDTH else []
        rows[-1] += f" {item},"
    return f"{quoted(key)} = [\n" + "".join(f" {row}\n" for row in rows if row) + "]\n"


def inline(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{quoted(key)} = {inline(inner)}" for key, inner in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def quoted(key: str) -> str:
    """Return a key, in quotes if it needs them."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)
