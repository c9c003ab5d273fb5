# SPDX-License-Identifier: Apache-2.0
"""One scenario of `make fuzz`. Processes of a pool import it by name, which they cannot do with `__main__`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .draw import Data, draw
from .judge import kind, wrong
from .shrink import shrunk

PLACE = Path("runs/fuzz")


def case(seed: str, kernels: Sequence[str], number: int) -> tuple[int, str | None]:
    """Makes one, on the kernel whose turn it is; what was wrong is shrunk and written down."""
    try:
        data = draw(f"{seed} {number}", kernels[number % len(kernels)])
    except Exception as error:  # of a scenario that is loaded: a refusal is an InputError
        return number, f"it cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    said = wrong(data)
    if said and not said.startswith("refused"):
        write(PLACE / f"{seed}-{number}.toml", data, said)  # in case shrinking is interrupted
        less = shrunk(data, lambda one: kind(wrong(one) or "") == kind(said))
        write(PLACE / f"{seed}-{number}.toml", less, said)
    return number, said


def write(path: Path, data: Data, said: str) -> None:
    """The scenario as TOML."""
    comment = "".join(f"# {line}\n" for line in said.splitlines())
    path.write_text(f"# SPDX-License-Identifier: Apache-2.0\n{comment}" + toml(data))


def toml(data: Data) -> str:
    """Keys whose values are tables come last, as tables of their own; below them all is inline."""
    plain = {key: one for key, one in data.items() if not isinstance(one, dict)}
    lines = [f"{key} = {inline(one)}" for key, one in plain.items()]
    for key, table in data.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]", *(f"{quoted(name)} = {inline(one)}" for name, one in table.items())]
    return "\n".join(lines) + "\n"


def inline(one: Any) -> str:
    if isinstance(one, dict):
        return "{ " + ", ".join(f"{quoted(key)} = {inline(inner)}" for key, inner in one.items()) + " }"
    if isinstance(one, list | tuple):
        return "[" + ", ".join(map(inline, one)) + "]"
    return json.dumps(one)


def quoted(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)
