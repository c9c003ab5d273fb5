# SPDX-License-Identifier: Apache-2.0
"""`--set KEY=VALUE`: one value of a scenario changed before it is checked.

KEY is dotted; a list's items are numbers; a part may be quoted, and all that follows `sysctl` or `check` is one
part. VALUE is a TOML value if it reads as one, else text.
"""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from hourglass.scenario.blame import dotted, refusal
from hourglass.scenario.check_streams import OF_FLOWS
from hourglass.scenario.testkinds import PARAMETERS, TESTS

_PART = re.compile(r'"([^"]*)"|([^."=]+)')
_TEXT_KEYS = (["kernel"], ["name"], ["description"])
"""Always text, so that --set kernel=5.10 is not the number 5.1."""

Change = tuple[list[str], Any]


def parse(text: object) -> Change:
    """`a.b=1` → (["a", "b"], 1); so does the pair ("a.b", 1)."""
    if isinstance(text, tuple):
        return _pair(*text)
    if not isinstance(text, str) or not (split := _split(text)):
        raise refusal("--set", text, "KEY=VALUE, with a dotted key, like stack.tsq=off")
    parts, value = split
    return parts, _value(value, always_text=parts in _TEXT_KEYS)


def _pair(key: str, value: Any) -> Change:
    split = _split(f"{key}=")
    if not split:
        raise refusal(key, value, "a dotted key, like stack.tsq")
    return split[0], value


def _split(text: str) -> tuple[list[str], str] | None:
    parts, at = [], 0
    while match := _PART.match(text, at):
        quoted, bare = match.groups()
        parts.append(quoted if quoted is not None else bare.strip())
        at = match.end()
        if text[at : at + 1] == "=":
            return (_join(parts), text[at + 1 :].strip()) if all(parts) else None
        if text[at : at + 1] != ".":
            return None
        at += 1
    return None


def _join(parts: list[str]) -> list[str]:
    if parts[0] == "check":
        return ["check", ".".join(parts[1:])] if parts[1:] else parts
    if parts[0] == "stack" and "sysctl" in parts[1:-1]:
        at = parts.index("sysctl", 1) + 1
        return [*parts[:at], ".".join(parts[at:])]
    return parts


def _value(text: str, always_text: bool) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:
        if text.startswith("{"):
            raise refusal("--set", text, f'is no inline table: {error}; like {{ file = "my_cc.c" }}') from None
        return text
    value = table["value"]
    if len(table) != 1 or (always_text and not isinstance(value, str)):
        return text
    return value


def apply(data: dict[str, Any], changes: Sequence[Change]) -> None:
    """Sets the values, in order."""
    for parts, value in changes:
        if parts == ["test", "name"]:
            _forget_parameters(data.get("test"), value)
        _set(data, parts, value)


def _forget_parameters(test: object, name: object) -> None:
    """Another test than the file's: what the file says of the old test's flows does not hold for it."""
    kind = TESTS.get(name) if isinstance(name, str) else None
    if not isinstance(test, dict) or kind is None:
        return
    for key in PARAMETERS:
        if key not in kind.parameters:
            test.pop(key, None)
    for key in () if kind.bulk else OF_FLOWS:
        test.pop(key, None)
    if not kind.loaded and not test.get("datagrams"):
        test.pop("delay", None)


def _set(data: dict[str, Any], parts: list[str], value: Any) -> None:
    table: Any = data
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if isinstance(table, list):
            if not part.isdecimal() or len(part) > 6 or int(part) >= len(table):
                there = f"0 to {len(table) - 1}" if table else "none"
                raise refusal(f"--set {dotted(parts)}", value, f"{dotted(parts[:place])} is a list; its items: {there}")
            if last:
                table[int(part)] = value
            else:
                table = table[int(part)]
        elif isinstance(table, dict):
            if last:
                table[part] = value
            else:
                table = table.setdefault(part, {})
        else:
            raise refusal(f"--set {dotted(parts)}", value, f"{dotted(parts[:place])} is no table")
