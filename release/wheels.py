# SPDX-License-Identifier: Apache-2.0
"""The wheels of others that a place's pip would download, in a folder of the cache: there is no network in a place."""

import hashlib
import sys
from pathlib import Path

from hourglass.engine import paths
from release.command import called
from release.places import Place

KEPT = 12


def folder(place: Place, front: list[Path]) -> Path:
    """A folder with all that the wheels `front` need in that place. Raises HourglassError in pip's words."""
    asked = [f"--python-version={place.python}", "--implementation=cp", "--only-binary=:all:"]
    asked += [f"--platform={platform}" for platform in place.platforms]
    digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in front]
    key = hashlib.sha256(" ".join([*asked, *digests]).encode()).hexdigest()[:16]
    found = paths.cache() / "places" / "wheels" / f"{place.name}-{key}"
    if not (found / "complete").is_file():
        found.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        called([*pip, *asked, "--dest", str(found), *map(str, front)])
        for wheel in front:
            (found / wheel.name).unlink(missing_ok=True)
        (found / "complete").touch()
        paths.keep_newest(found.parent.iterdir(), KEPT)
    found.touch()
    return found
