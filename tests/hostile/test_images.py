# SPDX-License-Identifier: Apache-2.0
"""Image archives and folders of a stranger as roots: paths that lead out of them, and sizes above the limits."""

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from hourglass.builders import tool_packages
from hourglass.builders.approot import folder as folders
from hourglass.builders.approot import image
from hourglass.builders.approot.folder import digest
from hourglass.contract.plan.apps import Root
from hourglass.engine.program_root import ready
from hourglass.errors import HourglassError
from hourglass.files import delete
from tests.folders import nest

SECRET = "the private key"


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder of the user, and check that it is unchanged afterwards."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "home"
    home.mkdir()
    (home / "id_rsa").write_text(SECRET)
    yield home
    assert [(path.name, path.read_text()) for path in home.iterdir()] == [("id_rsa", SECRET)]
    assert {path.name for path in tmp_path.iterdir()} <= {"home", "cache", "i.tar", "theirs"}


def member(
    name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644, size: int = 0
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, target, mode, size
    return info


def layer(*members: tuple[tarfile.TarInfo, bytes] | tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in members:
            info, content = entry if isinstance(entry, tuple) else (entry, b"")
            info.size = len(content) if content else info.size
            archive.addfile(info, io.BytesIO(content) if content else None)
    return buffer.getvalue()


def write_archive(path: Path, contents: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in contents.items():
            archive.addfile(member(name, size=len(content)), io.BytesIO(content))
    return path


def write_image(path: Path, *layers: bytes) -> Path:
    blobs = {hashlib.sha256(blob).hexdigest(): blob for blob in layers}
    contents = {f"blobs/sha256/{name}": blob for name, blob in blobs.items()}
    manifest = json.dumps([{"Layers": [f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}" for blob in layers]}])
    return write_archive(path, contents | {"manifest.json": manifest.encode()})


def unpack(archive: Path) -> Path:
    return ready(Root(kind="archive", place=str(archive), packages=[])).folder


ABOVE = "../" * 12


def out(outside: Path) -> dict[str, list[object]]:
    """Return layers that try to write, link or delete outside."""
    up, link = f"{ABOVE}{outside}", tarfile.SYMTYPE
    return {
        "a name with ..": [(member(f"{up}/new"), b"x")],
        "an absolute name": [(member(f"{outside}/new"), b"x")],
        "over a file there": [(member(f"{up}/id_rsa"), b"x")],
        "through a link": [member("a", link, str(outside)), (member("a/new"), b"x")],
        "through a link with ..": [member("a", link, up), (member("a/id_rsa"), b"x")],
        "through links": [member("a", link, "b/.."), member("b", link, up), (member("a/home/id_rsa"), b"x")],
        "over a link": [member("a", link, f"{outside}/id_rsa"), (member("a"), b"x")],
        "a folder over a link": [member("a", link, str(outside)), member("a", tarfile.DIRTYPE, mode=0o777)],
        "a whiteout through a link": [member("a", link, str(outside)), member("a/.wh.id_rsa")],
        "a whiteout with ..": [member(f"{up}/.wh.id_rsa")],
        "an opaque folder through a link": [member("a", link, str(outside)), member("a/.wh..wh..opq")],
        "an opaque folder with ..": [member(f"{up}/.wh..wh..opq")],
        "devices": [member("n", tarfile.CHRTYPE), member("b", tarfile.BLKTYPE), member("f", tarfile.FIFOTYPE)],
        "no name": [(member("."), b"x"), (member("/"), b"x")],
    }


@pytest.mark.parametrize("attack", out(Path("/")))
def test_nothing_outside_is_changed(tmp_path: Path, outside: Path, attack: str) -> None:
    root = unpack(write_image(tmp_path / "i.tar", layer(*out(outside)[attack])))  # type: ignore[arg-type]
    for _, path in folders.walk(root):
        assert path.is_relative_to(root)
        assert stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


@pytest.mark.parametrize(
    "members",
    [
        [member("a", tarfile.LNKTYPE, "HOME/id_rsa")],
        [member("a", tarfile.LNKTYPE, f"{ABOVE}HOME/id_rsa")],
        [member("l", tarfile.SYMTYPE, "HOME"), member("a", tarfile.LNKTYPE, "l/id_rsa")],
        [member("l", tarfile.SYMTYPE, "HOME/id_rsa"), member("a", tarfile.LNKTYPE, "l")],
        [member(".wh.")],
        [member(".wh..")],
        [member("a/.wh...")],
        [(member("a"), b"x"), member("a/.wh..wh..opq")],
        [member("a\0b")],
    ],
    ids=range(9),
)
def test_invalid_members_of_a_root_are_errors(tmp_path: Path, outside: Path, members: list[tarfile.TarInfo]) -> None:
    for entry in members:
        if isinstance(entry, tarfile.TarInfo):
            entry.linkname = entry.linkname.replace("HOME", str(outside))
            entry.pax_headers = {"path": entry.name} if "\0" in entry.name else {}
    with pytest.raises(HourglassError):
        unpack(write_image(tmp_path / "i.tar", layer(*members)))


def test_only_its_owner_can_use_a_root(tmp_path: Path) -> None:
    """An image has setuid programs. If root unpacks it, they belong to root."""
    root = unpack(write_image(tmp_path / "i.tar", layer((member("su", mode=0o4755), b"x"), member("w", mode=0o777))))
    assert stat.S_IMODE(root.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "su").stat().st_mode) == 0o4755  # for the guest


def bomb_of_header() -> bytes:
    """Return a layer whose extended header claims a length of 1 GiB."""
    head = member("x", tarfile.XHDTYPE, size=2**30).tobuf(tarfile.USTAR_FORMAT)
    return gzip.compress(head + bytes(2**26))


BOMBS: dict[str, Callable[[], list[bytes]]] = {
    "zeros": lambda: [gzip.compress(layer((member("a"), bytes(2**24))))],
    "files": lambda: [layer(*(member(f"a{number}") for number in range(300)))],
    "one name again and again": lambda: [layer(*(member("a") for _ in range(300)))],
    "sparse": lambda: [sparse()],
    "declared": lambda: [member("a", size=2**40).tobuf()],
    "a header": lambda: [bomb_of_header()],
    "layers": lambda: [layer(member("a"))] * 600,
    "depth": lambda: [layer(member("a/" * 150 + "a"))],
    "depth by links": lambda: [
        layer(member("l", tarfile.SYMTYPE, "a/" * 100), member("a/" * 100 + "b", tarfile.SYMTYPE, "b/" * 100),
              member("l/b/x"))
    ],
}  # fmt: skip


def sparse() -> bytes:
    """Return an empty file of 1 TiB (GNU's first form of sparse files)."""
    head = bytearray(member("a", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    head[386:410] = b"%011o\0%011o\0" % (0, 0)
    head[483:495] = b"\x80" + bytes(5) + (2**40).to_bytes(6, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_image_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str) -> None:
    monkeypatch.setattr(folders, "BYTES_MAX", 2**23)
    monkeypatch.setattr(folders, "FILES_MAX", 200)
    archive = write_image(tmp_path / "i.tar", *BOMBS[bomb]())
    tracemalloc.start()
    try:
        with pytest.raises(HourglassError):
            unpack(archive)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


INDEX = {"manifests": [{"digest": "sha256:a"}]}
MANIFESTS: dict[str, dict[str, object]] = {
    "an index of itself": {"index.json": INDEX, "blobs/sha256/a": INDEX},
    "no table": {"index.json": []},
    "no list": {"index.json": {"manifests": 1}},
    "no digest": {"index.json": {"manifests": [{}]}},
    "a digest of another type": {"index.json": {"manifests": [{"digest": 1}]}},
    "a path as digest": {"index.json": {"manifests": [{"digest": "../../../../etc/passwd"}]}},
    "an absolute path as layer": {"manifest.json": [{"Layers": ["/etc/passwd"]}]},
    "a path as layer": {"manifest.json": [{"Layers": ["../../../../../../../../../etc/passwd"]}]},
    "layers of another type": {"manifest.json": [{"Layers": [1]}]},
    "no layers": {"manifest.json": [{}]},
    "no images": {"manifest.json": {"a": 1}},
    "surrogates": {"manifest.json": [{"Layers": ["\ud800"]}]},
    "deep": {"manifest.json": "DEEP"},
    "long": {"manifest.json": "LONG"},
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_manifests_of_another_form_are_refused(tmp_path: Path, manifest: str) -> None:
    texts = {name: json.dumps(value).encode() for name, value in MANIFESTS[manifest].items()}
    texts = {name: {b'"DEEP"': b"[" * 10**6, b'"LONG"': b" " * 10**7}.get(text, text) for name, text in texts.items()}
    with pytest.raises(HourglassError, match=r"image|manifest|part|layers") as caught:
        unpack(write_archive(tmp_path / "i.tar", texts))
    assert len(str(caught.value)) < 400


def test_parts_that_are_links_stay_in_the_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "i.tar", "w") as archive:
        archive.addfile(member("index.json", tarfile.SYMTYPE, "/etc/passwd"))
    with pytest.raises(HourglassError, match="lacks its part"):
        unpack(tmp_path / "i.tar")
    with tarfile.open(tmp_path / "i.tar", "w") as archive:
        archive.addfile(member("index.json", tarfile.SYMTYPE, "b"))
        archive.addfile(member("b", tarfile.SYMTYPE, "index.json"))
    with pytest.raises(HourglassError, match="lacks its part"):
        unpack(tmp_path / "i.tar")


@pytest.mark.parametrize(
    "damage", [b"\x1f\x8b" + b"x" * 100, gzip.compress(b"x" * 2000, mtime=0)[:-9], b"\x28\xb5\x2f\xfd", b""]
)
def test_damaged_layers_are_errors(tmp_path: Path, damage: bytes) -> None:
    with pytest.raises(HourglassError):
        unpack(write_image(tmp_path / "i.tar", damage))


@pytest.mark.slow
def test_a_folder_as_root_is_read_below_itself(tmp_path: Path, outside: Path) -> None:
    """The digest reads links as text, devices and FIFOs are not opened, and depth costs no stack."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "link").symlink_to(outside / "id_rsa")
    (folder / "folder").symlink_to(outside)
    os.mkfifo(folder / "fifo")
    before = digest(folder)
    nest(folder, 1500)
    assert sum(1 for _ in folders.walk(folder)) == 1503
    assert not any(outside in path.parents for _, path in folders.walk(folder))
    assert digest(folder) != before
    delete(folder)


def test_limits_are_above_the_sizes_of_images() -> None:
    assert image.LAYERS_MAX >= 500
    assert folders.FILES_MAX >= 10**6
    assert folders.BYTES_MAX >= 2**34


def test_a_package_s_links_stay_in_the_tree(tmp_path: Path, outside: Path) -> None:
    """A link may lead through a folder that is a link: its real depth counts, not that of its name."""
    up, root = f"{ABOVE}{outside}", tmp_path / "theirs"
    members = [
        member("./usr/lib/a", tarfile.SYMTYPE, "../.."),
        member("./usr/lib/a/usr/lib/a/b", tarfile.SYMTYPE, "/id_rsa"),
        member("./usr/lib/out", tarfile.SYMTYPE, up),
        member("./usr/lib/a/c", tarfile.SYMTYPE, f"/../..{outside}"),
        (member("./usr/lib/out/id_rsa"), b"x"),
        (member("./usr/lib/a/c/id_rsa"), b"x"),
        (member("./usr/lib/a/b"), b"x"),
    ]
    with tarfile.open(fileobj=io.BytesIO(layer(*members))) as archive:
        for entry in archive:
            tool_packages.write(archive, entry, root, tool_packages.merged(PurePosixPath("/", entry.name)))
    for _, path in folders.walk(root):
        if path.is_symlink():
            assert path.resolve().is_relative_to(root)
