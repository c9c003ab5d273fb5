# SPDX-License-Identifier: Apache-2.0
"""Packages of a root before and after their scripts: dpkg's database, and the changes that come back from a guest."""

import io
import subprocess
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


def test_configuration_files_are_those_of_a_machine(root: Folder) -> None:
    """`dpkg-query -f '${Conffiles}'` reads them; a package's scripts decide by it. A file that a package removes has no
    digest."""
    (root.path / "etc/a.conf").write_text("a\n")
    parts = {"./control": "Package: a\nVersion: 1\n", "./conffiles": "/etc/a.conf\nremove-on-upgrade /etc/b.conf\n"}
    with tarfile.open(fileobj=tar_of(parts)) as control:
        package_scripts.register(control, ["./etc/a.conf"], root)
    status = (root.path / "var/lib/dpkg/status").read_text()
    assert status.endswith("\n\nPackage: a\nVersion: 1\nStatus: install ok unpacked\nConffiles:\n"
                           " /etc/a.conf 60b725f10c9c85c70d97880dfe8191b3\n\n")  # fmt: skip


def test_folders_of_units_are_those_of_systemd(tmp_path: Path) -> None:
    texts = {
        "a.service": "[Service]\nUser=a\nGroup=g\nRuntimeDirectory=a  a/b:x\nRuntimeDirectoryMode=750\nLogsDirectory=a",
        "b.service": "[Unit]\nDescription=b = c\n[Service]\nStateDirectory = b \nStateDirectory=c\\",
        "c.service": "[Service]\nUser=\nCacheDirectory=d",
        "d.service": "[Service]\nDynamicUser=True\nStateDirectory=e",
        "e.service": "[Service]\nExecStart=/bin/true",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n")
    command = ["awk", package_scripts.UNIT_FOLDERS, *sorted(map(str, tmp_path.iterdir()))]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert sorted(printed.splitlines()) == [
        "750 a g /run/a",
        "750 a g /run/a/b",
        "755 a g /var/log/a",
        "755 root - /var/cache/d",
        "755 root - /var/lib/b",
        "755 root - /var/lib/c",
    ]


def test_a_link_at_a_file_of_the_accounts_is_replaced(root: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    (root.path / "etc/hosts").symlink_to(tmp_path / "outside")
    with pytest.raises(HourglassError):
        package_scripts.run(root, lambda *_: tmp_path, tmp_path / "work")
    assert (tmp_path / "outside").read_text() == ""
    assert (root.path / "etc/hosts").read_text() == "127.0.0.1 localhost\n"


def test_changes_of_the_guest_are_those_of_the_root(root: Folder, tmp_path: Path) -> None:
    (root.path / "etc/gone").write_text("")
    (root.make("etc/folder") / "gone").write_text("")
    (root.make("dev") / "null").write_text("")

    def run_script(path: Path, script: str, work: Path) -> Path:
        assert (path / "etc/passwd").read_text() == "passwd\nuser:x:1000:1000::/tmp:/bin/sh\n"
        outputs = work / "outputs"
        outputs.mkdir(parents=True)
        remaining = [f"./{p.relative_to(path)}" for p in path.rglob("*") if p.name not in {"gone", "folder", "null"}]
        (outputs / "names").write_text("\0".join([*remaining, "./etc/new"]) + "\0")
        (outputs / "changes.tar").write_bytes(tar_of({"./etc/new": "new", "./etc/group": "more\n"}, uid=7).read())
        (outputs / "failed").write_text("libc6:amd64\n")
        (outputs / "done").touch()
        return outputs

    assert package_scripts.run(root, run_script, tmp_path / "work") == ["libc6:amd64"]
    assert sorted(p.name for p in (root.path / "etc").iterdir()) == ["group", "hosts", "new", "passwd", "resolv.conf"]
    assert (root.path / "etc/group").read_text() == "more\n"
    assert (root.path / "dev/null").exists(), "a mount in the guest"
    assert root.owners() == b"7 0 etc/group\x007 0 etc/new\x00"


def test_scripts_that_do_not_end_are_an_error(root: Folder, tmp_path: Path) -> None:
    with pytest.raises(HourglassError, match=f"did not end; their output is in {tmp_path}/work"):
        package_scripts.run(root, lambda *_: tmp_path, tmp_path / "work")
