# SPDX-License-Identifier: Apache-2.0
"""The guest's configuration: fragments merged, and the check that make kept every line of them."""

import re
from collections.abc import Iterable
from pathlib import Path

from hourglass.engine.kernel.hooks import Version
from hourglass.errors import InputError

_LINE = re.compile(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$")

Options = dict[str, str]
"""Option → value as written; "n" for one that is not set."""


def fragments(folder: Path, version: Version, variant: str | None) -> list[Path]:
    """common.config, the version's own fragment or that of the newest older one, and the variant's, in the order in
    which they rule."""
    own = {_version(path): path for path in folder.glob("[0-9]*.config")}
    older = [one for one in own if one <= version]
    chosen = [folder / "common.config", *([own[max(older)]] if older else [])]
    if variant is not None:
        chosen.append(folder / f"{variant}.config")
        if not chosen[-1].is_file():
            known = sorted(path.stem for path in folder.glob("[a-z]*.config") if path.stem != "common")
            raise InputError("kernel variant", variant, f"one of {', '.join(known) or 'none'}")
    return chosen


def _version(path: Path) -> Version:
    major, minor = path.stem.split(".")
    return int(major), int(minor)


def parse(text: str) -> Options:
    """The options of a fragment or a .config; the last line about an option counts."""
    found = (_LINE.match(line.strip()) for line in text.splitlines())
    return {(match[1] or match[3]): (match[2] if match[1] else "n") for match in found if match}


def merge(files: Iterable[Path]) -> Options:
    """The options of all fragments, later ones ruling."""
    merged: Options = {}
    for path in files:
        merged |= parse(path.read_text())
    return merged


def render(options: Options) -> str:
    """The options as a fragment."""
    lines = [f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def lost(wanted: Options, got: Options) -> list[str]:
    """The wanted options that a .config does not have as wanted."""
    return [f"{name}={value}" for name, value in wanted.items() if got.get(name, "n") != value]
