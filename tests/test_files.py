# SPDX-License-Identifier: Apache-2.0
"""Files and folders are either complete or absent."""

import pytest

from hourglass.files import delete, replacing
from tests.folders import nest


def test_a_complete_file_replaces_the_old_one(tmp_path):
    for text in ("old", "new"):
        with replacing(tmp_path / "file") as half:
            half.write_text(text)
    with replacing(tmp_path / "folder") as half:
        half.mkdir()
        (half / "inside").touch()
    assert (tmp_path / "file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inside"]


@pytest.mark.parametrize("folder", [False, True])
def test_an_unfinished_file_is_deleted_and_the_old_one_remains(tmp_path, folder):
    (tmp_path / "file").write_text("old")

    def interrupted():
        with replacing(tmp_path / "file") as half:
            half.mkdir() if folder else half.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_of_any_depth_is_deleted(tmp_path):
    """A guest may nest folders deeper than Python recurses."""
    nest(tmp_path, 3000)
    delete(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
