# SPDX-License-Identifier: Apache-2.0
"""Packages of a root before and after their scripts: dpkg's database, and the changes that come back from a guest."""

import io
import tarfile
from pathlib import Path

import pytest

from hourglass.builders.approot import package_scripts
from hourglass.builders.approot.folder import Folder
from hourglass.errors import HourglassError

CONTROL = "Package: libc6\nVersion: 2.36\nArchitecture: amd64\nMulti-Arch: same\nDescription: C library\n"


def tar_of(contents: dict[str, str], uid: int = 0) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.uid, member.mode = len(text), uid, 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    buffer.seek(0)
    return buffer


@pytest.fixture
def root(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "root")
    folder.begin()
    for name in ("passwd", "group"):
        (folder.make("usr/share/base-passwd") / f"{name}.master").write_text(f"{name}\n")
    folder.make("etc")
    with tarfile.open(fileobj=tar_of({"./control": CONTROL, "./postinst": "#!/bin/sh\n"})) as control:
        package_scripts.register(control, [".", "./lib64", "./lib64/.hidden"], folder)
    return folder


def test_a_package_is_listed_as_unpacked(root: Folder) -> None:
    database = root.path / "var/lib/dpkg"
    assert (database / "status").read_text() == f"{CONTROL}Status: install ok unpacked\n\n"
    assert (database / "info/libc6:amd64.list").read_text() == "/.\n/lib64\n/lib64/.hidden\n"
    assert (database / "info/libc6:amd64.postinst").stat().st_mode & 0o111


def test_changes_of_the_guest_are_those_of_the_root(root: Folder, tmp_path: Path) -> None:
    (root.path / "etc/gone").write_text("")
    (root.make("etc/folder") / "gone").write_text("")
    (root.make("dev") / "null").write_text("")

    def run_script(path: Path, script: str, work: Path) -> Path:
        assert (path / "etc/passwd").read_text() == "passwd\n"
        outputs = work / "outputs"
        outputs.mkdir(parents=True)
        remaining = [f"./{p.relative_to(path)}" for p in path.rglob("*") if p.name not in {"gone", "folder", "null"}]
        (outputs / "names").write_text("\0".join([*remaining, "./etc/new"]) + "\0")
        (outputs / "changes.tar").write_bytes(tar_of({"./etc/new": "new", "./etc/group": "more\n"}, uid=7).read())
        (outputs / "failed").write_text("libc6:amd64\n")
        (outputs / "done").touch()
        return outputs

    assert package_scripts.run(root, run_script, tmp_path / "work") == ["libc6:amd64"]
    assert sorted(p.name for p in (root.path / "etc").iterdir()) == ["group", "new", "passwd"]
    assert (root.path / "etc/group").read_text() == "more\n"
    assert (root.path / "dev/null").exists(), "a mount in the guest"
    assert root.owners() == b"7 0 etc/group\x007 0 etc/new\x00"


def test_scripts_that_do_not_end_are_an_error(root: Folder, tmp_path: Path) -> None:
    with pytest.raises(HourglassError, match=f"did not end; their output is in {tmp_path}/work"):
        package_scripts.run(root, lambda *_: tmp_path, tmp_path / "work")
