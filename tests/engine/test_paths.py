# SPDX-License-Identifier: Apache-2.0
"""The cache forgets what was not used for longest."""

import os
from pathlib import Path

from hourglass.engine import paths


def test_the_last_used_entries_are_kept(tmp_path: Path) -> None:
    for age in range(5):
        entry = tmp_path / f"e{age}"
        entry.mkdir() if age % 2 else entry.touch()
        os.utime(entry, (100 - age, 100 - age))
    paths.keep_newest(tmp_path.glob("e*"), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e0", "e1"]
