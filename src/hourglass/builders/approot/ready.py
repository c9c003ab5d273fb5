# SPDX-License-Identifier: Apache-2.0
"""Build the folder of a plan's root, and compute the digest of its content."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from hourglass import files, locks
from hourglass.builders.approot import debian, folder, image, package_scripts
from hourglass.builders.approot.package_scripts import RunScript
from hourglass.builders.tool_packages import PROGRAMS, Tree
from hourglass.contract.plan.apps import Root
from hourglass.errors import InputError
from hourglass.host import directories

RECIPE = 6
"""Raised when the root changes while packages and images stay the same."""

CACHED_MAX = 32
"""Roots in the cache."""

DESCRIPTION = "made.json"
"""Its file with the digest of a root, and with what it was made of."""

BUSY = "waiting for another process that builds a root"

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class ReadyRoot:
    """A complete root. `digest` identifies its content; mounted folders have none. `owners`: the file that lists the
    owners of its files, if root does not own all. `unconfigured`: packages whose scripts failed."""

    folder: Path
    digest: str
    owners: Path | None = None
    unconfigured: tuple[str, ...] = ()


def ready(root: Root, run_script: RunScript, report: Report = lambda _, __: None) -> ReadyRoot:
    """Return the root as a folder, built if missing. `run_script` configures its packages. Raises InputError,
    MissingError or HourglassError."""
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
            return _cached_root(key, lambda fresh: _debian(root, fresh, key, run_script, report), report)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join([str(RECIPE), *parts]).encode()).hexdigest()[:16]


def _cache() -> Path:
    return directories.cache() / "approots"


def _cached_root(key: str, make: Callable[[folder.Folder], dict[str, object]], report: Report) -> ReadyRoot:
    """Return the root of a key; `make` fills its folder and describes it."""

    def build(fresh: Path) -> None:
        fresh.mkdir(parents=True)
        fresh.chmod(0o700)  # no other user of this machine may start the image's setuid files
        root = folder.Folder(fresh / "root")
        root.begin()
        description = make(root) | {"digest": root.finish()}
        (fresh / "owners").write_bytes(root.owners())
        (fresh / DESCRIPTION).write_text(json.dumps(description, indent=1))

    path = directories.entry(_cache() / key, CACHED_MAX, build, lambda: report(0.0, BUSY))
    description = json.loads((path / DESCRIPTION).read_bytes())
    return ReadyRoot(path / "root", description["digest"], path / "owners", tuple(description["unconfigured"]))


def _debian(root: Root, fresh: folder.Folder, key: str, run_script: RunScript, report: Report) -> dict[str, object]:
    release = debian.RELEASES[root.place]
    apt = _cache() / f"apt-{release}"
    with locks.exclusive(apt.with_name(f"{apt.name}.lock"), lambda: report(0.0, BUSY)):
        packages = [asdict(package) for package in debian.make(root.place, root.packages, fresh, apt, report)]
    report(0.7, "configuring the packages")
    work = _cache() / f"{key}.scripts"
    files.delete(work)
    unconfigured = package_scripts.run(fresh, run_script, work)
    if not unconfigured:
        files.delete(work)
    return {"made_of": packages, "unconfigured": unconfigured}


def _archive(archive: Path, report: Report) -> ReadyRoot:
    if not archive.is_file():
        raise InputError("apps.root", str(archive), "must be an existing folder or image archive")
    report(0.0, "reading the image")

    def make(fresh: folder.Folder) -> dict[str, object]:
        return {"made_of": image.make(archive, fresh), "unconfigured": []}

    return _cached_root(_key("archive", files.sha256(archive)), make, report)


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
