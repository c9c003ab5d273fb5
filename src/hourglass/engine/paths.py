# SPDX-License-Identifier: Apache-2.0
"""Where the cache is. Nothing else looks at the environment for folders.

`platformdirs` would say the same of Linux, in no fewer lines.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path


def cache() -> Path:
    """The cache folder, made if it is not there: $HOURGLASS_CACHE, $XDG_CACHE_HOME/hourglass or ~/.cache/hourglass."""
    if named := os.environ.get("HOURGLASS_CACHE"):
        folder = Path(named)
    elif base := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(base) / "hourglass"
    else:
        folder = Path.home() / ".cache" / "hourglass"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def keep_newest(entries: Iterable[Path], count: int) -> None:
    """Deletes all but the last used of some files or folders of the cache; whoever uses one touches it."""
    ages = []
    for path in entries:
        with contextlib.suppress(FileNotFoundError):
            ages.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(ages)[:-count]:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
