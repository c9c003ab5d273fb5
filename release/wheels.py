# SPDX-License-Identifier: Apache-2.0
"""The wheels of others that a place's pip would download, in a folder of the cache: there is no network in a place."""

import hashlib
import re
import sys
import zipfile
from pathlib import Path

from hourglass.engine import paths
from release.command import called
from release.places import Place

KEPT = 12


def folder(place: Place, front: Path) -> Path:
    """A folder with all that the wheel `front` needs in that place. Raises HourglassError in pip's words."""
    asked = [f"--python-version={place.python}", "--implementation=cp", "--only-binary=:all:"]
    asked += [f"--platform={platform}" for platform in place.platforms]
    wanted = needed(front)
    key = hashlib.sha256(" ".join([*asked, *wanted]).encode()).hexdigest()[:16]
    found = paths.cache() / "places" / "wheels" / f"{place.name}-{key}"
    if not (found / "complete").is_file():
        found.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        called([*pip, *asked, "--dest", str(found), *wanted])
        (found / "complete").touch()
        paths.keep_newest(found.parent.iterdir(), KEPT)
    found.touch()
    return found


def needed(wheel: Path) -> list[str]:
    """What a wheel needs without any extra."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode()
    return sorted(re.findall(r"^Requires-Dist: ([^;\n]+)$", lines, re.MULTILINE))
