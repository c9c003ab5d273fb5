# SPDX-License-Identifier: Apache-2.0
"""From what the user names (a file, a built-in, a table) to plain data. Files are read here and nowhere else."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hourglass.errors import InputError, closest
from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario.blame import abridge, refusal

SIZE_MAX = 16 * 2**20
DEPTH_MAX = 32
VALUES_MAX = 4_000_000

Data = dict[str, Any]


def names(folder: Path) -> list[str]:
    """The names of the TOML files of a folder, in order."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read(source: object) -> tuple[Data, Path]:
    """The data, and the folder from which the files it names are read."""
    if isinstance(source, Mapping):
        return plain(source), Path()
    if not isinstance(source, str | Path):
        raise refusal("scenario", source, "a built-in name, a file or a table")
    known = names(SCENARIOS)
    path = SCENARIOS / f"{source}.toml" if isinstance(source, str) and source in known else Path(source)
    if not os.path.lexists(path):
        hint = f"{closest(str(source), known)}Built in: {', '.join(known)}"
        raise refusal("scenario", str(source), f"no such file, and no built-in of this name. {hint}")
    data = _parse(path, _bytes(path, source))
    data.setdefault("name", path.stem)
    return data, path.parent


def read_preset(name: object) -> Data:
    """The testbed of a preset."""
    known = names(PRESETS)
    if not isinstance(name, str) or name not in known:
        raise refusal("testbed.preset", name, f"{closest(name, known)}A preset is one of {', '.join(known)}")
    path = PRESETS / f"{name}.toml"
    testbed = _parse(path, _bytes(path, name)).get("testbed", {})
    assert isinstance(testbed, dict), path
    return testbed


def read_file(key: str, name: str, folder: Path) -> tuple[bytes, bool]:
    """A file beside the scenario's, or in the current folder: what is in it, and whether it can be executed."""
    if not name.isprintable() or not name:
        raise refusal(key, name, "the name of a file")
    path = beside if os.path.lexists(beside := folder / name) else Path(name)
    try:
        return _bytes(path, name), os.access(path, os.X_OK)
    except InputError as error:
        where = ", neither beside the scenario nor in the current folder" if not os.path.lexists(path) else ""
        raise refusal(key, name, f"{error.allowed}{where}") from None


def read_trace(key: str, name: str, folder: Path) -> Data:
    """A Mahimahi trace: a line per opportunity, ms. Its file is beside the scenario's, or in the current folder."""
    if not name.isprintable() or not name:
        raise refusal(key, name, "the name of a file of times in ms, one a line")
    beside = folder / name
    path = beside if os.path.lexists(beside) else Path(name)
    try:
        lines = _bytes(path, name).decode("ascii").split()
        return {"opportunity_ms": [int(line) for line in lines if len(line) < 20 or _refuse(line)]}
    except InputError as error:
        where = ", neither beside the scenario nor in the current folder" if not os.path.lexists(path) else ""
        raise refusal(key, name, f"{error.allowed}{where}") from None
    except ValueError:
        raise refusal(key, name, "a file of times in ms, whole numbers, one a line") from None


def _refuse(line: str) -> bool:
    raise ValueError(line)


def _given(pairs: list[tuple[str, Any]]) -> Data:
    """A JSON object without its nulls, which stand for values not given: older versions wrote them."""
    return {key: value for key, value in pairs if value is not None}


def _bytes(path: Path, source: object) -> bytes:
    try:
        if path.is_dir():
            raise refusal("scenario", source, "is a directory; a scenario is a TOML file or a built-in name")
        if path.exists() and not path.is_file():
            raise refusal("scenario", source, "is no regular file")
        if path.is_file() and path.stat().st_size > SIZE_MAX:
            raise refusal("scenario", source, f"is larger than {SIZE_MAX >> 20} MiB")
        return path.read_bytes()
    except FileNotFoundError:
        raise refusal("scenario", str(source), "no such file") from None
    except OSError as error:
        raise refusal("scenario", str(source), f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # NUL in the name, surrogates
        raise refusal("scenario", str(source), "is no name of a file") from None


def _parse(path: Path, content: bytes) -> Data:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refusal(
            "scenario", str(path), f"is not UTF-8: byte 0x{content[error.start]:02x} in line {line}"
        ) from None
    try:
        data = json.loads(text, object_pairs_hook=_given) if path.suffix == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise refusal("scenario", str(path), f"is no JSON: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise refusal("scenario", str(path), f"is no TOML: {toml_problem(text, error)}") from None
    except (RecursionError, ValueError):  # nesting; an int of thousands of digits
        raise refusal("scenario", str(path), "is nested too deeply or holds a number that is too large") from None
    if not isinstance(data, dict):
        raise refusal("scenario", str(path), "a table of keys")
    return plain(data)


_BARE = re.compile(r"\s*([^=#]+?)\s*=\s*([A-Za-z0-9_.:%+-][^\"'#\[\]{},]*?)\s*(#.*)?")
"""A line whose value is text without quotes."""


def toml_problem(text: str, error: tomllib.TOMLDecodeError) -> str:
    """What is wrong with a TOML file, and how it is mended where it is text without quotes."""
    said = _one_line(str(error))
    place = re.search(r"at line (\d+)", said)
    line = text.splitlines()[int(place[1]) - 1] if place else ""
    if (bare := _BARE.fullmatch(line)) and not said.startswith("Cannot"):
        return f'{said}; quote strings: {_one_line(bare[1])} = "{_one_line(bare[2])}"'
    if place and "[" in line and said.startswith("Invalid value"):
        return f'{said}; quote strings: ["a", "b"]'
    return said


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)[:300]


def plain(source: Mapping[Any, Any]) -> Data:
    """A copy made of dict and list alone; refuses what is too deep, too large or has keys that are not text."""
    budget = [VALUES_MAX]

    def copy(value: Any, depth: int) -> Any:
        budget[0] -= 1
        if depth > DEPTH_MAX or budget[0] < 0:
            raise refusal("scenario", abridge(type(value).__name__), "is nested too deeply or too large")
        if isinstance(value, Mapping):
            if odd := [key for key in value if not isinstance(key, str)]:
                raise refusal("scenario", odd[0], "keys are text")
            return {str(key): copy(one, depth + 1) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [copy(one, depth + 1) for one in value]
        return value

    copied: Data = copy(source, 0)
    return copied
