# SPDX-License-Identifier: Apache-2.0
"""The environment in which make runs: with ccache as the compiler, where it is on the search path.

It stands there under the compiler's own name, so that make's commands are those without it: neither a key nor an object
of an earlier build changes when ccache comes or goes.
"""

import os
import shutil
from pathlib import Path

from hourglass.engine import paths, process

MASKED = ("gcc",)


def environment() -> dict[str, str]:
    """The environment of a build, and of ccache's settings all."""
    plain = process.clean_environment()
    program = shutil.which("ccache", path=plain.get("PATH", os.defpath))
    if program is None:
        return plain
    folder = paths.cache() / "ccache"
    folder.mkdir(exist_ok=True)
    for name in MASKED:
        _link(folder / name, Path(program))
    settings = {name: text for name, text in os.environ.items() if name.startswith("CCACHE_")}
    return plain | settings | {"PATH": f"{folder}:{plain.get('PATH', os.defpath)}"}


def _link(place: Path, program: Path) -> None:
    """A link to the program as it is called now; whoever reads it meanwhile finds the old one or the new one."""
    if place.is_symlink() and place.readlink() == program:
        return
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    fresh.symlink_to(program)
    fresh.replace(place)
