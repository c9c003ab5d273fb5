# SPDX-License-Identifier: Apache-2.0
"""Provide the environment for make, with ccache as the compiler if it is on the search path.

ccache has the compiler's name there, so make's commands do not change. Keys and objects of earlier builds stay valid
when ccache is installed or removed.
"""

import os
import shutil
from pathlib import Path

from hourglass.host import directories, process

MASKED = ("gcc",)


def environment() -> dict[str, str]:
    """Return the environment of a build, with all settings of ccache."""
    plain = process.clean_environment()
    program = _program()
    if program is None:
        return plain
    folder = directories.cache() / "ccache"
    folder.mkdir(exist_ok=True)
    for name in MASKED:
        _link(folder / name, Path(program))
    settings = {name: text for name, text in os.environ.items() if name.startswith("CCACHE_")}
    return plain | settings | {"PATH": f"{folder}:{plain.get('PATH', os.defpath)}"}


def folders() -> list[Path]:
    """Return the folders that ccache writes to; none without ccache."""
    if _program() is None:
        return []
    home = Path(os.environ.get("HOME") or "/")
    configured = os.environ.get("CCACHE_DIR")
    usual = [Path(configured)] if configured else [home / ".cache" / "ccache", home / ".ccache"]
    return [directories.cache() / "ccache", *usual]


def _program() -> str | None:
    return shutil.which("ccache", path=os.environ.get("PATH", os.defpath))


def _link(link: Path, program: Path) -> None:
    """Create a link to the program, or replace an older one. A reader never finds it missing."""
    if link.is_symlink() and link.readlink() == program:
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.symlink_to(program)
    fresh.replace(link)
