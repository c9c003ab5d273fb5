# SPDX-License-Identifier: Apache-2.0
"""From a plan's root to a folder that is there, and the digest of what is in it."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from hourglass import files, locks
from hourglass.contract.plan_apps import Root
from hourglass.engine import paths
from hourglass.engine.approot import debian, folder, image
from hourglass.engine.tree import PROGRAMS, Tree
from hourglass.errors import InputError

RECIPE = 2
"""Raised whenever something else is made of the same packages or images."""

KEPT = 32
"""Roots that the cache keeps."""

BUSY = "waiting for another process that makes a root"

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class Made:
    """A root that is there. `digest` stands for what is in it."""

    folder: Path
    digest: str


def ready(root: Root, report: Report = lambda _, __: None) -> Made:
    """The root as a folder, made if it is not there. Raises InputError, MissingError or HourglassError."""
    match root.kind:
        case "host":
            return Made(Path("/"), _programs(tuple(root.packages)))
        case "folder":
            return Made(Path(root.place), _folder_digest(root.place))
        case "archive":
            return _archive(Path(root.place), report)
        case "debian":
            key = _key("debian", root.place, *debian.BASE, "", *root.packages)
            return _kept(key, lambda path: _debian(root, path, report), report)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join([str(RECIPE), *parts]).encode()).hexdigest()[:16]


def _cache() -> Path:
    return paths.cache() / "approots"


def _kept(key: str, make: Callable[[Path], object], report: Report) -> Made:
    """The root of a key; `make` makes it and says what it was made of."""
    place = _cache() / key
    with locks.held(place.with_name(f"{key}.lock"), lambda: report(0.0, BUSY)):
        if not (place / "made.json").is_file():
            with files.replacing(place) as fresh:
                fresh.mkdir(parents=True)
                parts = make(fresh / "root")
                described = {"digest": folder.Folder(fresh / "root").finish(), "made_of": parts}
                (fresh / "made.json").write_text(json.dumps(described, indent=1))
            paths.keep_newest((one.parent for one in _cache().glob("*/made.json")), KEPT)
    place.touch()
    return Made(place / "root", json.loads((place / "made.json").read_bytes())["digest"])


def _debian(root: Root, path: Path, report: Report) -> object:
    release = debian.RELEASES[root.place]
    apt = _cache() / f"apt-{release}"
    with locks.held(apt.with_name(f"{apt.name}.lock"), lambda: report(0.0, BUSY)):
        return [asdict(one) for one in debian.make(root.place, root.packages, path, apt, report)]


def _archive(archive: Path, report: Report) -> Made:
    if not archive.is_file():
        raise InputError("apps.root", str(archive), "no such folder, and no such image archive")
    report(0.0, "reading the image")
    return _kept(_key("archive", files.sha256(archive)), lambda path: image.make(archive, path), report)


@cache
def _folder_digest(place: str) -> str:
    """Reads the files only when one of them was written since."""
    path = Path(place)
    if not path.is_dir():
        raise InputError("apps.root", place, "no such folder")
    known = _cache() / "folders" / f"{_key(place)}.json"
    now = folder.signature(path)
    read = json.loads(known.read_bytes()) if known.is_file() else {}
    if read.get("signature") == now:
        return str(read["digest"])
    found = folder.digest(path)
    files.write(known, json.dumps({"place": place, "signature": now, "digest": found}).encode())
    return found


@cache
def _programs(names: tuple[str, ...]) -> str:
    """Of this machine's own root: the programs that are named with their libraries, which stand for all of it."""
    total, tree = hashlib.sha256(), Tree(Path("/"))
    places = [_program(name) for name in names]
    found = sorted({*places, *tree.needed(place for place in places if _is_elf(place)).files.values()})
    for path in found:
        total.update(f"{path}\0{files.sha256(path)}\0".encode())
    return total.hexdigest()


def _program(name: str) -> Path:
    candidates = [Path(name)] if "/" in name else [Path("/", folder, name) for folder in ("usr/local/bin", *PROGRAMS)]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise InputError("app.command", name, "no such program on this machine")
    return found


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
