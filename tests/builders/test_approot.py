# SPDX-License-Identifier: Apache-2.0
"""Roots of programs: unpacking stays inside, an image is the sum of its layers, a digest follows from the files."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hourglass.builders.approot.folder import Folder, digest
from hourglass.contract.plan.apps import Root
from hourglass.engine.program_root import ready
from hourglass.errors import HourglassError, InputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))


def tar_of(*members: tuple[str, Any]) -> bytes:
    """Return a tar archive. A text becomes a file, "-> x" a link, None a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if content is None:
                member.type = tarfile.DIRTYPE
            elif content.startswith("-> "):
                member.type, member.linkname = tarfile.SYMTYPE, content[3:]
            elif content.startswith("= "):
                member.type, member.linkname = tarfile.LNKTYPE, content[2:]
            member.size = len(content or "") if member.isreg() else 0
            archive.addfile(member, io.BytesIO((content or "").encode()) if member.isreg() else None)
    return buffer.getvalue()


def unpack(path: Path, *members: tuple[str, Any]) -> Folder:
    folder = Folder(path)
    folder.begin()
    with tarfile.open(fileobj=io.BytesIO(tar_of(*members))) as archive:
        for member in archive:
            folder.add(archive, member)
    return folder


@pytest.mark.parametrize(
    "members",
    [
        [("../out", "x")],
        [("/etc/../../out", "x")],
        [("var", "-> /"), ("var/out", "x")],
        [("a", "-> ../.."), ("a/out", "x")],
        [("a", "-> /"), ("b", "-> a/.."), ("b/out", "x")],
    ],
    ids=str,
)
def test_nothing_is_written_outside(tmp_path: Path, members: list[tuple[str, Any]]) -> None:
    unpack(tmp_path / "root", *members)
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["root"]
    assert (tmp_path / "root" / "out").read_text() == "x"


def test_links_resolve_within_the_folder(tmp_path: Path) -> None:
    unpack(tmp_path / "root", ("run", None), ("var/run", "-> /run"), ("var/run/a", "x"), ("b", "= var/run/a"))
    assert (tmp_path / "root/run/a").read_text() == "x"
    assert (tmp_path / "root/b").stat().st_nlink == 2


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(HourglassError, match="too many links"):
        unpack(tmp_path / "root", ("a", "-> b"), ("b", "-> a"), ("a/x", ""))


def test_a_digest_is_of_names_modes_and_contents_alone(tmp_path: Path) -> None:
    def digest_of(name: str, content: str = "x", mode: int = 0o644) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "f").write_text(content)
        (folder / "f").chmod(mode)
        (folder / "l").symlink_to("/f")
        os.utime(folder / "f", (len(name), len(name)))
        return digest(folder)

    same = digest_of("one")
    assert digest_of("three") == same
    assert digest_of("four", content="y") != same
    assert digest_of("five", mode=0o755) != same


def test_files_keep_their_owners(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "root")
    folder.begin()
    empty = folder.finish()

    def add(name: str, uid: int, gid: int, kind: bytes = tarfile.REGTYPE) -> None:
        member = tarfile.TarInfo(name)
        member.uid, member.gid, member.type, member.linkname = uid, gid, kind, "nowhere"
        with tarfile.open(fileobj=io.BytesIO(), mode="w") as archive:
            folder.add(archive, member)

    add("d", 0, 8, tarfile.DIRTYPE)
    for name, uid in {"d/a": 100, "b": 0, "d/l": 7, "d-": 4, "d/replaced": 9}.items():
        add(name, uid, 0, tarfile.SYMTYPE)
    add("d/replaced", 0, 0, tarfile.SYMTYPE)
    assert folder.owners() == b"0 8 d\x004 0 d-\x00100 0 d/a\x007 0 d/l\x00"
    assert folder.finish() not in {empty, digest(folder.path)}
    folder.remove(folder.path / "d")
    folder.make("d")
    assert folder.owners() == b"4 0 d-\x00"
    for number in (-1, 2**32 - 1, 2**63):
        with pytest.raises(HourglassError, match=f"its owner is {number}:0"):
            add("x", number, 0, tarfile.SYMTYPE)


def image(path: Path, *layers: bytes, form: str) -> Path:
    """Write an image in the form of a tool:

    * `docker`: `podman save`, and `docker save` until 24; a repeated layer is a link
    * `both`: `docker save` since 25, an OCI layout with Docker's manifest
    * `oci`: `skopeo copy`
    * `tar`: tar
    """
    blobs = {hashlib.sha256(layer).hexdigest(): layer for layer in layers}
    names = [hashlib.sha256(layer).hexdigest() for layer in layers]
    links: dict[str, str] = {}
    if form == "docker":
        parts = {f"{name}.tar": blob for name, blob in blobs.items()}
        links = {f"layer-{number}/layer.tar": f"../{name}.tar" for number, name in enumerate(names)}
        parts["manifest.json"] = json.dumps([{"Layers": list(links)}]).encode()
    else:
        manifest = json.dumps({"layers": [{"digest": f"sha256:{name}"} for name in names]}).encode()
        manifest_digest = hashlib.sha256(manifest).hexdigest()
        parts = {f"blobs/sha256/{name}": blob for name, blob in (blobs | {manifest_digest: manifest}).items()}
        proof = {"digest": "sha256:0", "platform": {"architecture": "unknown", "os": "unknown"}}
        parts["index.json"] = json.dumps({"manifests": [{"digest": f"sha256:{manifest_digest}"}, proof]}).encode()
        if form == "both":
            parts["manifest.json"] = json.dumps([{"Layers": [f"blobs/sha256/{name}" for name in names]}]).encode()
    with tarfile.open(path, "w") as archive:
        for name, content in parts.items():
            member = tarfile.TarInfo(f"./{name}" if form == "tar" else name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


@pytest.mark.parametrize("form", ["docker", "both", "oci", "tar"])
def test_an_image_is_its_layers_one_on_the_other(tmp_path: Path, form: str) -> None:
    below = tar_of(("a", "old"), ("b", "old"), ("d/x", "old"), ("d/y", "old"), ("e/z", "old"))
    above = tar_of(("a", "new"), (".wh.b", ""), ("d/.wh..wh..opq", ""), ("d/w", "new"), ("e", "-> d"))
    first = gzip.compress(below, mtime=0)
    path = image(tmp_path / "i.tar", first, first, above, form=form)
    root = ready(Root(kind="archive", place=str(path), packages=[]))
    files = {str(p.relative_to(root.folder)): p.read_text() for p in root.folder.rglob("*") if p.is_file()}
    assert files["a"] == "new"
    assert files["d/w"] == "new"
    assert "b" not in files
    assert "d/x" not in files
    assert (root.folder / "e").is_symlink()
    assert ready(Root(kind="archive", place=str(path), packages=[])) == root


def test_a_file_that_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "i.tar").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="is not an image archive"):
        ready(Root(kind="archive", place=str(tmp_path / "i.tar"), packages=[]))
    with pytest.raises(InputError, match="must be an existing folder or image archive"):
        ready(Root(kind="archive", place=str(tmp_path / "x.tar"), packages=[]))
    with pytest.raises(InputError, match="must be an existing folder"):
        ready(Root(kind="folder", place=str(tmp_path / "x"), packages=[]))
    with pytest.raises(InputError, match="this machine lacks this program"):
        ready(Root(kind="host", place="/", packages=["no-such-program"]))
