# SPDX-License-Identifier: Apache-2.0
"""Build a root from an image archive of `docker save`, `podman save` or `skopeo copy … oci-archive:`. This is a tar
file with `index.json` (OCI image layout 1.0) or `manifest.json` (Docker's) and the layers, bottom first.

An archive may be hostile. Its parts are members of the archive, even if its manifests name other files. The size of
each read and the number of all parts are bounded."""

import contextlib
import gzip
import io
import json
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from hourglass.builders.approot.folder import Folder
from hourglass.errors import HourglassError, InputError

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
ARCHITECTURE = "amd64"
FOLDER_PREFIX = "./"
"""The prefix of names in an archive of a layout's folder."""

LAYERS_MAX = 512
"""Layers of an image. overlayfs, the target of images, has at most 500."""
PARTS_MAX = 10_000
"""Members of the archive."""
JSON_MAX = 8 * 2**20
HEADER_MAX = 4 * 2**20
"""Bytes that tarfile reads at once: extended headers declare their own length."""


class _Bounded(io.RawIOBase):
    """A file that refuses reads of more than `HEADER_MAX` bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= HEADER_MAX:
            raise tarfile.ReadError(f"a header of more than {HEADER_MAX >> 20} MiB")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _tar(file: IO[bytes]) -> tarfile.TarFile:
    """Open a tar archive, compressed with gzip or not."""
    head = file.read(4)
    file.seek(0)
    if head == b"\x28\xb5\x2f\xfd":
        raise HourglassError("a layer of the image is compressed with zstd; save it with gzip or uncompressed")
    plain = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if head.startswith(b"\x1f\x8b") else file
    return tarfile.open(fileobj=cast(IO[bytes], _Bounded(plain)), mode="r:")


def make(archive: Path, folder: Folder) -> list[str]:
    """Unpack the image into an empty folder; return the names of its layers. Raises InputError for other archives."""
    try:
        with archive.open("rb") as file, _tar(file) as outer:
            names = _layers(outer, archive)
            for name in names:
                with _tar(_member(outer, name, archive)) as layer:
                    _apply(layer, folder)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _no_image(archive, f"is not an image archive: {error}") from None
    except OSError as error:
        raise _no_image(archive, f"cannot be read: {error.strerror or error}") from None
    return names


def _no_image(archive: Path, problem: str) -> InputError:
    return InputError("apps.root", str(archive), problem)


def _layers(outer: tarfile.TarFile, archive: Path) -> list[str]:
    """Return the layers' members, bottom first."""
    members = set[str]()
    for member in outer:
        members.add(member.name.removeprefix(FOLDER_PREFIX))
        if len(members) > PARTS_MAX:
            raise _no_image(archive, f"has more than {PARTS_MAX} parts")
    try:
        names = _listed(outer, members, archive)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise _no_image(archive, f"has a manifest of an unknown form: {error!r}") from None
    if len(names) > LAYERS_MAX or not all(isinstance(name, str) for name in names):
        raise _no_image(archive, f"must have a list of at most {LAYERS_MAX} layers")
    return names


def _listed(outer: tarfile.TarFile, members: set[str], archive: Path) -> list[str]:
    if "index.json" in members:
        manifest = _manifest(outer, _json(outer, "index.json", archive), archive)
        return [_blob(layer["digest"]) for layer in manifest["layers"]]
    if "manifest.json" in members:
        images = _json(outer, "manifest.json", archive)
        if len(images) != 1:
            raise _no_image(archive, f"has {len(images)} images; save only one")
        return list(images[0]["Layers"])
    raise _no_image(archive, "is not an image archive: it lacks index.json and manifest.json")


INDEXES_MAX = 8
"""Nested indexes."""


def _manifest(outer: tarfile.TarFile, index: dict[str, Any], archive: Path) -> dict[str, Any]:
    """Return the manifest of the image, or of its variant for this architecture."""
    for _ in range(INDEXES_MAX):
        listed = [manifest for manifest in index.get("manifests", []) if _fits(manifest.get("platform"))]
        if len(listed) != 1:
            raise _no_image(archive, f"has {len(listed)} images for {ARCHITECTURE}; save only one")
        index = _json(outer, _blob(listed[0]["digest"]), archive)
        if index.get("mediaType") not in INDEXES and "manifests" not in index:
            return index
    raise _no_image(archive, f"has more than {INDEXES_MAX} nested indexes")


def _fits(platform: dict[str, Any] | None) -> bool:
    return platform is None or platform.get("architecture") == ARCHITECTURE


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _member(outer: tarfile.TarFile, name: str, archive: Path) -> IO[bytes]:
    for candidate in (name, f"{FOLDER_PREFIX}{name}"):
        with contextlib.suppress(KeyError, RecursionError):  # RecursionError: a loop of links
            if member := outer.extractfile(candidate):
                return member
    raise _no_image(archive, f"lacks its part {name!r}")


def _json(outer: tarfile.TarFile, name: str, archive: Path) -> Any:
    content = _member(outer, name, archive).read(JSON_MAX + 1)
    if len(content) > JSON_MAX:
        raise _no_image(archive, f"has a manifest of more than {JSON_MAX >> 20} MiB: {name!r}")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise _no_image(archive, f"has an invalid JSON part: {name!r}") from None


def _apply(layer: tarfile.TarFile, folder: Folder) -> None:
    """Apply one layer on top of the lower ones; a whiteout removes a file of a lower layer."""
    for member in layer:
        layer.members.clear()  # type: ignore[attr-defined]  # it would store all
        path = PurePosixPath(member.name)
        hidden = path.name.removeprefix(WHITEOUT)
        if path.name == OPAQUE:
            below = folder.resolve(str(path.parent / "x")).parent
            for entry in sorted(below.iterdir()):
                folder.remove(entry)
        elif not path.name.startswith(WHITEOUT):
            folder.add(layer, member)
        elif hidden in ("", ".", ".."):
            raise HourglassError(f"{member.name!r}: a whiteout without a file name")
        else:
            folder.remove(folder.resolve(str(path.parent / hidden)))
