# SPDX-License-Identifier: Apache-2.0
"""The files of the repository: all that git does not ignore."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LISTED = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
PATHS = tuple(
    ROOT / name
    for name in subprocess.run(_LISTED, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    if name and os.path.lexists(ROOT / name)
)
"""The existing files and links, in git's order."""
FILES = tuple(path for path in PATHS if path.is_file())
"""The files, also those to which a link leads."""


def relative(path: Path) -> str:
    """Return a path in the repository as git lists it."""
    return str(path.relative_to(ROOT))
