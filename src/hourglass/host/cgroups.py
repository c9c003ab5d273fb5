# SPDX-License-Identifier: Apache-2.0
"""Find the cgroups around this process, of versions 1 and 2: cgroups(7). Containers and job schedulers use them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

_MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$", re.MULTILINE)
"""A line of /proc/PID/mountinfo: root, mount point, type, options of the file system."""


@dataclass(frozen=True)
class Cgroup:
    """A cgroup of a controller. `version`: 1 or 2, which decides the names of its files."""

    folder: Path
    version: int


def around(controller: str) -> Iterator[Cgroup]:
    """Yield the cgroups of a controller around this process, from the inner to the outer."""
    paths = {}
    for line in text(PROC / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            paths["cgroup" if controllers else "cgroup2"] = Path(path)
    for root, point, kind, options in _MOUNT.findall(text(PROC / "self/mountinfo")):
        if kind in paths and (kind == "cgroup2" or controller in options.split(",")):
            own_path, top = paths[kind], Path(point)
            # a container that does not see its cgroup's path has the cgroup itself at the mount point
            inner = top / own_path.relative_to(root) if own_path.is_relative_to(root) else top
            for folder in (inner, *inner.parents):
                if folder.is_relative_to(top):
                    yield Cgroup(folder, 2 if kind == "cgroup2" else 1)


def text(path: Path) -> str:
    """Return a file of /proc or of a cgroup without white space at its ends; "" if it is unreadable."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """Return the number in a file; None for another content, such as "max"."""
    content = text(path)
    return int(content) if content.isdecimal() else None


def numbers(path: Path) -> dict[str, int]:
    """Return the numbers of a file of lines like "key 7 kB"."""
    lines = [line.split() for line in text(path).splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}
