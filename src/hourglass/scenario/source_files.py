# SPDX-License-Identifier: Apache-2.0
"""Read the user's source (a file, a built-in, a table) as plain data. Only this module reads files.

Which files a scenario can name depends on the author of the name. The user's texts, from the command line or from
Python, are marked as `UserText` and can name any file. The texts of a scenario's or a study's file may be a stranger's.
They can name only files at or below the folder of that file, and no hidden file. Links are resolved before this check.
Text without the mark counts as a stranger's.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hourglass.errors import InputError, closest
from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario.blame import abridge, refusal

SIZE_MAX = 16 * 2**20
DEPTH_MAX = 32
VALUES_MAX = 4_000_000

KEY_PARTS_MAX = 64
"""The most parts of a dotted key: the time and memory of `tomllib` grow with their square."""

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{KEY_PARTS_MAX}}}")

Data = dict[str, Any]


class UserText(str):
    """A text of the user, not of a file: it may name any file."""


class FolderText(str):
    """A text of another file than the scenario's, in `folder`: it names files below that."""

    folder: Path


def mark_as_from(folder: Path) -> Callable[[str], str]:
    """Mark texts of a file in the folder, except the user's texts."""

    def mark(text: str) -> str:
        if isinstance(text, UserText):
            return text
        text_of_folder = FolderText(text)
        text_of_folder.folder = folder
        return text_of_folder

    return mark


def with_marks(value: Any, mark: Callable[[str], str] = UserText) -> Any:
    """Return the value with all its texts marked; by default as the user's."""
    if isinstance(value, str):
        return mark(value)
    if isinstance(value, Mapping):
        return {key: with_marks(item, mark) for key, item in value.items()}
    return [with_marks(item, mark) for item in value] if isinstance(value, list | tuple) else value


def with_mark_of(name: str, text: str) -> str:
    """Return the text, marked like the name."""
    return (
        mark_as_from(name.folder)(text)
        if isinstance(name, FolderText)
        else UserText(text)
        if isinstance(name, UserText)
        else text
    )


def names(folder: Path) -> list[str]:
    """Return the names of the TOML files of a folder, in order."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read(source: object, folder: Path | None = None) -> tuple[Data, Path]:
    """Return the data, and the folder of the files that it names. `folder`: the folder of the file that a table comes
    from; None if the table is the user's."""
    if isinstance(source, Mapping):
        data = plain(source)
        return (with_marks(data), Path()) if folder is None else (data, folder)
    if not isinstance(source, str | Path):
        raise refusal("scenario", source, "must be a built-in name, a file or a table")
    builtin_names = names(SCENARIOS)
    path = SCENARIOS / f"{source}.toml" if isinstance(source, str) and source in builtin_names else Path(source)
    if not os.path.lexists(path):
        hint = f"{closest(str(source), builtin_names)}Built in: {', '.join(builtin_names)}"
        raise refusal("scenario", str(source), f"no such file, and no built-in scenario of this name. {hint}")
    data = _parse(path, _bytes(path, source))
    data.setdefault("name", path.stem)
    return data, path.parent


def read_preset(name: object) -> Data:
    """Return the testbed of a preset."""
    preset_names = names(PRESETS)
    if not isinstance(name, str) or name not in preset_names:
        raise refusal(
            "testbed.preset", name, f"{closest(name, preset_names)}A preset is one of {', '.join(preset_names)}"
        )
    path = PRESETS / f"{name}.toml"
    testbed = _parse(path, _bytes(path, name)).get("testbed", {})
    assert isinstance(testbed, dict), path
    return testbed


def read_file(key: str, name: str, folder: Path) -> tuple[bytes, bool]:
    """Return the content of a file that a scenario names (`locate`), and whether it is executable."""
    path, searched = locate(key, name, folder)
    try:
        return _bytes(path, name), os.access(path, os.X_OK)
    except InputError as error:
        raise refusal(key, name, f"{error.allowed}{searched if not os.path.lexists(path) else ''}") from None


def locate(key: str, name: str, folder: Path, allowed: str = "the name of a file") -> tuple[Path, str]:
    """Return the path of a file that a scenario names, and a text that names the searched folders: that of the
    scenario, and for the user's names also the current one. Raises InputError for a stranger's name outside of the
    folder."""
    if not name.isprintable() or not name:
        raise refusal(key, name, allowed)
    path = folder / name
    if isinstance(name, UserText):
        searched = ", neither next to the scenario nor in the current folder"
        return path if os.path.lexists(path) else Path(name), searched
    if isinstance(name, FolderText) and (os.path.lexists(name.folder / name) or not os.path.lexists(path)):
        folder, path = name.folder, name.folder / name
    if Path(name).is_absolute() or _outside(Path(name).parts):
        raise refusal(key, name, OUTSIDE)
    try:
        relative = path.resolve().relative_to(folder.resolve())
    except (ValueError, OSError, RuntimeError):  # RuntimeError: a circle of links
        raise refusal(key, name, f"is a link that leads out of the folder; {OUTSIDE}") from None
    if _outside(relative.parts):
        raise refusal(key, name, f"is a link to a hidden file; {OUTSIDE}")
    return path, " in the folder of the scenario"


def locate_folder(key: str, name: str, folder: Path) -> Path:
    """Return the absolute path of a folder that a scenario names. Raises InputError."""
    path, searched = locate(key, name, folder, "the name of a folder")
    if not path.is_dir():
        raise refusal(key, name, f"no such folder{searched}")
    return path.absolute()


OUTSIDE = (
    "a scenario file names files at or below its own folder, none of them hidden; what you set on the command line"
    " may name any"
)


def _outside(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") for part in parts)


def read_trace(key: str, name: str, folder: Path) -> Data:
    """Read a Mahimahi trace: a line per opportunity, in ms. `locate` finds its file."""
    path, searched = locate(key, name, folder, "the name of a file of times in ms, one per line")
    try:
        lines = _bytes(path, name).decode("ascii").split()
        return {"opportunity_ms": [int(line) for line in lines if len(line) < 20 or _refuse(line)]}
    except InputError as error:
        raise refusal(key, name, f"{error.allowed}{searched if not os.path.lexists(path) else ''}") from None
    except ValueError:
        raise refusal(key, name, "must be a file of times in ms, whole numbers, one per line") from None


def read_delays(key: str, name: str, folder: Path) -> list[list[Any]]:
    """Read a trace of delays: a line per step, its time in s and the delay in ms."""
    path, searched = locate(key, name, folder, "the name of a file of steps, a line SECONDS MS each")
    try:
        rows = [line.split() for line in _bytes(path, name).decode("ascii").splitlines() if line.strip()]
        return [[float(seconds), f"{round(float(ms) * 1e6)}ns"] for seconds, ms in rows]
    except InputError as error:
        raise refusal(key, name, f"{error.allowed}{searched if not os.path.lexists(path) else ''}") from None
    except ValueError:
        raise refusal(key, name, "must be a file of steps, a line SECONDS MS each, like 0.5 20") from None


def _refuse(line: str) -> bool:
    raise ValueError(line)


def _without_nulls(pairs: list[tuple[str, Any]]) -> Data:
    """Return a JSON object without its nulls, which older versions wrote for values that are not set."""
    return {key: value for key, value in pairs if value is not None}


def _bytes(path: Path, source: object) -> bytes:
    try:
        if path.is_dir():
            raise refusal("scenario", source, "is a directory; a scenario is a TOML file or a built-in name")
        if path.exists() and not path.is_file():
            raise refusal("scenario", source, "is not a regular file")
        with path.open("rb") as file:
            content = file.read(SIZE_MAX + 1)
        if len(content) > SIZE_MAX:
            raise refusal("scenario", source, f"is larger than {SIZE_MAX >> 20} MiB")
        return content
    except FileNotFoundError:
        raise refusal("scenario", str(source), "no such file") from None
    except OSError as error:
        raise refusal("scenario", str(source), f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # NUL in the name, surrogates
        raise refusal("scenario", str(source), "is not a valid name of a file") from None


def read_toml(key: str, path: Path) -> tuple[Data, str]:
    """Return the table of a TOML file, and its text. Raises InputError, which names `key`."""
    try:
        content = _bytes(path, path)
    except InputError as error:
        raise refusal(key, str(path), error.allowed) from None
    text = _text(key, path, content)
    return _toml(key, path, text), text


def _parse(path: Path, content: bytes) -> Data:
    text = _text("scenario", path, content)
    data = _json(path, text) if path.suffix == ".json" else _toml("scenario", path, text)
    if not isinstance(data, dict):
        raise refusal("scenario", str(path), "must be a table of keys")
    return plain(data)


def _text(key: str, path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refusal(key, str(path), f"is not UTF-8: byte 0x{content[error.start]:02x} in line {line}") from None


TOO_MUCH = "is nested too deeply or holds a number that is too large"


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_nulls)
    except json.JSONDecodeError as error:
        raise refusal("scenario", str(path), f"is not valid JSON: {error}") from None
    except (RecursionError, ValueError):
        raise refusal("scenario", str(path), TOO_MUCH) from None


def _toml(key: str, path: Path, text: str) -> Data:
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise refusal(key, str(path), f"has a key of more than {KEY_PARTS_MAX} parts in line {line}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refusal(key, str(path), f"is not valid TOML: {toml_problem(text, error)}") from None
    except (RecursionError, ValueError):
        raise refusal(key, str(path), TOO_MUCH) from None


_BARE = re.compile(r"\s*([^=#]+?)\s*=\s*([A-Za-z0-9_.:%+-][^\"'#\[\]{},]*?)\s*(#.*)?")
"""Matches a line whose value is text without quotes."""


def toml_problem(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return the problem of a TOML file, and the fix if quotes are missing."""
    message = _one_line(str(error))
    position = re.search(r"at line (\d+)", message)
    line = text.splitlines()[int(position[1]) - 1] if position else ""
    if (bare := _BARE.fullmatch(line)) and not message.startswith("Cannot"):
        return f'{message}; quote strings: {_one_line(bare[1])} = "{_one_line(bare[2])}"'
    if position and "[" in line and message.startswith("Invalid value"):
        return f'{message}; quote strings: ["a", "b"]'
    return message


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)[:300]


def plain(source: Mapping[Any, Any]) -> Data:
    """Return a copy that consists of dict and list. Refuses data that are too deep or too large, or have keys that
    are not text."""
    budget = [VALUES_MAX]

    def copy(value: Any, depth: int) -> Any:
        budget[0] -= 1
        if depth > DEPTH_MAX or budget[0] < 0:
            raise refusal("scenario", abridge(type(value).__name__), "is nested too deeply or too large")
        if isinstance(value, Mapping):
            if other_keys := [key for key in value if not isinstance(key, str)]:
                raise refusal("scenario", other_keys[0], "has keys that are not text; quote them")
            return {str(key): copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, depth + 1) for item in value]
        return value

    copied: Data = copy(source, 0)
    return copied
