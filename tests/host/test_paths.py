# SPDX-License-Identifier: Apache-2.0
"""The cache's folder, and the removal of its least recently used entries."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from hourglass.engine import doctor
from hourglass.errors import MissingError
from hourglass.host import directories


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a home that is no folder, so that not even root can write to it. Return the folder for temporary files."""
    (tmp_path / "home").touch()
    (tmp_path / "tmp").mkdir()
    for name in ("HOURGLASS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_the_cache_is_below_home(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(temporary_folder))
    assert directories.cache() == temporary_folder / ".cache/hourglass"
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary_folder / "other"))
    assert directories.cache() == temporary_folder / "other/hourglass"
    monkeypatch.setenv("HOURGLASS_CACHE", str(temporary_folder / "named"))
    assert directories.cache() == temporary_folder / "named"


def test_without_a_writable_home_a_private_folder_is_used(temporary_folder: Path) -> None:
    cache = directories.cache()
    assert cache == temporary_folder / f"hourglass-{os.getuid()}"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert directories.cache() == cache
    assert "no folder below home can be written" in doctor.cache().detail


@pytest.mark.parametrize("prepared", ["a link", "open to others", "a file"])
def test_a_folder_that_another_user_may_have_prepared_is_refused(temporary_folder: Path, prepared: str) -> None:
    folder = temporary_folder / f"hourglass-{os.getuid()}"
    if prepared == "a link":
        (temporary_folder / "theirs").mkdir(mode=0o700)
        folder.symlink_to(temporary_folder / "theirs")
    elif prepared == "open to others":
        folder.mkdir()
        folder.chmod(0o770)
    else:
        folder.touch(mode=0o600)
    with pytest.raises(MissingError, match=f"{folder} is not private; to fix: set HOURGLASS_CACHE"):
        directories.cache()
    assert not doctor.cache().ok


def test_a_cache_from_the_environment_is_used_or_refused(
    temporary_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary_folder / "file").touch()
    monkeypatch.setenv("HOURGLASS_CACHE", str(temporary_folder / "file"))
    with pytest.raises(MissingError, match=r"\$HOURGLASS_CACHE, .*/file, cannot be written"):
        directories.cache()


def test_a_folder_of_another_user_is_refused(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(MissingError, match="hourglass-4242 is not private"):
        directories.cache()


def test_the_last_used_entries_remain(tmp_path: Path) -> None:
    for age in range(5):
        entry = tmp_path / f"e{age}"
        entry.mkdir() if age % 2 else entry.touch()
        os.utime(entry, (100 - age, 100 - age))
    directories.keep_newest(tmp_path.glob("e*"), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e0", "e1"]


def test_an_incomplete_entry_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed while it deletes an entry leaves nothing under its name."""
    (tmp_path / "old").mkdir()
    os.utime(tmp_path / "old", (100, 100))
    (tmp_path / "new").touch()
    monkeypatch.setattr(directories.files, "delete", lambda _: None)
    directories.keep_newest([tmp_path / "old", tmp_path / "new"], 1)
    assert not (tmp_path / "old").exists()
