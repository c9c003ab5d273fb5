# SPDX-License-Identifier: Apache-2.0
"""Where the cache is, and that it forgets what was not used for longest."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from hourglass.engine import doctor, paths
from hourglass.errors import MissingError


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is no folder, which not even root can write to; gives the folder for temporary files."""
    (tmp_path / "home").touch()
    (tmp_path / "tmp").mkdir()
    for name in ("HOURGLASS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_the_cache_is_below_home(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(homeless))
    assert paths.cache() == homeless / ".cache/hourglass"
    monkeypatch.setenv("XDG_CACHE_HOME", str(homeless / "other"))
    assert paths.cache() == homeless / "other/hourglass"
    monkeypatch.setenv("HOURGLASS_CACHE", str(homeless / "named"))
    assert paths.cache() == homeless / "named"


def test_where_home_cannot_be_written_a_private_folder_serves(homeless: Path) -> None:
    found = paths.cache()
    assert found == homeless / f"hourglass-{os.getuid()}"
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert paths.cache() == found
    assert "no folder below home can be written" in doctor.cache().detail


@pytest.mark.parametrize("prepared", ["a link", "open to others", "a file"])
def test_a_folder_that_somebody_else_may_have_prepared_is_refused(homeless: Path, prepared: str) -> None:
    place = homeless / f"hourglass-{os.getuid()}"
    if prepared == "a link":
        (homeless / "theirs").mkdir(mode=0o700)
        place.symlink_to(homeless / "theirs")
    elif prepared == "open to others":
        place.mkdir()
        place.chmod(0o770)
    else:
        place.touch(mode=0o600)
    with pytest.raises(MissingError, match=f"{place} is not ours alone; to fix: set HOURGLASS_CACHE"):
        paths.cache()
    assert not doctor.cache().ok


def test_a_cache_that_the_user_named_is_taken_or_refused(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (homeless / "file").touch()
    monkeypatch.setenv("HOURGLASS_CACHE", str(homeless / "file"))
    with pytest.raises(MissingError, match=r"\$HOURGLASS_CACHE, .*/file, cannot be written"):
        paths.cache()


def test_a_folder_of_somebody_else_is_refused(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(MissingError, match="hourglass-4242 is not ours alone"):
        paths.cache()


def test_the_last_used_entries_are_kept(tmp_path: Path) -> None:
    for age in range(5):
        entry = tmp_path / f"e{age}"
        entry.mkdir() if age % 2 else entry.touch()
        os.utime(entry, (100 - age, 100 - age))
    paths.keep_newest(tmp_path.glob("e*"), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e0", "e1"]
