# SPDX-License-Identifier: Apache-2.0
"""Download the dependencies that a bare root's pip would install to a folder of the cache. Roots have no network."""

import hashlib
import re
import sys
import zipfile
from pathlib import Path

from hourglass.host import directories
from release.bare_roots import BareRoot
from release.command import output_of

CACHED_MAX = 12


def folder(bare_root: BareRoot, front: Path) -> Path:
    """Return a folder with all that the wheel `front` needs in that root. Raises HourglassError with pip's messages."""
    options = [f"--python-version={bare_root.python}", "--implementation=cp", "--only-binary=:all:"]
    options += [f"--platform={platform}" for platform in bare_root.platforms]
    requirements = needed(front)
    key = hashlib.sha256(" ".join([*options, *requirements]).encode()).hexdigest()[:16]
    target = directories.cache() / "places" / "wheels" / f"{bare_root.name}-{key}"
    if not (target / "complete").is_file():
        target.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        output_of([*pip, *options, "--dest", str(target), *requirements])
        (target / "complete").touch()
        directories.keep_newest(target.parent.iterdir(), CACHED_MAX)
    target.touch()
    return target


def needed(wheel: Path) -> list[str]:
    """Return a wheel's requirements without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode()
    return sorted(re.findall(r"^Requires-Dist: ([^;\n]+)$", lines, re.MULTILINE))
