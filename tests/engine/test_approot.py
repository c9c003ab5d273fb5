# SPDX-License-Identifier: Apache-2.0
"""Roots of programs: what is unpacked stays inside, an image is the sum of its layers, a digest is of what is there."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hourglass.contract.plan_apps import Root
from hourglass.engine.approot import ready
from hourglass.engine.approot.folder import Folder, digest
from hourglass.errors import HourglassError, InputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))


def packed(*members: tuple[str, Any]) -> bytes:
    """A tar archive: of a text a file, of "-> x" a link, of None a folder."""
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


def unpacked(place: Path, *members: tuple[str, Any]) -> Folder:
    folder = Folder(place)
    folder.begin()
    with tarfile.open(fileobj=io.BytesIO(packed(*members))) as archive:
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
    unpacked(tmp_path / "root", *members)
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["root"]
    assert (tmp_path / "root" / "out").read_text() == "x"


def test_links_lead_where_they_would_with_the_folder_as_root(tmp_path: Path) -> None:
    unpacked(tmp_path / "root", ("run", None), ("var/run", "-> /run"), ("var/run/a", "x"), ("b", "= var/run/a"))
    assert (tmp_path / "root/run/a").read_text() == "x"
    assert (tmp_path / "root/b").stat().st_nlink == 2


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(HourglassError, match="too many links"):
        unpacked(tmp_path / "root", ("a", "-> b"), ("b", "-> a"), ("a/x", ""))


def test_a_digest_is_of_names_modes_and_contents_alone(tmp_path: Path) -> None:
    def made(name: str, content: str = "x", mode: int = 0o644) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "f").write_text(content)
        (folder / "f").chmod(mode)
        (folder / "l").symlink_to("/f")
        os.utime(folder / "f", (len(name), len(name)))
        return digest(folder)

    same = made("one")
    assert made("three") == same
    assert made("four", content="y") != same
    assert made("five", mode=0o755) != same


def image(path: Path, *layers: bytes, form: str) -> Path:
    """As the tools write it: `podman save` and `docker save` until 24 (`docker`; a layer that is there twice is a
    link), `docker save` since 25 (`both`: an OCI layout with Docker's manifest), `skopeo copy` (`oci`), tar (`tar`)."""
    blobs = {hashlib.sha256(one).hexdigest(): one for one in layers}
    names = [hashlib.sha256(one).hexdigest() for one in layers]
    links: dict[str, str] = {}
    if form == "docker":
        parts = {f"{name}.tar": one for name, one in blobs.items()}
        links = {f"layer-{place}/layer.tar": f"../{name}.tar" for place, name in enumerate(names)}
        parts["manifest.json"] = json.dumps([{"Layers": list(links)}]).encode()
    else:
        manifest = json.dumps({"layers": [{"digest": f"sha256:{name}"} for name in names]}).encode()
        own = hashlib.sha256(manifest).hexdigest()
        parts = {f"blobs/sha256/{name}": one for name, one in (blobs | {own: manifest}).items()}
        proof = {"digest": "sha256:0", "platform": {"architecture": "unknown", "os": "unknown"}}
        parts["index.json"] = json.dumps({"manifests": [{"digest": f"sha256:{own}"}, proof]}).encode()
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
    below = packed(("a", "old"), ("b", "old"), ("d/x", "old"), ("d/y", "old"), ("e/z", "old"))
    above = packed(("a", "new"), (".wh.b", ""), ("d/.wh..wh..opq", ""), ("d/w", "new"), ("e", "-> d"))
    first = gzip.compress(below, mtime=0)
    place = image(tmp_path / "i.tar", first, first, above, form=form)
    made = ready(Root(kind="archive", place=str(place), packages=[]))
    found = {str(p.relative_to(made.folder)): p.read_text() for p in made.folder.rglob("*") if p.is_file()}
    assert found["a"] == "new"
    assert found["d/w"] == "new"
    assert "b" not in found
    assert "d/x" not in found
    assert (made.folder / "e").is_symlink()
    assert ready(Root(kind="archive", place=str(place), packages=[])) == made


def test_what_is_no_image_is_told(tmp_path: Path) -> None:
    (tmp_path / "i.tar").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="is no image archive"):
        ready(Root(kind="archive", place=str(tmp_path / "i.tar"), packages=[]))
    with pytest.raises(InputError, match="no such folder, and no such image archive"):
        ready(Root(kind="archive", place=str(tmp_path / "x.tar"), packages=[]))
    with pytest.raises(InputError, match="no such folder"):
        ready(Root(kind="folder", place=str(tmp_path / "x"), packages=[]))
    with pytest.raises(InputError, match="no such program on this machine"):
        ready(Root(kind="host", place="/", packages=["no-such-program"]))
