# SPDX-License-Identifier: Apache-2.0
"""A root made of an image archive, as `docker save`, `podman save` and `skopeo copy … oci-archive:` write it: a tar
file with `index.json` (OCI image layout 1.0) or `manifest.json` (Docker's) and the layers, one on top of the other."""

import contextlib
import gzip
import json
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hourglass.engine.approot.folder import Folder
from hourglass.errors import HourglassError, InputError

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
ARCHITECTURE = "amd64"
HERE = "./"
"""What names begin with in an archive that somebody made of a layout's folder."""


def make(archive: Path, path: Path) -> list[str]:
    """Unpacks the image into `path`; gives the names of its layers. Raises InputError for an archive that is none."""
    folder = Folder(path)
    folder.begin()
    try:
        with tarfile.open(archive) as outer:
            names = _layers(outer, archive)
            for name in names:
                with _opened(_member(outer, name, archive)) as layer:
                    _apply(layer, folder)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise _no_image(archive, f"is no image archive: {error}") from None
    except OSError as error:
        raise _no_image(archive, f"cannot be read: {error.strerror or error}") from None
    return names


def _no_image(archive: Path, what: str) -> InputError:
    return InputError("apps.root", str(archive), what)


def _layers(outer: tarfile.TarFile, archive: Path) -> list[str]:
    """The layers' members, the lowest first."""
    there = {name.removeprefix(HERE) for name in outer.getnames()}
    if "index.json" in there:
        manifest = _manifest(outer, _json(outer, "index.json", archive), archive)
        return [_blob(layer["digest"]) for layer in manifest["layers"]]
    if "manifest.json" in there:
        images = _json(outer, "manifest.json", archive)
        if len(images) != 1:
            raise _no_image(archive, f"has {len(images)} images: save one")
        return list(images[0]["Layers"])
    raise _no_image(archive, "is no image archive: neither index.json nor manifest.json is in it")


def _manifest(outer: tarfile.TarFile, index: dict[str, Any], archive: Path) -> dict[str, Any]:
    """The manifest of the image, or of its form for this architecture."""
    listed = [one for one in index.get("manifests", []) if _fits(one.get("platform"))]
    if len(listed) != 1:
        raise _no_image(archive, f"has {len(listed)} images for {ARCHITECTURE}: save one")
    found: dict[str, Any] = _json(outer, _blob(listed[0]["digest"]), archive)
    return _manifest(outer, found, archive) if found.get("mediaType") in INDEXES or "manifests" in found else found


def _fits(platform: dict[str, Any] | None) -> bool:
    return platform is None or platform.get("architecture") == ARCHITECTURE


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _member(outer: tarfile.TarFile, name: str, archive: Path) -> IO[bytes]:
    for known in (name, f"{HERE}{name}"):
        with contextlib.suppress(KeyError):
            if found := outer.extractfile(known):
                return found
    raise _no_image(archive, f"lacks its part {name}")


def _json(outer: tarfile.TarFile, name: str, archive: Path) -> Any:
    try:
        return json.loads(_member(outer, name, archive).read())
    except ValueError:
        raise _no_image(archive, f"has a part that is no JSON: {name}") from None


def _opened(blob: IO[bytes]) -> tarfile.TarFile:
    """A layer, compressed or not."""
    head = blob.read(4)
    blob.seek(0)
    if head == b"\x28\xb5\x2f\xfd":
        raise HourglassError("a layer of the image is compressed with zstd: save it with gzip or uncompressed")
    return tarfile.open(fileobj=blob, mode="r:*")


def _apply(layer: tarfile.TarFile, folder: Folder) -> None:
    """One layer on top of those that are there; a whiteout takes away what is below."""
    for member in layer:
        name = PurePosixPath(member.name).name
        if name == OPAQUE:
            below = folder.place(str(PurePosixPath(member.name).parent / "x")).parent
            for entry in sorted(below.iterdir()):
                folder.remove(entry)
        elif name.startswith(WHITEOUT):
            folder.remove(folder.place(str(PurePosixPath(member.name).parent / name.removeprefix(WHITEOUT))))
        else:
            folder.add(layer, member)
