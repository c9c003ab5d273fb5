# SPDX-License-Identifier: Apache-2.0
"""Reads `errors.toml`, the codes of errors, and makes the message of an error that the agent reports."""

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict

GROUPS: Final = {
    "agent": "The agent: a step of the plan, a stream or a program",
    "run": "A run",
    "command": "Before and after a run",
}
"""The groups of codes, with their titles."""

ERRNO_MAX: Final = 4096
"""The kernel's errors are below."""

CONTEXT: Final = ("origin", "step", "node", "line", "subject")
"""The fields of every error of the agent: the user's key, the step with its line, and the stream."""


class ErrorCode(BaseModel):
    """A code: its meaning, the fields of an error, the message (of the agent's codes), and a remedy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    doc: str
    fields: list[str] = []
    text: str = ""
    fix: str = ""


@cache
def groups() -> dict[str, dict[str, ErrorCode]]:
    """Return the codes by group and name."""
    tables = tomllib.loads(files(__package__).joinpath("errors.toml").read_text())
    return {group: {name: ErrorCode.model_validate(code) for name, code in tables[group].items()} for group in GROUPS}


def is_agents(code: object) -> bool:
    """Tell if the agent reports errors with this code."""
    return isinstance(code, str) and code in groups()["agent"]


def fields(event: Mapping[str, object]) -> dict[str, str | int]:
    """Return the declared fields of an error event, and its place in the plan. The sender may be hostile: all else is
    left out."""
    code = event.get("code")
    names = (*CONTEXT, *(groups()["agent"][str(code)].fields if is_agents(code) else ()))
    values = {name: event.get(name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, str | int)}


def message(event: Mapping[str, object]) -> str:
    """Return the message of an error event, in the words of the declaration."""
    if not is_agents(event.get("code")):
        return "unknown reason"
    code, subject = groups()["agent"][str(event["code"])], event.get("subject")
    words = {name: _worded(name, event.get(name)) for name in code.fields}
    return (f"{subject}: " if subject else "") + code.text.format_map(words)


def _worded(name: str, value: object) -> str:
    """Return a field as it appears in a message."""
    if name == "errno" and isinstance(value, int) and 0 <= value < ERRNO_MAX:
        return os.strerror(value)
    if name.endswith("_ns") and isinstance(value, int) and abs(value) < 2**63:
        return f"{value / 1e9:.9f}".rstrip("0").rstrip(".") + " s"
    if name == "output":
        lines = str(value or "").splitlines()
        return f"its last output: {' | '.join(lines)}" if lines else "it printed nothing"
    return str(value)
