# SPDX-License-Identifier: Apache-2.0
"""Build the folder of a plan's root, and compute the digest of its content."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from hourglass import files, locks
from hourglass.builders.approot import debian, folder, image
from hourglass.builders.tool_packages import PROGRAMS, Tree
from hourglass.contract.plan.apps import Root
from hourglass.errors import InputError
from hourglass.host import directories

RECIPE = 4
"""Raised when the root changes while packages and images stay the same."""

CACHED_MAX = 32
"""Roots in the cache."""

BUSY = "waiting for another process that builds a root"

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class ReadyRoot:
    """A complete root. `digest` identifies its content; mounted folders have none."""

    folder: Path
    digest: str


def ready(root: Root, report: Report = lambda _, __: None) -> ReadyRoot:
    """Return the root as a folder, built if missing. Raises InputError, MissingError or HourglassError."""
    match root.kind:
        case "host":
            return ReadyRoot(Path("/"), _programs(tuple(root.packages)))
        case "mount":
            return ReadyRoot(_existing_folder("app.mounts", root.place), root.kind)
        case "folder":
            return ReadyRoot(Path(root.place), _folder_digest(root.place))
        case "archive":
            return _archive(Path(root.place), report)
        case "debian":
            key = _key("debian", root.place, *debian.BASE, "", *root.packages)
            return _cached_root(key, lambda path: _debian(root, path, report), report)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join([str(RECIPE), *parts]).encode()).hexdigest()[:16]


def _cache() -> Path:
    return directories.cache() / "approots"


def _cached_root(key: str, make: Callable[[Path], object], report: Report) -> ReadyRoot:
    """Return the root of a key; `make` builds it and returns its sources."""
    folder_path = _cache() / key
    with locks.exclusive(folder_path.with_name(f"{key}.lock"), lambda: report(0.0, BUSY)):
        if not (folder_path / "made.json").is_file():
            with files.replacing(folder_path) as fresh:
                fresh.mkdir(parents=True)
                fresh.chmod(0o700)  # no other user of this machine may start the image's setuid files
                parts = make(fresh / "root")
                described = {"digest": folder.Folder(fresh / "root").finish(), "made_of": parts}
                (fresh / "made.json").write_text(json.dumps(described, indent=1))
            directories.keep_newest((entry.parent for entry in _cache().glob("*/made.json")), CACHED_MAX)
    folder_path.chmod(0o700)  # also roots of older versions
    folder_path.touch()
    return ReadyRoot(folder_path / "root", json.loads((folder_path / "made.json").read_bytes())["digest"])


def _debian(root: Root, path: Path, report: Report) -> object:
    release = debian.RELEASES[root.place]
    apt = _cache() / f"apt-{release}"
    with locks.exclusive(apt.with_name(f"{apt.name}.lock"), lambda: report(0.0, BUSY)):
        return [asdict(package) for package in debian.make(root.place, root.packages, path, apt, report)]


def _archive(archive: Path, report: Report) -> ReadyRoot:
    if not archive.is_file():
        raise InputError("apps.root", str(archive), "must be an existing folder or image archive")
    report(0.0, "reading the image")
    return _cached_root(_key("archive", files.sha256(archive)), lambda path: image.make(archive, path), report)


def _existing_folder(key: str, name: str) -> Path:
    if not Path(name).is_dir():
        raise InputError(key, name, "must be an existing folder")
    return Path(name)


@cache
def _folder_digest(name: str) -> str:
    """Return a folder's digest. The files are read only if one of them changed."""
    path = _existing_folder("apps.root", name)
    record = _cache() / "folders" / f"{_key(name)}.json"
    signature = folder.signature(path)
    stored = json.loads(record.read_bytes()) if record.is_file() else {}
    if stored.get("signature") == signature:
        return str(stored["digest"])
    digest = folder.digest(path)
    files.write(record, json.dumps({"place": name, "signature": signature, "digest": digest}).encode())
    return digest


@cache
def _programs(names: tuple[str, ...]) -> str:
    """Return the digest of the machine's root: the named programs with their libraries represent it."""
    total, tree = hashlib.sha256(), Tree(Path("/"))
    programs = [_program(name) for name in names]
    paths = sorted({*programs, *tree.dependencies(program for program in programs if _is_elf(program)).files.values()})
    for path in paths:
        total.update(f"{path}\0{files.sha256(path)}\0".encode())
    return total.hexdigest()


def _program(name: str) -> Path:
    candidates = [Path(name)] if "/" in name else [Path("/", folder, name) for folder in ("usr/local/bin", *PROGRAMS)]
    program = next((path for path in candidates if path.is_file()), None)
    if program is None:
        raise InputError("app.command", name, "this machine lacks this program")
    return program


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
