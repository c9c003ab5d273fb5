# SPDX-License-Identifier: Apache-2.0
"""Files and folders that are complete or not there."""

import pytest

from hourglass.files import replacing


def test_what_was_written_takes_the_place(tmp_path):
    for text in ("old", "new"):
        with replacing(tmp_path / "file") as half:
            half.write_text(text)
    with replacing(tmp_path / "folder") as half:
        half.mkdir()
        (half / "inside").touch()
    assert (tmp_path / "file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inside"]


@pytest.mark.parametrize("folder", [False, True])
def test_what_was_not_finished_is_gone_and_the_old_one_stays(tmp_path, folder):
    (tmp_path / "file").write_text("old")

    def interrupted():
        with replacing(tmp_path / "file") as half:
            half.mkdir() if folder else half.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"
